import { harnessFactsOf } from '../../shared/runs/harnesses.ts'
import { type ChangeSetResult, withSharers } from '../../shared/device/change-set.ts'
import type { EndReport } from '../../shared/device/protocol.ts'
import type { RunEventBody } from '../../shared/runs/events.ts'
import type { World } from '../../shared/lib/world.ts'
import { deliverWork, rescueMs } from '../clone/run-job.ts'
import type { BaseSnapshot } from '../change-set/snapshot.ts'
import type { Log } from '../log/log.ts'
import type { Places } from '../setup/places.ts'
import { findRunCgroup, removeRunCgroup } from '../process/cgroup.ts'
import { endTree } from '../process/kill.ts'
import type { HostRecord } from '../run-host/wire/protocol.ts'
import type { DaemonSpool } from '../spool/standing-spool.ts'
import { endHolder } from '../wall/wall.ts'
import { readBase, removeRunFolder } from './leftovers.ts'
import { stopWanted, type RunState, type Stop } from './machine.ts'

/** The means by which the daemon writes endings where no run host is there to write them. */
export interface EndingContext {
  places: Places
  spool: DaemonSpool
  world: World
  log: Log
  /** The machine itself was lost, and this daemon saves what it left: so a run ends that was under way. */
  lost?: Stop
}

/** Writes one event and the ending of a run that was never launched. Repeating it changes nothing: the spool keeps the first ending. */
export function endWithoutHost(context: EndingContext, state: RunState, stop: Stop): void {
  writeEnding(context, state, { stop, changeSet: null })
}

/** All that is known of a run whose host died. */
export interface LeftByHost {
  record: HostRecord | null
  /** The machine went down under it. */
  isOfEarlierBoot: boolean
  /** The start with its secrets, if this daemon was told it. */
  start: { token: string; secrets: Readonly<Record<string, string>> } | null
}

/**
 * Ends a run whose host died, or hung and was ended. Ends what is left of the harness, makes the change-set from the base the host recorded,
 * and writes the ending: what the run was told to end as, else `crashed`. May run again after a crash of its own.
 */
export async function endCrashed(context: EndingContext, state: RunState, left: LeftByHost): Promise<void> {
  const { world, log, places } = context
  const { record, isOfEarlierBoot, start } = left
  const leader = record?.harness ?? null
  // The holder ends with its host by itself, unless somebody inside keeps it from that.
  if (record?.wall) endHolder(record.wall)
  const cgroup = findRunCgroup(state.runId)
  const { survivors } = await endTree({
    runId: state.runId,
    leader,
    pgid: leader?.pid ?? null,
    cgroup,
    exclude: [process.pid],
    world,
    skipTo: 'terminate',
  })
  if (survivors.length > 0) log.error({ runId: state.runId, survivors }, 'processes of the run could not be ended')
  if (cgroup !== null) removeRunCgroup(cgroup)
  const base = readBase(places, state.runId)
  const changeSet = await withoutSecrets(state, start, () => changeSetOf(context, state, base))
  const crashed = context.lost ?? { exitReason: 'crashed' as const, message: messageOfCrash(state, isOfEarlierBoot) }
  const { deliveryEvents, withDelivery } = await import('../run-host/delivery.ts')
  const delivered = await deliverWork(state.spec, rescueMs)
  const stop = withDelivery(stopWanted(state) ?? crashed, delivered)
  writeEnding(context, state, { stop, changeSet, events: deliveryEvents(delivered) })
  await removeRunFolder(places, state.runId, state.hostId)
}

function messageOfCrash(state: RunState, isOfEarlierBoot: boolean): string {
  if (isOfEarlierBoot) return 'The machine went down while the run went on.'
  return state.hostHung
    ? 'The process that held the run did not answer any more and was ended.'
    : 'The process that held the run died.'
}

/**
 * Takes the values that the harness was given out of the change-set. A daemon that was started since does not know them: then
 * the change-set is not told at all.
 */
