import { execFile } from 'node:child_process'
import { sandboxFactsIn, type SandboxFacts } from '../../shared/device/sandbox.ts'
import { sandboxPlaces } from '../../shared/runs/sandbox-places.ts'
import type { World } from '../../shared/lib/world.ts'
import { inGib, MemoryWatch } from './memory.ts'

/** Watches that end a run in a sandbox before the sandbox is of no more use. */
export interface SandboxWatch {
  /** Returns a sentence about a process that ended for want of memory; null: none did. */
  exhausted(exit: Parameters<MemoryWatch['exhausted']>[0]): string | null
  stop(): void
}

export interface Exhaustion {
  message: string
  outOfMemory: boolean
}

/** Begins to watch; null: this is no sandbox. */
export function watchSandbox(
  world: World,
  onExhausted: (exhaustion: Exhaustion) => void,
  env: NodeJS.ProcessEnv = process.env,
): SandboxWatch | null {
  const facts = sandboxFactsIn(env)
  if (facts === null) return null
  const memory = new MemoryWatch(world, facts.size, (message) => onExhausted({ message, outOfMemory: true }))
  const stopDisk = watchDisk(world, facts, (message) => onExhausted({ message, outOfMemory: false }))
  return {
    exhausted: (exit) => memory.exhausted(exit),
    stop() {
      memory.stop()
      stopDisk()
    },
  }
}

const restMs = 10_000
/** Counting takes at most this part of the time, where there are many files. */
const restTimes = 20
const countMs = 120_000

/** Counts what is on the volume again and again, since it has no limit of its own. Returns the function that stops that. */
function watchDisk(world: World, { size, diskBytes }: SandboxFacts, onFull: (message: string) => void): () => void {
  if (diskBytes === undefined) return () => undefined
  let isStopped = false
  let cancel = world.after(restMs, count)
  function count(): void {
    const begunAt = world.monotonic()
    // A process of its own: a million files would hold up the host. What it may not read it leaves out, and says so by its status.
    const options = { timeout: countMs, killSignal: 'SIGKILL' as const, env: { PATH: '/usr/bin:/bin' }, cwd: '/' }
    execFile('du', ['-skx', sandboxPlaces.work], options, (_error, stdout) => {
      if (isStopped) return
      const bytes = Number(/^(\d+)\s/.exec(stdout)?.[1] ?? 0) * 1024
      if (bytes > diskBytes!)
        return onFull(
          `The disk of the sandbox is full (${size}): its volume holds ${inGib(bytes)} of ${inGib(diskBytes!)}.`,
        )
      cancel = world.after(Math.max(restMs, (world.monotonic() - begunAt) * restTimes), count)
    })
  }
  return () => {
    isStopped = true
    cancel()
  }
}
