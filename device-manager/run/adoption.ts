import type { Log } from '../log.ts'
import type { Places } from '../places.ts'
import type { HostRecord } from '../run-host/protocol.ts'
import type { DaemonSpool } from '../spool/standing-spool.ts'
import type { HostPool } from './host-pool.ts'
import type { RunState } from './machine.ts'
import { removeLeftovers } from './leftovers.ts'
import type { Supervisor } from './supervisor.ts'

/**
 * A daemon that starts finds what an earlier one left: for each run of the journal its run host, alive or not, and
 * hosts that belong to no run. Done before the link is opened, so that hello tells the truth.
 */
export async function adoptRuns(options: {
  states: readonly RunState[]
  supervisor: Supervisor
  pool: HostPool
  spool: DaemonSpool
  places: Places
  log: Log
}): Promise<void> {
  const { supervisor, pool, log, spool } = options
  supervisor.adopt(options.states)
  const survivors = pool.survivors()
  const known = new Set(options.states.map((state) => state.runId))
  const taken = new Set(options.states.map((state) => state.hostId))
  // A dismissed host still needs its folder to make its ending.
  const inUse = new Set([...known, ...survivors.flatMap((record) => record.runId ?? [])])
  for (const record of survivors) {
    const isKnown = taken.has(record.hostId) || (record.runId !== null && known.has(record.runId))
    if (!isKnown) inUse.add((await dismiss(record, options)) ?? '')
  }
  for (const state of options.states) {
    if (state.phase === 'ended') {
      supervisor.ensureEnding(state)
      continue
    }
    const record = survivors.find((each) => each.hostId === state.hostId)
    const host = record ? await pool.connect(record).catch(() => null) : null
    // It was taken for this run, and the daemon died before it told so: nothing was launched.
    const isIdle = host !== null && host.hello?.runId === null
    const found = { runId: state.runId, phase: state.phase, hostId: state.hostId, host: host !== null, isIdle }
    log.info(found, 'run found in the journal')
    if (isIdle) {
      host.send({ type: 'discard' })
      supervisor.handle(state.runId, { type: 'host_returned' })
    } else if (host) {
      supervisor.attach(state.runId, host)
      continue
    }
    const isLost = isIdle || state.hostId === null ? 'found_without_host' : 'host_lost'
    supervisor.handle(state.runId, { type: spool.ending(state) ? 'host_ended' : isLost })
  }
  forgetStrays(spool, known, log)
  await removeLeftovers(options.places, inUse, log)
}

/** A host without a run is not wanted; one whose run the journal does not know ends its harness and itself. Its run's id. */
async function dismiss(record: HostRecord, options: { pool: HostPool; log: Log }): Promise<string | null> {
  const host = await options.pool.connect(record).catch(() => null)
  // Its record may be a step behind it.
  const runId = host?.hello?.runId ?? record.runId
  options.log.warn({ hostId: record.hostId, runId }, 'a run host of an earlier daemon is dismissed')
  host?.attach({ reply: () => undefined, lost: () => undefined })
  if (runId === null) host?.send({ type: 'discard' })
  else host?.send({ type: 'stop', exitReason: 'runner_lost', message: 'The device lost its record of this run.' })
  return runId
}

/** Rows of runs that nobody remembers cannot be sent with a lease: the control plane has ended those runs. */
function forgetStrays(spool: DaemonSpool, known: ReadonlySet<string>, log: Log): void {
  for (const run of spool.runs()) {
    if (known.has(run.runId) || !run.ended) continue
    log.warn({ runId: run.runId, rows: run.rows }, 'events of an unknown run are dropped')
    spool.remove(run)
  }
}