async function withoutSecrets(
  state: RunState,
  start: LeftByHost['start'],
  changeSet: () => Promise<ChangeSetResult>,
): Promise<ChangeSetResult> {
  if (state.secretNames.some((name) => !Object.hasOwn(start?.secrets ?? {}, name))) {
    const message = 'The device was restarted in mid-run and cannot tell the secrets of the run from what it changed.'
    return { ok: false, code: 'diff_unavailable', message }
  }
  const result = await changeSet()
  // The module is loaded when it is needed, as in leftovers.ts.
  const { redactOfStart, redactWhole } = await import('../run-host/output/redaction.ts')
  return redactWhole(result, redactOfStart(start))
}

async function changeSetOf(
  context: EndingContext,
  state: RunState,
  base: BaseSnapshot | null,
): Promise<ChangeSetResult> {
  if (!state.spec.folder) return { ok: false, code: 'source_unknown', message: 'The run has no folder.' }
  if (!base) return { ok: false, code: 'source_unknown', message: 'No commit was recorded for the run to begin on.' }
  try {
    // The module is loaded when it is needed, as in leftovers.ts.
    const { computeChangeSet } = await import('../change-set/diff.ts')
    const { runId, sharedWith } = state
    const folder = state.spec.folder.rootPath
    return withSharers(await computeChangeSet({ base, folder, runId, world: context.world }), sharedWith)
  } catch (error) {
    return { ok: false, code: 'diff_unavailable', message: error instanceof Error ? error.message : String(error) }
  }
}

/** The ending of a run that had asked a person: it was decided then, and how its host left in the moment after changes nothing. */
const asked: Stop = {
  exitReason: 'approval_requested',
  message: "Waits for a person's approval. The process that held the run died while it ended the harness.",
}

function writeEnding(
  context: EndingContext,
  state: RunState,
  ending: { stop: Stop; changeSet: ChangeSetResult | null; events?: readonly RunEventBody[] },
): void {
  const { spool, world } = context
  const key = { runId: state.runId, fence: state.fence }
  if (spool.ending(key)) return
  const stats = spool.stats(key)
  // Nobody has seen what the host held when it was ended.
  const gap = state.hostHung ? { bytes: 1, reason: 'run_host_hung', unknown: true } : null
  const firstSeq = (stats?.lastSeq ?? 0) + 1
  const approvals = [...(stats?.approvals ?? [])]
  const { exitReason, message } = approvals.length > 0 && ending.stop.exitReason === 'crashed' ? asked : ending.stop
  const data = { exitReason, exitCode: null, signal: null, ...(message === null ? {} : { message }) }
  const events = [...(gap ? [{ kind: 'gap', data: gap }] : []), ...(ending.events ?? []), { kind: 'ended', data }]
  const rows = events.map((event, i) => {
    const seq = firstSeq + i
    return { seq, line: Buffer.from(`${JSON.stringify({ seq, at: world.now(), ...event })}\n`) }
  })
  const report: EndReport = {
    exitReason,
    exitCode: null,
    signal: null,
    message,
    eventCount: firstSeq + rows.length - 1,
    // The hash over the whole log died with the host; empty says that nobody can tell.
    logHash: '',
    gapBytes: (stats?.gapBytes ?? 0) + (gap?.bytes ?? 0),
    usage: stats?.usage ?? null,
    toolCallCount: harnessFactsOf(state.spec).callsTools ? (stats?.toolCalls ?? 0) : null,
    sessionId: stats?.sessionId ?? null,
    harnessVersion: null,
    forced: false,
    ...(approvals.length > 0 && { approvals }),
  }
  // The control plane may have more of the run than a spool that lost its last rows, which the spool itself need not know.
  spool.end(key, rows, { report, changeSet: ending.changeSet }, { lost: { knownSeq: 0, bytes: 0 } })
}
