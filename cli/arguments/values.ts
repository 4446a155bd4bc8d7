import { flagsFor, hint } from './parse.ts'
import type { Command, ParsedArguments } from './command.ts'
import { valueAt } from './named-things.ts'
import { usageError } from '../errors/cli-error.ts'
import type { CommandFlag, PositionalSpec } from '../../shared/api/command.ts'

/** The values of a command line, in the form the call takes. The server checks everything else about them. */
export interface Values {
  params: Record<string, string>
  query: Record<string, unknown>
  /** Undefined when nothing of the body was given. */
  body: Record<string, unknown> | undefined
  /** Values for the command's own flow, by the name of the flag or positional. */
  local: Record<string, unknown>
  /** Names of flags that are accepted and dropped. */
  dropped: string[]
}

export interface ValueSources {
  resolvePath: (given: string) => string
  readInput: () => Promise<Buffer>
}

export async function valuesOf(command: Command, parsed: ParsedArguments, sources: ValueSources): Promise<Values> {
  const values: Values = { params: {}, query: {}, body: undefined, local: {}, dropped: [] }
  const setBy = new Map<string, string>()
  for (const flag of flagsFor(command)) {
    const given = parsed.flags[flag.name]
    if (given === undefined) {
      if (flag.default === undefined) continue
      if (flag.target === null) values.local[flag.name] = flag.default
      else place(values, flag.target, flag.default)
      continue
    }
    if (flag.dropped === true) {
      values.dropped.push(flag.name)
      continue
    }
    const value = await flagValue({ command, flag }, given, sources)
    if (flag.target === null) values.local[flag.name] = value
    else {
      const other = setBy.get(flag.target)
      if (other !== undefined) throw usageError(`--${other} and --${flag.name} cannot be given together.`)
      setBy.set(flag.target, flag.name)
      demandName(`--${flag.name}`, flag.target, value)
      place(values, flag.target, value)
    }
  }
  for (const positional of command.positionals) {
    const words = parsed.positionals[positional.name]
    if (words === undefined) continue
    if (positional.target === null) values.local[positional.name] = positional.variadic === true ? words : words[0]
    else if (setBy.has(positional.target))
      throw usageError(
        `<${positional.name}> and --${setBy.get(positional.target)} cannot be given together.`,
        hint(command),
      )
    else {
      demandName(`<${positional.name}>`, positional.target, words[0])
      place(values, positional.target, isNull(positional, words[0]!) ? null : words[0])
    }
  }
  for (const flag of command.flags) {
    if (flag.required === true && parsed.flags[flag.name] === undefined && !isSet(values, flag.target)) {
      throw usageError(`\`svc ${command.name}\` needs --${flag.name}.`, `For example: ${command.example}`)
    }
  }
  return values
}

/** An empty part of a path would be that of another route. */
function demandName(spelling: string, target: string, value: unknown): void {
  if (value === '' && target.startsWith('params.'))
    throw usageError(`${spelling} is empty: it names nothing.`, 'Is a variable unset?')
}

/** The command's word for null (such as `none`) and `null` itself both mean null. */
const isNull = ({ nullWord }: PositionalSpec, word: string) =>
  nullWord !== undefined && (word === nullWord || word === 'null')

interface FlagOf {
  command: Command
  flag: CommandFlag
}

async function flagValue({ command, flag }: FlagOf, given: readonly (string | boolean)[], sources: ValueSources) {
  // Of a flag that takes one value the last one counts.
  const taken = flag.repeatable === true ? given.flatMap((item) => wordsOf(flag, item)) : given.slice(-1)
  const read: unknown[] = []
  for (const item of taken) read.push(await itemValue({ command, flag }, item, sources))
  if (flag.repeatable !== true) return read[0]
  if (!read.includes(null)) return read
  if (read.length > 1) throw usageError(`--${flag.name} ${flag.nullWord} stands alone: it clears all of them.`)
  return null
}

/** Words of a closed list have no commas, so several may be given at once: `--events run.failed,run.succeeded`. */
const wordsOf = ({ choices }: CommandFlag, item: string | boolean): (string | boolean)[] =>
  choices !== undefined && typeof item === 'string' ? item.split(',') : [item]

async function itemValue({ command, flag }: FlagOf, item: string | boolean, sources: ValueSources): Promise<unknown> {
  if (flag.kind === 'boolean') return item
  if (typeof item === 'boolean') return flag.bare
  if (flag.nullWord !== undefined && item === flag.nullWord) return null
  if (flag.choices !== undefined && !flag.choices.includes(item)) {
    throw usageError(`--${flag.name} cannot be \`${item}\`. It takes ${flag.choices.join(', ')}.`)
  }
  switch (flag.kind) {
    case 'number':
      if (!/^-?\d{1,15}(\.\d{1,15})?$/.test(item))
        throw usageError(
          `--${flag.name} cannot be \`${item}\`. It takes ${(await formOf(command, flag)) ?? 'a number'}.`,
        )
      return Number(item)
    case 'json':
      return jsonFrom(item, `--${flag.name}`, (await formOf(command, flag)) ?? 'JSON')
    case 'file':
      return (await (await import('../machine/input.ts')).readFileOrInput(item, sources, `--${flag.name}: `)).toString(
        'utf8',
      )
    default:
      return item
  }
}

/** A flag's or positional's text, or null when it was not given. */
export function localText({ local }: Values, name: string): string | null {
  const value = local[name]
  return typeof value === 'string' ? value : null
}

export function localTexts({ local }: Values, name: string): readonly string[] {
  const value = local[name]
  return Array.isArray(value) ? (value as string[]) : []
}

export function jsonFrom(text: string, where: string, takes?: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    const form = takes === undefined ? '' : ` It takes ${takes}.`
    throw usageError(`${where} is not JSON: ${(error as Error).message}.${form}`)
  }
}

/** Read only for a refusal: what the flag takes, in words. */
async function formOf({ name }: Command, flag: CommandFlag): Promise<string | undefined> {
  const { acceptedForms } = await import('./accepted-forms.ts')
  return acceptedForms(name)[`--${flag.name}`]
}

export function place(values: Values, target: string, value: unknown): void {
  const [part, ...path] = target.split('.') as ['params' | 'query' | 'body', ...string[]]
  if (part === 'params') {
    values.params[path[0]!] = String(value)
    return
  }
  if (part === 'body') values.body ??= {}
  let at = part === 'query' ? values.query : values.body!
  for (const key of path.slice(0, -1)) at = (at[key] ??= {}) as Record<string, unknown>
  at[path.at(-1)!] = value
}

function isSet(values: Values, target: string | null): boolean {
  return target !== null && valueAt(values, target) !== undefined
}
