import type { CommandFlag, CommandSpec } from './command.ts'
import { flagsOf } from './flags.ts'
import type { AnyRoute } from './route.ts'

/** A call of a route as it is stored: its parameters and its body. */
export interface StoredCall {
  params: Readonly<Record<string, unknown>>
  body: unknown
}

/** The longest value of a flag; a longer one is shown by its beginning. */
const longestValue = 1_000

/** The command of `svc` that makes this call; null: the command has no flag for something in the body. */
export function commandLineOf(route: AnyRoute, spec: CommandSpec, call: StoredCall): string | null {
  const positionals = spec.positionals ?? []
  const words = positionals.flatMap(({ target, nullWord }) => {
    const value = target === null ? undefined : valueAt(call, target)
    return value === undefined ? [] : [value === null ? (nullWord ?? 'null') : textOf(value)]
  })
  const taken = new Set(positionals.map(({ target }) => target))
  const flags = new Map<string, CommandFlag[]>()
  for (const flag of flagsOf(route, spec))
    if (flag.target !== null && flag.dropped !== true) flags.set(flag.target, [...(flags.get(flag.target) ?? []), flag])
  const given = flagWords(call.body, { at: 'body', flags, taken })
  return given && ['svc', spec.command, ...words.map(quoted), ...given].join(' ')
}

/** The flags for a value of the body and all within it. */
function flagWords(
  value: unknown,
  { at, flags, taken }: { at: string; flags: ReadonlyMap<string, CommandFlag[]>; taken: ReadonlySet<string | null> },
): string[] | null {
  if (value === undefined || taken.has(at)) return []
  const flag = flags.get(at)?.find((one) => fits(one, value))
  if (flag !== undefined) return spelled(flag, value)
  if (value === null && at === 'body') return []
  if (!isObject(value)) return null
  const words: string[] = []
  for (const [key, inner] of Object.entries(value)) {
    const more = flagWords(inner, { at: `${at}.${key}`, flags, taken })
    if (more === null) return null
    words.push(...more)
  }
  return words
}

/** A `file` flag takes the name of a file with the text, which only the caller knows. */
function fits({ kind, repeatable, nullWord }: CommandFlag, value: unknown): boolean {
  if (kind === 'file') return typeof value === 'string'
  if (value === null) return nullWord !== undefined
  if (repeatable === true) return Array.isArray(value) && value.length > 0
  return kind === 'json' || typeof value === kind
}

function spelled({ name, kind, nullWord, repeatable }: CommandFlag, value: unknown): string[] {
  if (kind === 'file') return [`--${name}`, `<(printf %s ${quoted(textOf(value))})`]
  if (value === null) return [`--${name}`, quoted(nullWord ?? 'null')]
  if (kind === 'boolean') return [value === true ? `--${name}` : `--no-${name}`]
  const values = repeatable === true ? (value as unknown[]) : [value]
  return values.flatMap((one) => {
    const text = textOf(one)
    return text.startsWith('-') ? [`--${name}=${quoted(text)}`] : [`--${name}`, quoted(text)]
  })
}

function textOf(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length <= longestValue ? text : `${text.slice(0, longestValue)}…`
}

/** Quotes the text for a shell. */
const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function valueAt(call: StoredCall, target: string): unknown {
  let at: unknown = call
  for (const key of target.split('.')) at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined
  return at
}
