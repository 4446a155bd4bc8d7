import { WallError, type WallSpec } from '../../wall/spec.ts'
import type { RunState } from '../machine.ts'

/** The base environment for harnesses of this machine, ready before a run needs it. */
export interface HarnessSurroundings {
  /** Returns the environment where it is at hand, or else a promise of it. */
  env(): Record<string, string> | Promise<Record<string, string>>
  homeDir: string
  shell: string
  svcBinDir: string | null
  versionOf(harness: RunState['spec']['harness']): string | null
  /** Says that the harness is too old to be started, and how it is updated; null: it is not, as far as is known. */
  tooOld(harness: RunState['spec']['harness']): string | null
  /** Returns how the run's wall is made, or null. Fails with a WallError when it cannot be made. */
  wall(): (WallSpec | null) | Promise<WallSpec | null>
}

/**
 * Returns the ending of a run whose harness is too old. The control plane keeps such runs waiting, but may have given one before
 * it was told, or without knowing of versions. A command step of a workflow starts no harness.
 */
export function tooOldStop({ gate, harness }: RunState['spec'], surroundings: Pick<HarnessSurroundings, 'tooOld'>) {
  const message = gate == null ? surroundings.tooOld(harness) : null
  return message === null ? null : ({ exitReason: 'harness_start_failed', message } as const)
}

/** Returns how the wall is made, or a text that says why the run cannot be started: it never is without the wall that it should have. */
export function wallOrTrouble(
  surroundings: Pick<HarnessSurroundings, 'wall'>,
): (WallSpec | null | string) | Promise<WallSpec | null | string> {
  const wall = surroundings.wall()
  if (!(wall instanceof Promise)) return wall
  return wall.catch((error: unknown) => {
    if (error instanceof WallError) return error.message
    throw error
  })
}
