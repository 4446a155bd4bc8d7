import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import type { World } from '../../shared/lib/world.ts'
import { identityOf, isAlive, type ProcessIdentity } from '../process/identity.ts'
import { spawnPiped } from '../process/spawn-piped.ts'
import { demandCovered, holderPlan } from './hidden.ts'
import { type Entered, type Entering, enterCommand, holderCommand, systemPath } from './namespaces.ts'
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

/** On a machine that is busy with everything else. */
const makeMs = 15_000
const endMs = 5_000

/** `own`: folders within the state folder that this run may write to; they exist. Rejects with a WallError. */
export async function makeWall(spec: WallSpec, own: readonly string[], world: World): Promise<Wall> {
  try {
    return await make(spec, own, world)
  } catch (error) {
    // Errors of the file system, too: no file may be left for looking at what is mounted.
    throw error instanceof WallError ? error : notMade(spec, error instanceof Error ? error.message : String(error))
  }
}

async function make(spec: WallSpec, own: readonly string[], world: World): Promise<Wall> {
  const plan = holderPlan(spec, own)
  if (spec.tool === 'sandbox-exec') {
    const profile = sandboxProfile(plan)
    return { holder: null, enter: (entering) => sandboxCommand(spec, profile, entering), end: async () => {} }
  }
  const [file, ...args] = holderCommand(spec, plan)
  // Detached: no signal to the run host's group reaches it.
  const started = spawnPiped(file!, args, { cwd: '/', env: { PATH: systemPath }, detached: true })
  if ('failed' in started) throw notMade(spec, (await started.failed).message)
  const { child } = started
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const standing = async () => {
    const first = await untilStanding(child, spec, world)
    demandCovered(spec, plan, first.pid)
    return first
  }
  const holder = await standing().catch((error: unknown) => {
    child.stdin.destroy()
    child.kill('SIGKILL')
    throw error
  })
  child.unref()
  for (const stream of [child.stdin, child.stdout, child.stderr]) (stream as unknown as { unref(): void }).unref()
  return {
    holder,
    enter: (entering) => {
      // Its number may have come to another process, whose namespaces are not ours.
      if (!isAlive(holder)) throw new WallError('The wall around the run is gone.')
      return enterCommand(spec, { pid: holder.pid, isRoot: plan.isRoot }, entering)
    },
    end: async () => {
      child.stdin.destroy()
      endHolder(holder)
      const late = new AbortController()
      await Promise.race([gone, world.sleep(endMs, late.signal).catch(() => {})])
      late.abort()
    },
  }
}

const notMade = (spec: WallSpec, why: string) =>
  new WallError(`The wall around the run could not be made by ${spec.tool}: ${why}`)

async function untilStanding(
  child: ChildProcessWithoutNullStreams,
  spec: WallSpec,
  world: World,
): Promise<ProcessIdentity> {
  let said = ''
  let complaint = ''
  const failed = (why: string) => notMade(spec, why)
  const pid = await new Promise<number>((resolve, reject) => {
    const cancel = world.after(makeMs, () => reject(failed(`it took longer than ${makeMs / 1000} s.`)))
    const settle = (act: () => void) => {
      cancel()
      act()
    }
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString('latin1')
      if (/^\d+\n/.test(said)) settle(() => resolve(Number.parseInt(said, 10)))
    })
    child.stderr.on('data', (chunk: Buffer) => {
      complaint = `${complaint}${chunk.toString('utf8')}`.slice(0, 1000)
    })
    child.once('error', (error) => settle(() => reject(failed(error.message))))
    child.once('close', () => settle(() => reject(failed(complaint.trim() || 'it ended without saying why.'))))
  })
  const identity = identityOf(pid)
  if (identity === null) throw failed('its first process ended at once.')
  return identity
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
