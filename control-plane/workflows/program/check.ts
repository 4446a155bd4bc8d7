import { parse, type ExportNamedDeclaration, type Program } from 'acorn'
import { simple } from 'acorn-walk'
import { programFlaw, positionOf, type ProgramFlaw, type SourcePosition } from './flaw.ts'
import { firstFree } from './free-names.ts'
import { readLiteral } from './literal.ts'
import { programMeta, type ProgramMeta } from './meta.ts'

/**
 * The checks of a program that need no engine: it parses, imports nothing, begins with a plain `meta`, and uses no name
 * that a program is not given. Its cost is decided by whoever sent it, so it runs in a worker.
 */
export type Checked = CheckedProgram | { flaw: ProgramFlaw }

export interface CheckedProgram {
  meta: ProgramMeta
  /** The place of `meta.name`, for a name that is right by itself and wrong where it is sent. */
  nameAt: SourcePosition
}

/** Names of other hosts' globals. The engine has none of them; a program that uses one expects to be run elsewhere. */
export const bannedNames: ReadonlySet<string> = new Set([
  'fetch',
  'XMLHttpRequest',
  'WebSocket',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'clearTimeout',
  'clearInterval',
  'clearImmediate',
  'queueMicrotask',
  'process',
  'require',
  'module',
  'exports',
  'eval',
  'Function',
  'WebAssembly',
  'globalThis',
  'global',
  'window',
  'self',
  'Worker',
  'Atomics',
  'SharedArrayBuffer',
  'WeakRef',
  'FinalizationRegistry',
  'performance',
  'crypto',
])

export function checkProgram(source: string): Checked {
  const parsed = parseProgram(source)
  if ('flaw' in parsed) return parsed
  const { program } = parsed
  const imported = importIn(program)
  if (imported !== null) return { flaw: imported }
  const read = metaOf(program)
  if ('flaw' in read) return read
  const banned = firstFree(program, bannedNames)
  if (banned !== null)
    return { flaw: programFlaw('workflow_banned_global', `A program has no \`${banned.name}\`.`, banned) }
  return read
}

function parseProgram(source: string): { program: Program } | { flaw: ProgramFlaw } {
  try {
    const options = { ecmaVersion: 2025, sourceType: 'module', locations: true } as const
    return { program: parse(source, { ...options, allowReturnOutsideFunction: true }) }
  } catch (error) {
    // Some patterns and deep nesting make the parser run out of its stack.
    if (error instanceof RangeError)
      return { flaw: programFlaw('workflow_syntax', 'The program is nested too deeply.') }
    if (!(error instanceof SyntaxError)) throw error
    const { loc } = error as SyntaxError & { loc?: { line: number; column: number } }
    const message = error.message.replace(/ \(\d+:\d+\)$/, '')
    return { flaw: { ...programFlaw('workflow_syntax', `${message}.`), ...(loc && place(loc)) } }
  }
}

const place = ({ line, column }: { line: number; column: number }) => ({ line, column: column + 1 })

function importIn(program: Program): ProgramFlaw | null {
  let found: ProgramFlaw | null = null
  const refuse = (node: Parameters<typeof programFlaw>[2]) => {
    found ??= programFlaw('workflow_import', 'A program imports nothing.', node)
  }
  simple(program, {
    ImportDeclaration: refuse,
    ImportExpression: refuse,
    ExportAllDeclaration: refuse,
    MetaProperty(node) {
      if (node.meta.name === 'import') refuse(node)
    },
    ExportNamedDeclaration(node) {
      if (node.source != null) refuse(node)
    },
  })
  return found
}

function metaOf(program: Program): Checked {
  const [first, ...others] = program.body
  const init = first?.type === 'ExportNamedDeclaration' ? metaInit(first) : null
  if (init === null)
    return { flaw: programFlaw('workflow_meta_missing', 'A program begins with `export const meta = { ... }`.', first) }
  const other = others.find(({ type }) => type.startsWith('Export'))
  if (other !== undefined)
    return { flaw: programFlaw('workflow_syntax', 'A program exports `meta` and nothing else.', other) }
  const literal = init.type === 'ObjectExpression' ? readLiteral(init) : { misfit: init }
  if ('misfit' in literal)
    return { flaw: programFlaw('workflow_meta_not_literal', '`meta` holds plain values only.', literal.misfit) }
  const parsed = programMeta.safeParse(literal.value)
  if (parsed.success) return { meta: parsed.data, nameAt: positionOf(literal.places.get('name')) }
  const [issue] = parsed.error.issues
  const path = (issue?.path ?? []).map(String)
  const node = nearestPlace(literal.places, path)
  const at = path.length === 0 ? '`meta`' : `\`meta.${path.join('.')}\``
  return { flaw: programFlaw('workflow_meta_invalid', `${at}: ${issue?.message ?? 'is invalid'}.`, node) }
}

/** Returns what `meta` is set to; null when this declares another thing. */
function metaInit({ declaration }: ExportNamedDeclaration) {
  if (declaration?.type !== 'VariableDeclaration' || declaration.kind !== 'const') return null
  const [declared, second] = declaration.declarations
  if (declared?.id.type !== 'Identifier' || declared.id.name !== 'meta' || second !== undefined) return null
  return declared.init ?? null
}

/** The node at the path, or at the longest part of it that the program has. */
function nearestPlace<Part>(places: ReadonlyMap<string, Part>, path: readonly string[]): Part | undefined {
  for (let length = path.length; length > 0; length--) {
    const found = places.get(path.slice(0, length).join('.'))
    if (found !== undefined) return found
  }
  return places.get('')
}
