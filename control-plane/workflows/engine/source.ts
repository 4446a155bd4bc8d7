// A program as the engine evaluates it: the body of an async function, at the places where its author wrote it.

export const programFile = 'workflow.js'
const before = '(async function () {"use strict";'
/** The program up to its `export`. The checks saw to it that only blanks and comments come before `export const meta`. */
const untilExport = /^((?:\s|\/\/[^\n\r\u2028\u2029]*|\/\*[\s\S]*?\*\/)*)export\b/

/** `export` is blanked out, so that all places but those of the first line stay as they are. */
export const wrapped = (source: string): string => `${before}${source.replace(untilExport, '$1      ')}\n})`

/** The first place in the program that a stack names, from 1; null where none is named. */
export function positionIn(stack: string): { line: number | null; column: number | null } {
  const found = /\bworkflow\.js:(\d+)(?::(\d+))?/.exec(stack)
  if (found === null) return { line: null, column: null }
  const line = Number(found[1])
  const column = found[2] === undefined ? null : Number(found[2]) - (line === 1 ? before.length : 0)
  return { line, column: column === null || column < 1 ? null : column }
}
