import { inputsOf, type CallInputs, type ToolCall } from './call-inputs.ts'
import { needsPaths } from './decide.ts'
import type { PathLookup } from './path-lookup.ts'
import type { JudgedPlace, PathFact } from './patterns/path-rules.ts'
import type { ToolPermissions } from '../runs/spec.ts'

/** The inputs that a call reaches for, and what its paths lead to. */
export interface CallReach {
  inputs: CallInputs
  paths: readonly PathFact[]
}

/** Looks at the file system only where something depends on it. `cwd`: the folder that the harness says the tool works in. */
export async function reachOf(
  call: ToolCall & { cwd?: string },
  of: { permissions: ToolPermissions; place: JudgedPlace; lookup: PathLookup },
): Promise<CallReach> {
  const { permissions, place, lookup } = of
  const inputs = inputsOf(call)
  if (inputs.paths.length === 0 || !needsPaths(permissions, call)) return { inputs, paths: [] }
  const cwds = [...new Set([place.cwd, call.cwd?.startsWith('/') ? call.cwd : place.cwd])]
  return { inputs, paths: await lookup.pathsOf(inputs.paths, { homeDir: place.homeDir, cwds }) }
}
