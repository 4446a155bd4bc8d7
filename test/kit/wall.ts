import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { writeSettings } from '../../device-manager/isolation/setting.ts'
import type { WallSpec, WallTool } from '../../device-manager/wall/spec.ts'
import { marksOf } from '../../device-manager/wall/hidden.ts'
import { enteringPrograms } from '../../device-manager/wall/namespaces.ts'
import { findPrograms } from '../../device-manager/isolation/trial.ts'

/** The wall as the daemon would order it for this state folder; null where this machine has no program that makes one. */
export function wallSpecOf(
  stateDir: string,
  tool: WallTool = bestTool(),
  hidden: readonly string[] = [],
  doors: readonly string[] = [],
): WallSpec | null {
  const programs = findPrograms(tool === 'bwrap' ? [...enteringPrograms, 'bwrap'] : enteringPrograms)
  if (process.platform !== 'linux' || 'missing' in programs) return null
  const marks = marksOf([stateDir, ...hidden])
  const executed = { always: [], checkout: null }
  return { tool, programs: programs.found, stateDir, hidden: [...hidden], marks, doors: [...doors], executed }
}

/** As `svc device set --isolation off` does: no daemon of this state folder tries the wall, and no run is given one. */
export function turnIsolationOff(stateDir: string): void {
  writeSettings(join(stateDir, 'settings.json'), { isolation: 'off', folders: {} })
}

export const hasBubblewrap = existsSync('/usr/bin/bwrap')

function bestTool(): WallTool {
  return hasBubblewrap ? 'bwrap' : 'unshare'
}
