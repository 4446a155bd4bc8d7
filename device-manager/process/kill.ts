import type { World } from '../../shared/lib/world.ts'
import { killCgroup, processesInCgroup } from './cgroup.ts'
import { aliveOf, type ProcessIdentity } from './identity.ts'
import { findProcessesOfRun, type RunProcesses } from './orphans.ts'
import { isStopped, type ProcessRow } from './proc.ts'

/**
 * Ends all processes of a run.
 *
 *     SIGINT to the group -> interruptMs -> SIGTERM to all -> terminateMs -> SIGKILL to all, again and again,
 *     until two searches in a row find nothing, for sweepMs at most
 *
 * Nobody interrupts what left the group. Once the group is gone, it has orphanMs to end of what the group may have told it.
 *
 * It returns as soon as nothing of the run lives. Everything found in one search is remembered for the next ones, so that
 * a process whose parent has ended meanwhile is still known by its descent. A pid is signalled only if its start
 * time is still the one that was seen.
 */
export interface EscalationSteps {
  interruptMs: number
  terminateMs: number
  orphanMs: number
  /** The time that the last step tries; what lives then is reported as a survivor. */
  sweepMs: number
}
export const escalationSteps: EscalationSteps = {
  interruptMs: 7500,
  terminateMs: 2500,
  orphanMs: 1000,
  sweepMs: 15_000,
}

export interface EndTreeOptions {
  runId: string
  leader: ProcessIdentity | null
  /** The group that the interrupt goes to: the leader's. */
  pgid: number | null
  cgroup: string | null
  /** Never signalled: the daemon and the run host. */
  exclude: readonly number[]
  world: World
  steps?: Partial<EscalationSteps>
  skipTo?: 'terminate' | 'kill'
  /**
   * The caller saw the leader exit just now, so what is left in session and group `pgid` is the run's even where it
   * carries no mark. Not to be set for a leader that is known from a record only: its number may be someone else's.
   */
  leaderExitSeen?: boolean
  onStep?(signal: NodeJS.Signals): void
}

export interface EndTreeResult {
  survivors: ProcessIdentity[]
  /** The steps taken, in order; empty when nothing lived. */
  signals: NodeJS.Signals[]
}

export async function endTree(options: EndTreeOptions): Promise<EndTreeResult> {
  const scope: KillScope = { options, known: new Map(), signals: [] }
  if (options.leader !== null) remember(scope, [options.leader])
  const steps = { ...escalationSteps, ...options.steps }
  const skip = options.skipTo
  if (await nothingLives(scope)) return { survivors: [], signals: [] }
  if (skip === undefined) {
    const told = await interrupt(scope)
    if (await gone(scope, steps.interruptMs, { told, orphanMs: steps.orphanMs }))
      return { survivors: [], signals: scope.signals }
  }
  if (skip !== 'kill') {
    await terminate(scope)
    if (await gone(scope, steps.terminateMs)) return { survivors: [], signals: scope.signals }
  }
  return { survivors: await sweep(scope, steps.sweepMs), signals: scope.signals }
}

interface KillScope {
  options: EndTreeOptions
  /** The processes by pid, each with the start time that was seen last. */
  known: Map<number, ProcessIdentity>
  signals: NodeJS.Signals[]
}

function remember(scope: KillScope, found: readonly ProcessIdentity[]): void {
  for (const { pid, startTime } of found) scope.known.set(pid, { pid, startTime })
}

async function findLiving(scope: KillScope, onMarked?: (row: ProcessRow) => void): Promise<RunProcesses> {
  const { runId, cgroup, exclude, pgid, leader, leaderExitSeen } = scope.options
  const ownGroups = leaderExitSeen === true && pgid !== null ? [pgid] : []
  const found = await findProcessesOfRun(
    { runId, roots: [...scope.known.values()], since: leader?.startTime ?? null, cgroup, exclude, ownGroups },
    onMarked,
  )
  remember(scope, found.own)
  return found
}

/** Two searches: a process may have been between the pages of the first one. */
async function nothingLives(scope: KillScope): Promise<boolean> {
  for (let pass = 0; pass < 2; pass++) if ((await findLiving(scope)).own.length > 0) return false
  return true
}

function step(scope: KillScope, signal: NodeJS.Signals): void {
  scope.signals.push(signal)
  scope.options.onStep?.(signal)
}

/**
 * Once to the group and to nothing else: many programs take a second interrupt as an order to leave their work as it is.
 * A stopped process is woken, or it would not see it. Gives those that were told.
 */
