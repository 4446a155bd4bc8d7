import type { Node } from 'acorn'
import type { FlawCode } from '../../../shared/api/workflow-words.ts'

/** Why a program is refused. `line` and `column` count from 1; null where the reason has no place. */
export interface Flaw {
  code: FlawCode
  message: string
  line: number | null
  column: number | null
}

export const flawOf = (code: FlawCode, message: string, node?: Pick<Node, 'loc'>): Flaw => ({
  code,
  message,
  line: node?.loc?.start.line ?? null,
  column: node?.loc ? node.loc.start.column + 1 : null,
})
