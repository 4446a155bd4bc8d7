import { programUrl } from './program-file.ts'
import type { World } from './world.ts'

/**
 * The background service runs by the link to the newest release, so `ps` does not tell which one. A machine that slept for days
 * must have its mark before somebody updates the checkout there.
 */
const everyMs = 60_000

/**
 * Marks this release of a checkout as used, for the removal of old ones (scripts/release.ts). `touch` sets the times of
 * a file, and throws where there is none: then this is no release, or somebody else's.
 */
export function keepRelease(world: Pick<World, 'now' | 'after'>, touch: (file: URL, at: Date) => void): void {
  try {
    touch(new URL('../used', programUrl('cli')), new Date(world.now()))
  } catch {
    return
  }
  world.after(everyMs, () => keepRelease(world, touch))
}
