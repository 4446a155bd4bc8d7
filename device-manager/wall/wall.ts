import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { World } from '../../shared/lib/world.ts'
import { identityOf, isAlive, type ProcessIdentity } from '../process/identity.ts'
import { spawnPiped } from '../process/spawn-piped.ts'
import { demandCovered, holderPlan } from './hidden.ts'
import {
  type Entered,
  type Entering,
  enterCommand,
  holderCommand,
  type HolderPlan,
  type Mounting,
  ownLines,
  systemPath,
} from './namespaces.ts'
import { sandboxCommand, sandboxProfile } from './profile.ts'
import { type WallSpec, WallError } from './spec.ts'

/** A wall that stands, until `end` or the death of this process. */
export interface Wall {
  /** First process of the namespaces; whoever ends it ends all that is inside. null: there are none (macOS). */
  readonly holder: ProcessIdentity | null
  /** Returns how to start a program inside. Throws a WallError when the wall is gone. */
  enter(entering: Entering): Entered
  /** Ends all that is inside, and resolves when nothing of it lives. May be called twice. */
  end(): Promise<void>
}

/** A wall that stands but for the folders of the run's own: it can be made before there is a run. */
export interface WallAhead {
  /**
   * `own`: folders within the state folder that the run may write to; they exist. Made anew where the machine is not as it was, or
   * where it fell meanwhile. Rejects with a WallError. Called once.
   */
  finish(own: readonly string[]): Promise<Wall>
  /** It is not wanted. */
  end(): void
}

/** On a machine that is busy with everything else. */
const makeMs = 15_000
const endMs = 5_000

/** Begins to make a wall. Never throws: what is wrong shows when it is finished. */
export function beginWall(spec: WallSpec, world: World): WallAhead {
  const begun = begin(spec)
  return {
    end: () => void begun.then((holder) => holder?.end()),
    finish: async (own) => wallOf(await begun, { spec, own, world }),
  }
}

/** `own`: as for `finish`. Rejects with a WallError. */
export const makeWall = (spec: WallSpec, own: readonly string[], world: World): Promise<Wall> =>
  wallOf(null, { spec, own, world })

/** `ahead`: one that was begun before; null: there is none. */
async function wallOf(
  ahead: Holder | null,
  { spec, own, world }: { spec: WallSpec; own: readonly string[]; world: World },
): Promise<Wall> {
  try {
    const names = own.map((folder) => path.relative(spec.stateDir, folder))
    const mounts = mountsAround()
    const plan = holderPlan(spec)
    if (spec.tool === 'sandbox-exec') {
      const profile = sandboxProfile(plan, names)
      return { holder: null, enter: (entering) => sandboxCommand(spec, profile, entering), end: async () => {} }
    }
    const told = { spec, names, world }
    const isStanding =
      ahead !== null && ahead.isOpen() && ahead.mounts === mounts && isDeepStrictEqual(ahead.plan, plan)
    if (!isStanding) ahead?.end()
    const first = isStanding ? ahead : await raise(spec, plan, 'at_once')
    const wall = await finish(first, told).catch(() => null)
    return wall ?? (await finish(await raise(spec, plan, 'each'), told))
  } catch (error) {
    ahead?.end()
    // Errors of the file system, too: no file may be left for looking at what is mounted.
    throw error instanceof WallError ? error : notMade(spec, error instanceof Error ? error.message : String(error))
  }
}

/** The first process of the namespaces, which makes the mounts, as long as it is not told which folders are the run's own. */
interface Holder {
  plan: HolderPlan
  /** What was mounted on this machine before it was started. */
  mounts: string
  child: ChildProcessWithoutNullStreams
  /** Its number outside, once all stands. Rejects with a WallError when it ends before that. */
  standing: Promise<number>
  gone: Promise<void>
  isOpen(): boolean
  end(): void
}

