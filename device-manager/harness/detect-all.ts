import { realpath, stat } from 'node:fs/promises'
import type { World } from '../../shared/lib/world.ts'
import type { HarnessName } from '../../shared/runs/harnesses.ts'
import type { HarnessAdapter, HarnessProbe, HarnessReadiness, ProbeResult } from './adapter.ts'
import { messageOf } from '../log/host-log.ts'
import { notInstalled } from './parts/readiness.ts'
import { adapters } from './registry.ts'

export type Readiness = Record<string, HarnessReadiness>

/**
 * Looks at all harnesses, beside the start of runs and never in it: a start takes what `known` holds. A version is asked
 * again only when its program has changed (path, time, size); whether it is signed in is looked at each time, for a
 * person signs in and out without changing the program.
 */
export interface HarnessDetector {
  /** Looks now, or takes part in the look that is under way, or returns the last one if it is younger than `maxAgeMs`. */
  detect(probe: HarnessProbe, maxAgeMs?: number): Promise<Readiness>
  /** Looks anew: the look begins after this call, so what changed before it is seen. */
  detectAnew(probe: HarnessProbe): Promise<Readiness>
  /** Returns what the last look said; null before the first. */
  known(): Readiness | null
  versionOf(name: HarnessName): string | null
}

type Detectable = Pick<HarnessAdapter, 'name' | 'detect'>

export function harnessDetector(options: { world: World; harnesses?: readonly Detectable[] }): HarnessDetector {
  const { world, harnesses = adapters } = options
  const versions: VersionCache = new Map()
  let last: { readiness: Readiness; at: number } | null = null
  let running: Promise<Readiness> | null = null

  const look = async (probe: HarnessProbe): Promise<Readiness> => {
    const cached = withVersionCache(probe, versions)
    // One after the other: each may start a program that weighs hundreds of megabytes, beside runs that need the room.
    const readiness: Readiness = {}
    for (const harness of harnesses) readiness[harness.name] = await detectSafely(harness, cached)
    last = { readiness, at: world.monotonic() }
    return readiness
  }
  /** One look at a time: `after` is the one that is under way. */
  const begin = (probe: HarnessProbe, after: Promise<Readiness> | null): Promise<Readiness> => {
    const own = Promise.resolve(after).then(() => look(probe))
    running = own
    const over = () => {
      if (running === own) running = null
    }
    own.then(over, over)
    return own
  }
  return {
    detect(probe, maxAgeMs = 0) {
      if (last !== null && world.monotonic() - last.at < maxAgeMs) return Promise.resolve(last.readiness)
      return running ?? begin(probe, null)
    },
    detectAnew: (probe) => begin(probe, running),
    known: () => last?.readiness ?? null,
    versionOf: (name) => last?.readiness[name]?.version ?? null,
  }
}

async function detectSafely(harness: Detectable, probe: HarnessProbe): Promise<HarnessReadiness> {
  try {
    return await harness.detect(probe)
  } catch (error) {
    return notInstalled(`${harness.name} could not be looked at: ${messageOf(error)}`)
  }
}

/** Program -> what its `--version` said, and of which file. */
type VersionCache = Map<string, { of: string; result: ProbeResult }>

function withVersionCache(probe: HarnessProbe, cache: VersionCache): HarnessProbe {
  return {
    ...probe,
    async run(file, args, timeoutMs) {
      if (args.length !== 1 || args[0] !== '--version') return probe.run(file, args, timeoutMs)
      const of = await fingerprint(file)
      const held = cache.get(file)
      if (held !== undefined && of !== null && held.of === of) return held.result
      const result = await probe.run(file, args, timeoutMs)
      // A program that was too slow once, on a busy machine, is asked again.
      if (of !== null && result.exitCode === 0) cache.set(file, { of, result })
      return result
    },
  }
}

async function fingerprint(file: string): Promise<string | null> {
  try {
    // Version managers put a link on the PATH and change where it leads.
    const path = await realpath(file)
    const { mtimeMs, size } = await stat(path)
    return `${path}:${mtimeMs}:${size}`
  } catch {
    return null
  }
}
