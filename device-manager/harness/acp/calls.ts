import type { RunSpec, ToolRule } from '../../../shared/runs/spec.ts'

/** A tool call as the agent's lists name it. */
export interface NamedCall {
  name: string
  input: unknown
}

const kinds: ReadonlySet<string> = new Set(
  'read edit delete move search execute think fetch switch_mode other'.split(' '),
)
const pathFields = ['file_path', 'filePath', 'path', 'absolute_path', 'abs_path'] as const
const oldTextFields = ['old_string', 'oldString', 'old_str', 'oldText', 'old_text'] as const

/**
 * The name by which rules know a call. A program says only the kind of a tool, so a name is given where the raw input, which
 * is what will be run, shows what the call does; else it is `acp__<kind>`. null: its kind is one that rules speak of by name,
 * and its input does not show enough to be judged.
 */
export function namedCall(kind: string | null | undefined, rawInput: unknown): NamedCall | null {
  const known = kind != null && kinds.has(kind) ? kind : 'other'
  const input = typeof rawInput === 'object' && rawInput !== null ? (rawInput as Record<string, unknown>) : {}
  const has = (fields: readonly string[]) => fields.some((field) => typeof input[field] === 'string')
  // Whatever kind it says: what holds a command is a shell's.
  if (has(['command', 'cmd', 'script'])) return { name: 'Bash', input }
  switch (known) {
    case 'read':
      return has(pathFields) ? { name: 'Read', input } : null
    case 'edit':
      if (!has(pathFields)) return null
      return { name: has(oldTextFields) || !has(['content']) ? 'Edit' : 'Write', input }
    case 'fetch':
      return has(['url']) ? { name: 'WebFetch', input } : null
    case 'execute':
      return null
    default:
      return { name: `acp__${known}`, input: rawInput ?? {} }
  }
}

/** The agent's lists have a say in what its tools do. */
export const isGated = ({ permissions: { defaultMode, ask, deny } }: RunSpec): boolean =>
  defaultMode !== 'full' || ask.length + deny.length > 0

/**
 * Whether the lists let every call of this tool run, whatever its input: all that can be said of one that was not asked. A
 * rule with a wildcard in its name may be about any tool.
 */
export function isAlwaysAllowed({ permissions }: RunSpec, name: string): boolean {
  const { allow, ask, deny, defaultMode } = permissions
  if ([...ask, ...deny].some((rule) => mayConcern(rule, name))) return false
  return defaultMode === 'full' || allow.some((rule) => rule === name)
}

function mayConcern(rule: ToolRule, name: string): boolean {
  const tool = (typeof rule === 'string' ? rule.split('(', 1)[0]! : rule.tool).trim().toLowerCase()
  return tool.includes('*') || tool === name.toLowerCase()
}