async function interrupt(scope: KillScope): Promise<readonly ProcessRow[]> {
  const { pgid, leader } = scope.options
  const { own, groups } = await findLiving(scope)
  step(scope, 'SIGINT')
  const inGroup = own.filter((row) => row.pgid === pgid)
  const isGroup = pgid !== null && inGroup.length > 0 && groups.includes(pgid)
  const told = isGroup ? inGroup : targetsWithoutGroup(own, leader)
  if (isGroup) signalGroup(pgid, told, 'SIGINT')
  else signalEach(told, ['SIGINT'])
  wake(own)
  return told
}

function wake(rows: readonly ProcessRow[]): void {
  signalEach(
    rows.filter((row) => isStopped(row.state)),
    ['SIGCONT'],
  )
}

function targetsWithoutGroup(own: readonly ProcessRow[], leader: ProcessIdentity | null): readonly ProcessRow[] {
  const led = own.filter((row) => row.pid === leader?.pid && row.startTime === leader.startTime)
  return led.length > 0 ? led : own
}

async function terminate(scope: KillScope): Promise<void> {
  const { own } = await findLiving(scope)
  step(scope, 'SIGTERM')
  signalEach(own, ['SIGTERM', 'SIGCONT'])
}

/**
 * Waits until nothing of the run lives, or `ms` have passed. Now and then searches anew, to learn of new children, and wakes
 * what was about to stop when it was signalled: on a busy machine a stop takes effect later than it is sent.
 */
async function gone(
  scope: KillScope,
  ms: number,
  orphans?: { told: readonly ProcessRow[]; orphanMs: number },
): Promise<boolean> {
  const { world, pgid } = scope.options
  let deadline = world.monotonic() + ms
  let lastSearch = world.monotonic()
  let hasGroup = orphans !== undefined
  for (let pause = 5; ; pause = Math.min(pause * 1.5, 100)) {
    const isQuiet = !anyAlive(scope)
    if (isQuiet && (await nothingLives(scope))) return true
    if (orphans !== undefined && hasGroup && !isAnyAlive(orphans.told)) {
      hasGroup = (await findLiving(scope)).own.some((row) => row.pgid === pgid)
      if (!hasGroup) deadline = Math.min(deadline, world.monotonic() + orphans.orphanMs)
    }
    if (!isQuiet && world.monotonic() - lastSearch >= 500) {
      wake((await findLiving(scope)).own)
      lastSearch = world.monotonic()
    }
    const left = deadline - world.monotonic()
    if (left <= 0) return false
    await world.sleep(Math.min(pause, left))
  }
}

/** Looks at the newest ones first, which are the likeliest to live, and stops at the first that does. */
const anyAlive = (scope: KillScope): boolean => isAnyAlive([...scope.known.values()].reverse())
const isAnyAlive = (identities: readonly ProcessIdentity[]): boolean => aliveOf(identities).next().done !== true

async function sweep(scope: KillScope, ms: number): Promise<ProcessIdentity[]> {
  const { world } = scope.options
  const deadline = world.monotonic() + ms
  step(scope, 'SIGKILL')
  let quietPasses = 0
  let pause = 1
  for (;;) {
    killWholeCgroup(scope.options)
    const { own, groups } = await findLiving(scope, (row) => signal(row.pid, 'SIGKILL'))
    quietPasses = own.length === 0 ? quietPasses + 1 : 0
    if (quietPasses === 2) return []
    for (const pgid of groups)
      signalGroup(
        pgid,
        own.filter((row) => row.pgid === pgid),
        'SIGKILL',
      )
    signalEach(own, ['SIGKILL'])
    if (world.monotonic() >= deadline) return [...aliveOf(own)].map(({ pid, startTime }) => ({ pid, startTime }))
    await world.sleep(pause)
    pause = Math.min(pause * 2, 100)
  }
}

function killWholeCgroup({ cgroup, exclude }: EndTreeOptions): void {
  if (cgroup === null) return
  const inside = processesInCgroup(cgroup)
  const kept = new Set([process.pid, ...exclude])
  if (inside.length > 0 && !inside.some((pid) => kept.has(pid))) killCgroup(cgroup)
}

/** The kernel lets no member fork away under a signal to its group, which one pid after the other cannot do. */
function signalGroup(pgid: number, members: readonly ProcessIdentity[], name: NodeJS.Signals): void {
  if (isAnyAlive(members)) signal(-pgid, name)
}

/** Sends the signals to those that are still the processes that were seen. */
export function signalEach(identities: readonly ProcessIdentity[], names: readonly NodeJS.Signals[]): void {
  for (const { pid } of aliveOf(identities)) for (const name of names) signal(pid, name)
}

/** Gone already, or another user's: the next search tells. */
function signal(target: number, name: NodeJS.Signals): void {
  try {
    process.kill(target, name)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code !== 'ESRCH' && code !== 'EPERM') throw error
  }
}
