import type { Log } from '../log/log.ts'
import type { Places } from '../setup/places.ts'
import { SetupError } from '../setup/identity-file.ts'
import type { HostRecord } from '../run-host/wire/protocol.ts'
import type { DaemonSpool } from '../spool/standing-spool.ts'
import type { HostPool } from './hosts/host-pool.ts'
import type { RunState } from './machine.ts'
import { removeLeftovers } from './leftovers.ts'
import type { Supervisor } from './supervisor.ts'

/**
 * A daemon that starts finds what an earlier one left: for each run of the journal its run host, alive or not, and
 * hosts that belong to no run. Done before the link is opened, so that hello tells the truth. Throws SetupError when the
 * hosts are another daemon's: the folder is a copy, and nothing of what it tells of is this daemon's to end.
 */
export async function adoptRuns(options: {
  states: readonly RunState[]
  supervisor: Supervisor
  pool: HostPool
  spool: DaemonSpool
  places: Places
  log: Log
}): Promise<void> {
  const { supervisor, pool, log, spool, states } = options
  const records = pool.records.list()
  const survivors = records.filter((record) => pool.records.isAlive(record))
  for (const record of survivors) refuseCopy(record, options)
  supervisor.adopt(states)
  const known = new Set(states.map((state) => state.runId))
  const taken = new Set(states.map((state) => state.hostId))
  // A dismissed host still needs its folder to make its ending.
  const inUse = new Set([...known, ...survivors.flatMap((record) => record.runId ?? [])])
  for (const record of survivors) {
    const isKnown = taken.has(record.hostId) || (record.runId !== null && known.has(record.runId))
    if (!isKnown) inUse.add((await dismiss(record, options)) ?? '')
  }
  for (const state of states) {
    if (state.phase === 'ended') supervisor.ensureEnding(state)
    else
      await supervisor.takeUp(
        state,
        survivors.find((each) => each.hostId === state.hostId),
      )
  }
  // Records of hosts that died before go now; one that a run still goes by is removed when the run has its ending.
  const needed = new Set(supervisor.active().map((state) => state.hostId))
  for (const record of records)
    if (!survivors.includes(record) && !needed.has(record.hostId)) pool.records.remove(record)
  forgetStrays(spool, known, log)
  await removeLeftovers(options.places, { runs: inUse, hasLeft: (hostId) => pool.records.hasLeftInOrder(hostId) }, log)
}

function refuseCopy(record: HostRecord, { pool, places }: { pool: HostPool; places: Places }): void {
  const original = pool.records.originalOf(record)
  if (original === null) return
  throw new SetupError(
    `${places.stateDir} is a copy of ${original}, whose runs still work. To make this a device of its own, remove the copy and type: svc device connect`,
  )
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
