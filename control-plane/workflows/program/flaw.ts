import type { Node } from 'acorn'
import type { FlawCode } from '../../../shared/api/workflow-words.ts'

/** A place in a program, counted from 1; null where there is none. */
export interface SourcePosition {
  line: number | null
  column: number | null
}

/** The place and the reason for which a program is refused. */
export interface ProgramFlaw extends SourcePosition {
  code: FlawCode
  message: string
}

export const programFlaw = (code: FlawCode, message: string, node?: Pick<Node, 'loc'>): ProgramFlaw => ({
  code,
  message,
  ...positionOf(node),
})

export const positionOf = (node?: Pick<Node, 'loc'>): SourcePosition => ({
  line: node?.loc?.start.line ?? null,
  column: node?.loc ? node.loc.start.column + 1 : null,
})
