import { posix } from 'node:path'
import { inputsOf, type ToolCall } from '../../shared/permissions/call-inputs.ts'
import type { CallReach } from '../../shared/permissions/reach.ts'
import type { JudgedPlace } from '../../shared/permissions/patterns/path-rules.ts'

/** A place for the judge where no folder is reached by a link. */
export function judgedPlace(change: Partial<JudgedPlace> = {}): JudgedPlace {
  const cwd = change.cwd ?? '/srv/app'
  return {
    cwd,
    homeDir: '/home/ada',
    realCwd: cwd,
    realPatterns: new Map(),
    ownFolders: [],
    svcProgram: null,
    ...change,
  }
}

/** Returns what a call reaches for on a machine where nothing exists, so that no link leads elsewhere. */
export function plainReach(call: ToolCall, { cwd }: JudgedPlace): CallReach {
  const inputs = inputsOf(call)
  const paths = inputs.paths.map(({ text, rest }) => ({
    text,
    forms: [posix.resolve(cwd, text)],
    rest,
    isFolder: rest !== '',
    doubt: null,
  }))
  return { inputs, paths }
}
