import { z } from 'zod'
import type { AgentRef, DeviceRef, RunId } from '../../shared/lib/ids.ts'
import { int } from '../db/columns.ts'
import type { Db } from '../db/open.ts'
import { returning, Texts, type Value } from '../db/statement.ts'
import { insertBoth } from '../db/table.ts'
import { detailsInsert, type NewDetails } from '../resources/runs/details-table.ts'
import { leaseRow, type Lease } from '../resources/runs/lease-store.ts'
import { runs, type RunRow, type RunStep } from '../resources/runs/store.ts'
import type { Offer, RunLife } from './life.ts'
import { changesBy, conditionsFor, madeWith, type ChangingEvent } from './machine.ts'

// The only file that writes rows of `runs`, but for the sweep that removes those of removed workspaces. Each change is an event of
// the machine, and its statement is made of the machine's rule: a compare-and-set on what the rule asks of the row, so that an event
// which the machine refuses changes nothing. No statement reads the row first, and what comes often is one statement for all of
// it: an offer of many runs to one device, and all events of a run that were received together.

const given = [
  'id',
  'workspaceId',
  'agentRef',
  'triggerSource',
  'requestedByRef',
  'causedByUuid',
  'wordsBy',
  'instructionsBy',
  'harness',
  'environmentType',
  'folderId',
  'repoId',
  'taskId',
  'taskKey',
  'taskTitle',
  'conversationId',
  'parentRunId',
  'modelId',
  'reasoningEffort',
  'permissionMode',
  'providerKeyId',
  'fallbackHarness',
  'fallbackKeyId',
  'fallbackModel',
  'compacts',
  'inLineSince',
  'workflowRunId',
  'workflowCall',
  'createdAt',
] as const
type Given = Pick<RunRow, (typeof given)[number]>
export type NewRun = Omit<Given, 'workflowRunId' | 'workflowCall'> & {
  /** The step of a workflow that it does; null or left out: none. */
  step?: RunStep | null
  /** The offer with which the run begins, under fence 1; null or left out: it waits. */
  offer?: Offer | null
}

const insert = insertBoth(
  runs.inserter([...given, 'status', 'fence', 'leaseState', 'device', 'offeredAt', 'offerExpiresAt']),
  detailsInsert,
)

/** The event `made`. */
export async function insertRun(
  db: Db,
  { offer = null, step = null, ...run }: NewRun,
  details: NewDetails,
): Promise<void> {
  const ofStep = { workflowRunId: step?.workflowRunId ?? null, workflowCall: step?.call ?? null }
  await insert(db, { ...run, ...ofStep, ...madeWith(offer) }, { ...details, runId: run.id })
}

/** Returns whether the event changed the run; without effect where the machine refuses it. */
export async function changeRun(db: Db, id: RunId, event: SingleEvent): Promise<boolean> {
  // The event has nothing to write.
  if (event.type === 'progress_told' && !event.usage && !event.sessionId) return false
  const { sql, values } = updateFor(event, 'id = ?', [id])
  return (await texts.change(db, sql, values)) === 1
}

/** Events of one run of which nobody reads the row that they leave. */
export type SingleEvent = Exclude<ChangingEvent, { type: 'offered' | 'claimed' | 'session_forgotten' | 'removed' }>

const texts = new Texts(100)

/** Offers queued runs to a device, each under a higher fence. Returns those that no other writer was first with. */
export async function offerRuns(db: Db, { runIds, ...offer }: { runIds: readonly RunId[] } & Offer): Promise<Lease[]> {
  return offers(db, updateFor({ type: 'offered', ...offer }, 'id in ?', [runIds]))
}

/** The device that was offered a run takes it. `isLone`: only one that works on no task. */
export interface Claim extends Lease {
  device: DeviceRef
  at: number
  isLone?: boolean
}

/** A run as it is now, with what its start needs to know of its agent at this moment. */
export interface ClaimedRun {
  run: RunRow
  tokenGeneration: number
  hasSecrets: boolean
}

/** Repeating it changes nothing: null. */
export async function claimRun(db: Db, { runId, ...claim }: Claim): Promise<ClaimedRun | null> {
  const [claimed] = await claims(db, updateFor({ type: 'claimed', ...claim }, 'id = ?', [runId]))
  return claimed ?? null
}

const claimedRow = z
  .looseObject({ token_generation: int, grants: int })
  .transform((r): ClaimedRun => ({ run: runs.part(r), tokenGeneration: r.token_generation, hasSecrets: r.grants > 0 }))

/** The session is gone or full: no later run of the agent goes on with it. */
export async function forgetHarnessSession(db: Db, of: { agentRef: AgentRef; sessionId: string }): Promise<void> {
  const { sql, values } = updateFor({ type: 'session_forgotten', sessionId: of.sessionId }, 'agent_id = ?', [
    of.agentRef,
  ])
  await texts.change(db, sql, values)
}

interface Update {
  sql: string
  values: readonly Value[]
}

const columns = runs.fields() as Readonly<Record<keyof RunLife, string>>

/** `which`: the rows that it is about, before the conditions of the rule. */
function updateFor(event: ChangingEvent, which: string, ids: readonly Value[]): Update {
  const { sets = {}, raises = {}, copies = {}, appends } = changesBy(event)
  const { is, set = [] } = conditionsFor(event)
  const written = Object.entries(runs.toColumns(sets)) as [string, Value][]
  const grown = Object.entries(raises) as ['fence' | 'eventBytes', number][]
  const copied = Object.entries(copies) as [keyof RunLife, keyof RunLife][]
  const assignments = [
    ...written.map(([column]) => `${column} = ?`),
    ...grown.map(([field]) => `${columns[field]} = ${columns[field]} + ?`),
    ...copied.map(([field, other]) => `${columns[field]} = ${columns[other]}`),
    ...(appends === undefined ? [] : [`error_message = coalesce(error_message || ' ', '') || ?`]),
  ]
  const asked = Object.entries(runs.toColumns(is)) as [string, Value][]
  const conditions = [
    which,
    ...asked.map(([column, value]) => `${column} ${value === null ? 'is null' : '= ?'}`),
    ...set.map((field) => `${columns[field]} is not null`),
  ]
  return {
    sql: `update runs set ${assignments.join(', ')} where ${conditions.join(' and ')}`,
    values: [
      ...written.map(([, value]) => value),
      ...grown.map(([, by]) => by),
      ...(appends === undefined ? [] : [appends]),
      ...ids,
      ...asked.flatMap(([, value]) => (value === null ? [] : [value])),
    ],
  }
}

/** Sends updates that end with `rest`; each text is prepared once. */
function telling<Row>(rest: string, row: { parse(row: unknown): Row }): (db: Db, update: Update) => Promise<Row[]> {
  const known = new Map<string, ReturnType<typeof returning<Row>>>()
  return (db, { sql, values }) => {
    const send = known.get(sql) ?? returning(`${sql} ${rest}`, row)
    known.set(sql, send)
    return send(db, values)
  }
}

const offers = telling('returning id, fence', leaseRow)
const claims = telling(
  `returning ${runs.select()},
  coalesce((select token_generation from agents where agents.id = runs.agent_id), 0) as token_generation,
  (select count(*) from secret_grants where secret_grants.agent_id = runs.agent_id) as grants`,
  claimedRow,
)
