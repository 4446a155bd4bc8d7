import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { World } from '../../shared/lib/world.ts'
import { identityOf, isAlive, type ProcessIdentity } from '../process/identity.ts'
import { spawnPiped } from '../process/program.ts'
import { type DeviceActs, deviceActs } from './device-acts.ts'
import { demandCovered, holderPlan } from './hidden.ts'
import {
  type Entered,
  type Entering,
  enterCommand,
  holderCommand,
  type HolderPlan,
  type Mounting,
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

/** A wall that is made before there is a run. */
export interface WallAhead {
  /**
   * Returns it, or one that is made now: where the machine is not as it was, or where it fell meanwhile. Rejects with a WallError.
   * Called once.
   */
  take(): Promise<Wall>
  /** It is not wanted. */
  end(): void
}

/** On a machine that is busy with everything else. */
const makeMs = 15_000
const endMs = 5_000

/** Containers that start and end on the machine mount and unmount several file systems each. */
const maxLooks = 20

/** Which folders are hidden, and which of those within the state folder (they exist) the run may write to. */
interface Asked {
  spec: WallSpec
  own: readonly string[]
  world: World
}

/** Never throws: what is wrong shows when it is taken. */
export function beginWall(spec: WallSpec, own: readonly string[], world: World): WallAhead {
  const asked = { spec, own, world }
  const begun = spec.tool === 'sandbox-exec' ? Promise.resolve(null) : stand(asked).catch(() => null)
  return {
    end: () => void begun.then((standing) => standing?.end()),
    take: async () => {
      const standing = await begun
      if (standing !== null && isAsMade(standing, asked)) return standing.wall
      standing?.end()
      return makeWall(spec, own, world)
    },
  }
}

/** As for `take`. Rejects with a WallError. */
export async function makeWall(spec: WallSpec, own: readonly string[], world: World): Promise<Wall> {
  try {
    if (spec.tool === 'sandbox-exec') {
      const plan = holderPlan(spec)
      const names = namesOf({ spec, own })
      const profile = sandboxProfile(plan, names)
      const acts = (entering: Entering) => actsOf(entering, plan, names)
      return {
        holder: null,
        enter: (entering) => sandboxCommand(spec, { profile, acts: acts(entering) }, entering),
        end: async () => {},
      }
    }
    return (await stand({ spec, own, world })).wall
  } catch (error) {
    // Errors of the file system, too: no file may be left for looking at what is mounted.
    throw error instanceof WallError ? error : notMade(spec, error instanceof Error ? error.message : String(error))
  }
}

const actsOf = ({ triesActs = false }: Entering, plan: HolderPlan, own: readonly string[]): DeviceActs | null =>
  triesActs ? deviceActs(plan, { own, platform: process.platform }) : null

/** A wall with what it was made for. */
interface Standing {
  wall: Wall
  plan: HolderPlan
  /** What was mounted on this machine before it was made. */
  mounts: string
  pid: number
  isOpen: () => boolean
  /** Ends all that is inside, and waits for nothing. */
  end: () => void
}

/**
 * Looks anew when it failed: something may have been mounted or unmounted between the look and the making. What looks the same
 * afterwards is no proof that nothing was, since a mount comes back under its old number.
 */
async function stand(asked: Asked): Promise<Standing> {
  const { world } = asked
  const begunAt = world.monotonic()
  for (let looks = 1; ; looks += 1) {
    const mounts = mountsAround()
    const plan = holderPlan(asked.spec)
    try {
      const made = await standAs(asked, { plan, mounts })
      if (mounts === mountsAround() || isDeepStrictEqual(plan, holderPlan(asked.spec))) return made
      made.end()
      throw notMade(asked.spec, 'what is mounted on this machine did not stay the same.')
    } catch (error) {
      if (looks === maxLooks || world.monotonic() - begunAt > makeMs) throw error
    }
  }
}

async function standAs(asked: Asked, looked: { plan: HolderPlan; mounts: string }): Promise<Standing> {
  const made = await standBy(asked, { ...looked, mounting: 'at_once' }).catch(() => null)
  return made ?? (await standBy(asked, { ...looked, mounting: 'each' }))
}

/** Says whether it is the wall that would be made now, and hides what it hid. */
function isAsMade({ plan, mounts, pid, isOpen }: Standing, asked: Asked): boolean {
  try {
    if (!isOpen() || mounts !== mountsAround() || !isDeepStrictEqual(plan, holderPlan(asked.spec))) return false
    demandCovered(asked.spec, plan, { pid, own: namesOf(asked) })
    return true
  } catch {
    return false
  }
}

function namesOf({ spec, own }: Pick<Asked, 'spec' | 'own'>): string[] {
  const names = own.map((folder) => path.relative(spec.stateDir, folder))
  if (names.some((name) => name === '' || name.startsWith('..')))
    throw notMade(spec, 'a folder of the run does not lie in the state folder.')
  return names
}

/** Where mounts are not shared, as in most containers, a namespace does not hear of those that come and go after it. */
const mountsAround = (): string => (process.platform === 'linux' ? readFileSync('/proc/self/mountinfo', 'utf8') : '')

async function standBy(
  asked: Asked,
  { plan, mounts, mounting }: { plan: HolderPlan; mounts: string; mounting: Mounting },
): Promise<Standing> {
  const { spec, world } = asked
  const own = namesOf(asked)
  const [file, ...args] = holderCommand(spec, plan, { mounting, own })
  // Detached: no signal to the run host's group reaches it.
  const started = spawnPiped(file!, args, { cwd: '/', env: { PATH: systemPath }, detached: true })
  if ('failed' in started) throw notMade(spec, (await started.failed).message)
  const { child } = started
  let isGone = false
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()))
  void gone.then(() => (isGone = true))
  const end = () => {
    child.stdin.destroy()
    child.kill('SIGKILL')
  }
  try {
    const first = await identified(pidSaid(child, spec), spec, world)
    demandCovered(spec, plan, { pid: first.pid, own })
    child.unref()
    for (const stream of [child.stdin, child.stdout, child.stderr]) (stream as unknown as { unref(): void }).unref()
    const wall: Wall = {
      holder: first,
      enter: (entering) => {
        // Its number may have come to another process, whose namespaces are not ours.
        if (!isAlive(first)) throw new WallError('The wall around the run is gone.')
        const acts = actsOf(entering, plan, own)
        return enterCommand(spec, { pid: first.pid, isRoot: plan.isRoot, acts }, entering)
      },
      end: async () => {
        child.stdin.destroy()
        endHolder(first)
        const late = new AbortController()
        await Promise.race([gone, world.sleep(endMs, late.signal).catch(() => {})])
        late.abort()
      },
    }
    return { wall, plan, mounts, pid: first.pid, isOpen: () => !isGone, end }
  } catch (error) {
    end()
    throw error
  }
}

/** `standing`: the number of the first process, outside. */
async function identified(standing: Promise<number>, spec: WallSpec, world: World): Promise<ProcessIdentity> {
  const late = Promise.withResolvers<never>()
  const cancel = world.after(makeMs, () => late.reject(notMade(spec, `it took longer than ${makeMs / 1000} s.`)))
  const pid = await Promise.race([standing, late.promise]).finally(cancel)
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