async function begin(spec: WallSpec): Promise<Holder | null> {
  if (spec.tool === 'sandbox-exec') return null
  try {
    return await raise(spec, holderPlan(spec), 'at_once')
  } catch {
    return null
  }
}

/** Where mounts are not shared, as in most containers, a namespace does not hear of those that come and go after it. */
const mountsAround = (): string => (process.platform === 'linux' ? readFileSync('/proc/self/mountinfo', 'utf8') : '')

async function raise(spec: WallSpec, plan: HolderPlan, mounting: Mounting): Promise<Holder> {
  const mounts = mountsAround()
  const [file, ...args] = holderCommand(spec, plan, mounting)
  // Detached: no signal to the run host's group reaches it.
  const started = spawnPiped(file!, args, { cwd: '/', env: { PATH: systemPath }, detached: true })
  if ('failed' in started) throw notMade(spec, (await started.failed).message)
  const { child } = started
  let isGone = false
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()))
  void gone.then(() => (isGone = true))
  const standing = pidSaid(child, spec)
  // Who finishes it hears of it.
  standing.catch(() => {})
  return {
    plan,
    mounts,
    child,
    standing,
    gone,
    isOpen: () => !isGone,
    end() {
      child.stdin.destroy()
      child.kill('SIGKILL')
    },
  }
}

async function finish(
  holder: Holder,
  { spec, names, world }: { spec: WallSpec; names: readonly string[]; world: World },
): Promise<Wall> {
  const { child, plan, gone } = holder
  try {
    if (names.some((name) => name === '' || name.includes('\n')))
      throw notMade(spec, 'a folder of the run has no plain name.')
    child.stdin.write(ownLines(names))
    const first = await identified(holder, spec, world)
    demandCovered(spec, plan, { pid: first.pid, own: names })
    child.unref()
    for (const stream of [child.stdin, child.stdout, child.stderr]) (stream as unknown as { unref(): void }).unref()
    return {
      holder: first,
      enter: (entering) => {
        // Its number may have come to another process, whose namespaces are not ours.
        if (!isAlive(first)) throw new WallError('The wall around the run is gone.')
        return enterCommand(spec, { pid: first.pid, isRoot: plan.isRoot }, entering)
      },
      end: async () => {
        child.stdin.destroy()
        endHolder(first)
        const late = new AbortController()
        await Promise.race([gone, world.sleep(endMs, late.signal).catch(() => {})])
        late.abort()
      },
    }
  } catch (error) {
    holder.end()
    throw error
  }
}

async function identified(holder: Holder, spec: WallSpec, world: World): Promise<ProcessIdentity> {
  const late = Promise.withResolvers<never>()
  const cancel = world.after(makeMs, () => late.reject(notMade(spec, `it took longer than ${makeMs / 1000} s.`)))
  const pid = await Promise.race([holder.standing, late.promise]).finally(cancel)
  const identity = identityOf(pid)
  if (identity === null) throw notMade(spec, 'its first process ended at once.')
  return identity
}

const notMade = (spec: WallSpec, why: string) =>
  new WallError(`The wall around the run could not be made by ${spec.tool}: ${why}`)

function pidSaid(child: ChildProcessWithoutNullStreams, spec: WallSpec): Promise<number> {
  let said = ''
  let complaint = ''
  return new Promise<number>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString('latin1')
      if (/^\d+\n/.test(said)) resolve(Number.parseInt(said, 10))
    })
    child.stderr.on('data', (chunk: Buffer) => {
      complaint = `${complaint}${chunk.toString('utf8')}`.slice(0, 1000)
    })
    child.once('error', (error) => reject(notMade(spec, error.message)))
    child.once('close', () => reject(notMade(spec, complaint.trim() || 'it ended without saying why.')))
  })
}

/** Ends all that is in its namespaces. By its identity: it may be gone, and its number another process's. */
export function endHolder(holder: ProcessIdentity): void {
  if (!isAlive(holder)) return
  try {
    process.kill(holder.pid, 'SIGKILL')
  } catch {
    // It ended in between.
  }
}
