import type { RunId } from '../../shared/lib/ids.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../log/log.ts'
import type { Places } from '../setup/places.ts'
import { SetupError } from '../setup/identity-file.ts'
import type { HostRecord } from '../run-host/wire/protocol.ts'
import type { DaemonSpool } from '../spool/standing-spool.ts'
import { HostConnection } from './hosts/host-connection.ts'
import type { HostPool } from './hosts/host-pool.ts'
import { reachHost } from './hosts/reach.ts'
import { holdsPlace, type RunState } from './machine.ts'
import { listLeftovers, removeLeftovers } from './leftovers.ts'
import type { Supervisor } from './supervisor.ts'

interface Adoption {
  states: readonly RunState[]
  supervisor: Supervisor
  pool: HostPool
  spool: DaemonSpool
  places: Places
  world: World
  log: Log
}

/**
 * Adopts what an earlier daemon left: for each run of the journal its run host, alive or not, and
 * hosts that belong to no run. What the disk says is taken in before this returns, so that hello tells of it; all hosts that live
 * are asked at once, and the promise resolves when each has answered or was ended. The link need not wait for that: a host
 * that hangs is nobody else's matter. Throws SetupError when the hosts are another daemon's: the folder is a copy, and
 * nothing of what it tells of is this daemon's to end.
 */
export function adoptRuns(options: Adoption): Promise<void> {
  const { supervisor, pool, places, log, spool, states } = options
  const records = pool.records.list().filter(({ hostId }) => !pool.isEarly(hostId))
  const survivors = records.filter((record) => pool.records.isAlive(record))
  for (const record of survivors) refuseCopy(record, options)
  // The folders are listed before a new run can make any.
  const leftovers = listLeftovers(places)
  supervisor.adopt(states)
  const known = new Set(states.map((state) => state.runId))
  const taken = new Set(states.map((state) => state.hostId))
  forgetStrays(spool, known, log)
  for (const state of states) if (state.phase === 'ended') supervisor.ensureEnding(state)
  const asked = states.filter(holdsPlace).map((state) =>
    supervisor.takeUp(
      state,
      survivors.find(({ hostId }) => hostId === state.hostId),
    ),
  )
  // Records of hosts that died before go now; one that a run still goes by is removed when the run has its ending.
  const needed = new Set(supervisor.active().map((state) => state.hostId))
  for (const record of records)
    if (!survivors.includes(record) && !needed.has(record.hostId)) pool.records.remove(record)
  const unknown = survivors.filter(
    (record) => !taken.has(record.hostId) && (record.runId === null || !known.has(record.runId)),
  )
  void Promise.all(unknown.map((record) => dismiss(record, options)))
    .then(async (dismissed) => {
      // A dismissed host still needs its folder to make its ending.
      const inUse = new Set([...known, ...dismissed, ...survivors.map(({ runId }) => runId)])
      const isInUse = (runId: RunId) => inUse.has(runId) || supervisor.find(runId) !== null
      const hasLeft = (hostId: string) => pool.records.hasLeftInOrder(hostId)
      await removeLeftovers(leftovers, { places, log, isInUse, hasLeft })
    })
    .catch((error: unknown) => log.error({ err: error }, 'what an earlier daemon left could not be removed'))
  return Promise.all(asked).then(() => undefined)
}

function refuseCopy(record: HostRecord, { pool, places }: { pool: HostPool; places: Places }): void {
  const original = pool.records.originalOf(record)
  if (original === null) return
  throw new SetupError(
    `${places.stateDir} is a copy of ${original}, whose runs still work. To make this a device of its own, remove the copy and type: svc device connect`,
  )
}

/** Sends away a host without a run, and has one whose run the journal does not know end its harness and itself. Returns the id of its run. */
async function dismiss(record: HostRecord, options: Adoption): Promise<string | null> {
  const { pool, world } = options
  const isWanted = () => !pool.isStopped
  const reached = await reachHost(record, { pool, world, isWanted, patienceMs: pool.silentMs })
  const host = reached instanceof HostConnection ? reached : null
  // The record of a host may be a step behind it.
  const runId = host?.hello?.runId ?? record.runId
  options.log.warn({ hostId: record.hostId, runId }, 'a run host of an earlier daemon is dismissed')
  host?.attach({ reply: () => undefined, lost: () => undefined })
  if (runId === null) host?.send({ type: 'discard' })
  else host?.send({ type: 'stop', exitReason: 'runner_lost', message: 'The device lost its record of this run.' })
  return runId
}

/** Drops the rows of runs that nobody remembers. They cannot be sent with a lease: the control plane has ended those runs. */
function forgetStrays(spool: DaemonSpool, known: ReadonlySet<string>, log: Log): void {
  try {
    for (const run of spool.runs()) {
      if (known.has(run.runId) || !run.ended) continue
      log.warn({ runId: run.runId, rows: run.rows }, 'events of an unknown run are dropped')
      spool.remove(run)
    }
  } catch (error) {
    // A host that hangs may hold the spool's lock. The next daemon finds the rows again.
    log.warn({ err: error }, 'events of unknown runs could not be dropped')
  }
}
