import type { GateReason } from '../../shared/api/agent-runs.ts'
import type { AgentRef, DeviceRef, RunId, WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { ExitReason } from '../../shared/runs/exit-reasons.ts'
import type { Knex } from 'knex'
import { z } from 'zod'
import { int, nullableTime, time } from '../db/columns.ts'
import { agentRef, deviceRef, runId, workspaceUuid } from '../db/id-columns.ts'
import type { Db } from '../db/open.ts'
import { onceCommitted, writeStateOf, type WriteState } from '../db/transaction.ts'
import type { Phase, RunEvent, RunEventType } from './life.ts'
import { phaseAfter, type ChangingEvent } from './machine.ts'

// Tells whoever watches of each run that has come into another phase, once that is committed.

/** The words are those of the machine and of lists of ours. Nothing that a person, an agent or a device wrote is in it. */
export interface PhaseChange {
  runId: RunId
  workspaceId: WorkspaceUuid
  agentRef: AgentRef
  event: RunEventType
  /** null: the run was made. */
  from: Phase | null
  to: Phase
  fence: number
  /** The device that has the run, or had the offer or the run until now; null: there is none. */
  device: DeviceRef | null
  /** How it ended, or is to end. */
  exitReason: ExitReason | null
  /** Why an offer was taken back. */
  reason: string | null
  /** What kept it from being offered when it was made. */
  gate: GateReason | null
  /** How long it had waited when a device took it. */
  waitedMs: number | null
}

export type PhaseObserver = (change: PhaseChange) => void

/** By the state that a process keeps of its writes to a database. */
const observers = new WeakMap<WriteState, Set<PhaseObserver>>()

/** Calls the observer for each change that this process commits to the database. Returns what ends that. */
export function observePhases(root: Knex, observer: PhaseObserver): () => void {
  const state = writeStateOf(root)
  const all = observers.get(state) ?? new Set()
  observers.set(state, all.add(observer))
  return () => void all.delete(observer)
}

/** A run after a change, as far as observers are told of it. */
export interface ChangedRun {
  id: RunId
  workspaceId: WorkspaceUuid
  agentRef: AgentRef
  fence: number
  device: DeviceRef | null
  createdAt: number
  startedAt: number | null
  cancelRequestedAt: number | null
}

export const phaseColumns = [
  'id',
  'workspace_id',
  'agent_id',
  'fence',
  'device',
  'created_at',
  'started_at',
  'cancel_requested_at',
]
  .map((column) => `runs.${column}`)
  .join(', ')

export const phaseRow = z
  .looseObject({
    id: runId,
    workspace_id: workspaceUuid,
    agent_id: agentRef,
    fence: int,
    device: deviceRef.nullable(),
    created_at: time,
    started_at: nullableTime,
    cancel_requested_at: nullableTime,
  })
  .transform((r): ChangedRun => ({
    id: r.id,
    workspaceId: r.workspace_id,
    agentRef: r.agent_id,
    fence: r.fence,
    device: r.device,
    createdAt: r.created_at,
    startedAt: r.started_at,
    cancelRequestedAt: r.cancel_requested_at,
  }))

/** `run`: as the event left it. An event that leaves the run in its phase is not told. */
export function tellChange(db: Db, event: ChangingEvent, run: ChangedRun): void {
  const to = phaseAfter(event)
  if (to === null || to === 'nothing') return
  const { type } = event
  tell(db, run, {
    event: type,
    from: phaseBefore(to, run),
    to,
    device: ('device' in event ? event.device : null) ?? run.device,
    exitReason: 'exitReason' in event ? event.exitReason : null,
    reason: type === 'offer_withdrawn' ? (event.why ?? null) : null,
    gate: null,
    waitedMs: type === 'claimed' ? event.at - run.createdAt : null,
  })
}

export function tellMade(
  db: Db,
  run: Omit<ChangedRun, 'startedAt' | 'cancelRequestedAt'>,
  { offer, gate }: { offer: Extract<RunEvent, { type: 'made' }>['offer']; gate: GateReason | null },
): void {
  const none = { from: null, exitReason: null, reason: null, waitedMs: null }
  tell(db, run, { ...none, event: 'made', to: offer === null ? 'waiting' : 'offered', device: run.device, gate })
}

function tell(
  db: Db,
  { id, workspaceId, agentRef, fence }: Pick<ChangedRun, 'id' | 'workspaceId' | 'agentRef' | 'fence'>,
  change: Omit<PhaseChange, 'runId' | 'workspaceId' | 'agentRef' | 'fence'>,
): void {
  const told = observers.get(writeStateOf(db))
  if (told === undefined || told.size === 0) return
  const whole = { runId: id, workspaceId, agentRef, fence, ...change }
  onceCommitted(db, () => {
    for (const observe of told) observe(whole)
  })
}

/** Nothing that comes before an end is undone by it, so the row still tells how far the run had come. */
function phaseBefore(to: Phase, { device, startedAt, cancelRequestedAt }: ChangedRun): Phase {
  if (to === 'waiting') return 'offered'
  if (to === 'offered') return 'waiting'
  if (to === 'running') return 'offered'
  if (to === 'stopping') return 'running'
  if (cancelRequestedAt !== null) return 'stopping'
  if (startedAt !== null) return 'running'
  return device === null ? 'waiting' : 'offered'
}
