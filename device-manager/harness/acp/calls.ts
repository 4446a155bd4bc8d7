import { canonicalJson } from '../../../shared/lib/canonical-json.ts'
import { inputsOf, isCommandField } from '../../../shared/permissions/call-inputs.ts'
import type { RunSpec, ToolRule } from '../../../shared/runs/spec.ts'
import type { NamedCall } from '../adapter.ts'

const kinds: ReadonlySet<string> = new Set(
  'read edit delete move search execute think fetch switch_mode other'.split(' '),
)
const pathFields = ['file_path', 'filePath', 'path', 'absolute_path', 'abs_path'] as const
const commandFields = ['command', 'cmd', 'script'] as const
const unnamedPrefix = 'acp__'
const oldTextFields = ['old_string', 'oldString', 'old_str', 'oldText', 'old_text'] as const

/**
 * The name by which rules know a call. A program says only the kind of a tool, so a name is given where the raw input, which
 * is what will be run, shows what the call does; else it is `acp__<kind>`. null: its kind is one that rules speak of by name,
 * and its input does not show enough to be judged. `mcpName`: the tool of a server that svc gave it (mcp-servers.ts), which needs no
 * guess.
 */
export function namedCall(
  kind: string | null | undefined,
  rawInput: unknown,
  mcpName: string | null = null,
): NamedCall | null {
  if (mcpName !== null) return { name: mcpName, input: rawInput ?? {} }
  const known = kind != null && kinds.has(kind) ? kind : 'other'
  const input = typeof rawInput === 'object' && rawInput !== null ? (rawInput as Record<string, unknown>) : {}
  const has = (fields: readonly string[]) => fields.some((field) => typeof input[field] === 'string')
  // A call with a command is a shell's, whatever kind it says.
  if (has(commandFields)) return { name: 'Bash', input }
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
      return { name: `${unnamedPrefix}${known}`, input: rawInput ?? {} }
  }
}

/** A call as a question or the program's telling of it shows it. */
export interface AcpShownCall {
  kind: string | null
  rawInput: unknown
  /** It is a tool of a server that svc gave. */
  mcpName: string | null
}

/**
 * Whether a call was made as it was asked. A program may tell more of an input than it did in its question, such as the folder of the
 * run, but all that the lists judge, and each field that was shown, must be what is run. `cwds`: that folder, in its spellings.
 */
export function isSameCall(asked: AcpShownCall, made: AcpShownCall, cwds: readonly string[]): boolean {
  const [before, after] = [asked, made].map(({ kind, rawInput, mcpName }) => namedCall(kind, rawInput, mcpName))
  if (!before || !after || before.name !== after.name) return false
  if (made.mcpName !== null) return canonicalJson(before.input) === canonicalJson(after.input)
  const [one, other] = [before, after].map(({ input }) => fieldsOf(input))
  const isShown = (field: string) => Object.hasOwn(other!, field) && !isCommandField(field)
  return (
    judgedOf(before, cwds) === judgedOf(after, cwds) &&
    Object.keys(one!).every((field) => !isShown(field) || canonicalJson(one![field]) === canonicalJson(other![field]))
  )
}

/** What the lists judge of a call. A command may stand in several fields, with its arguments beside it. */
function judgedOf(call: NamedCall, cwds: readonly string[]): string {
  const { commands, paths, urls, doubt } = inputsOf(call)
  const isElsewhere = ({ text }: { text: string }) => !cwds.some((cwd) => text === cwd || text === `${cwd}/`)
  return canonicalJson([commands, paths.filter(isElsewhere), urls, doubt])
}

const fieldsOf = (input: unknown) =>
  (typeof input === 'object' && input !== null ? input : {}) as Record<string, unknown>

/**
 * A tool of a kind that says nothing about it may be the one that a rule of `ask` or `deny` is about, so it must not run by
 * the mode `full` or by a rule for any tool. A rule that names it says that it may.
 */
export function mustBeNamed({ permissions }: Pick<RunSpec, 'permissions'>, name: string): boolean {
  const { allow, ask, deny, defaultMode } = permissions
  if (!name.startsWith(unnamedPrefix) || ask.length + deny.length === 0) return false
  const tools = [...allow, ...ask, ...deny].map(toolOf)
  return !tools.includes(name) && (defaultMode === 'full' || allow.some((rule) => toolOf(rule).includes('*')))
}

/**
 * Whether the lists let every call of this tool run, whatever its input: all that can be said of one that was not asked. A
 * rule with a wildcard in its name may be about any tool.
 */
export function isAlwaysAllowed({ permissions }: Pick<RunSpec, 'permissions'>, name: string): boolean {
  const { allow, ask, deny, defaultMode } = permissions
  if (mustBeNamed({ permissions }, name) || [...ask, ...deny].some((rule) => mayConcern(rule, name))) return false
  return defaultMode === 'full' || allow.some((rule) => rule === name)
}

const toolOf = (rule: ToolRule): string =>
  (typeof rule === 'string' ? rule.split('(', 1)[0]! : rule.tool).trim().toLowerCase()

function mayConcern(rule: ToolRule, name: string): boolean {
  const tool = toolOf(rule)
  return tool.includes('*') || tool === name.toLowerCase()
}
