import { allFlag, globalFlags, jsonFlag, yesFlag, type Command, type ParsedArguments } from './command.ts'
import type { CommandFlag } from '../../shared/api/command.ts'
import { usageError } from '../errors/cli-error.ts'

// Command lines. Loading yargs takes longer than a whole call, so Node's own parser first reads every line that is
// plainly well formed. yargs reads the rest and says what is wrong (docs/adr/0080). Both give the same result, which a test proves
// for every command.

/** The command's own flags, and the shared ones whose names and letters it does not use. */
export function flagsFor(command: Command): readonly CommandFlag[] {
  const own = new Set(command.flags.flatMap((flag) => [flag.name, ...(flag.aliases ?? [])]))
  const shared = [...(hasPages(command) ? [allFlag] : []), ...(command.asks === true ? [yesFlag] : []), ...globalFlags]
  const left = shared.filter(({ name }) => !own.has(name))
  const flags = [...command.flags, ...left.map((flag) => ({ ...flag, ...ownAliases(flag, own) }))]
  const taken = new Set(flags.flatMap(({ name, aliases }) => [name, ...(aliases ?? [])]))
  return flags.map((flag) => withHabits(flag, taken))
}

/** What flags are also called in gh, where a command has no other use for it. */
const habits: Readonly<Record<string, readonly string[]>> = {
  assignee: ['a'],
  body: ['b'],
  comment: ['c'],
  description: ['body', 'b'],
  jq: ['q'],
  limit: ['L'],
  q: ['search', 'S'],
  status: ['s', 'state'],
  title: ['t'],
}

function withHabits(flag: CommandFlag, taken: Set<string>): CommandFlag {
  const known = Object.hasOwn(habits, flag.name) ? habits[flag.name]!.filter((alias) => !taken.has(alias)) : []
  if (known.length === 0) return flag
  for (const alias of known) taken.add(alias)
  return { ...flag, aliases: [...(flag.aliases ?? []), ...known] }
}

const ownAliases = ({ aliases }: CommandFlag, taken: ReadonlySet<string>) =>
  aliases === undefined ? {} : { aliases: aliases.filter((alias) => !taken.has(alias)) }

/** Whether the command reads a list that comes in pages. */
export const hasPages = ({ list, flags }: Command): boolean =>
  list !== undefined && flags.some(({ target }) => target === 'query.startingAfter' || isCursor(target, flags))

/** Of messages `after` counts rows. */
const isCursor = (target: string | null, flags: readonly CommandFlag[]) =>
  target === 'query.after' && !flags.some((flag) => flag.target === 'query.around')

/** The command with the longest name that `words` begin with, and the rest of them. */
export function matchCommand(
  commands: readonly Command[],
  words: readonly string[],
): { command: Command; rest: string[] } | null {
  for (let length = Math.min(3, words.length); length > 0; length--) {
    const name = words.slice(0, length).join(' ')
    const command = commands.find((candidate) => candidate.name === name)
    if (command !== undefined) return { command, rest: words.slice(length) }
  }
  return null
}

/**
 * Binds values to their flags, which get their main names: `--prompt "- do this"` becomes `--prompt=- do this`, so that no value is
 * taken for a flag. A word that is itself a flag of this command is not bound: there the value was forgotten.
 */
export function bindValues(command: Command, rest: readonly string[]): string[] {
  const flags = new Map<string, CommandFlag>()
  for (const flag of flagsFor(command)) for (const spelling of spellingsOf(flag)) flags.set(spelling, flag)
  return bindFields(command, bindEach(flags, rest))
}

function bindEach(flags: ReadonlyMap<string, CommandFlag>, rest: readonly string[]): string[] {
  const bound: string[] = []
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at]!
    if (word === '--') return [...bound, ...rest.slice(at)]
    const flag = flags.get(word)
    const next = rest[at + 1]
    const takesNext = flag !== undefined && flag.kind !== 'boolean' && flag.bare === undefined && next !== undefined
    const isFlag = next !== undefined && flags.has(next.split('=', 1)[0]!)
    if (takesNext && !isFlag) {
      bound.push(`--${flag.name}=${next}`)
      at++
    } else bound.push(mainSpelling(flags, word))
  }
  return bound
}

function mainSpelling(flags: ReadonlyMap<string, CommandFlag>, word: string): string {
  const spelling = word.split('=', 1)[0]!
  const flag = flags.get(spelling)
  return flag === undefined ? word : `--${flag.name}${word.slice(spelling.length)}`
}

/**
 * `--json` alone means all fields. The word behind it names fields, unless it cannot or the command then lacks a positional that it needs:
 * `svc run list --json id,status`, but `svc run get --json run_3nB7cW1yHsD5jK9q`.
 */
function bindFields(command: Command, bound: readonly string[]): string[] {
  const spelling = `--${jsonFlag.name}`
  const end = bound.indexOf('--')
  const at = bound.indexOf(spelling)
  if (at === -1 || (end !== -1 && end < at) || !flagsFor(command).some(({ name }) => name === jsonFlag.name))
    return [...bound]
  const next = bound[at + 1] ?? ''
  const words = bound.filter((word, place) => (end !== -1 && place > end) || !word.startsWith('-')).length
  const needed = command.positionals.filter((each) => each.default === undefined && each.isOptional !== true).length
  const isFields = /^[A-Za-z]\w*(,\w+)*,?$/.test(next) && words > needed
  return [...bound.slice(0, at), `${spelling}=${isFields ? next : ''}`, ...bound.slice(isFields ? at + 2 : at + 1)]
}

/** The names of the flags in the order in which they stand in a line whose values are bound. */
export function givenFlags(command: Command, bound: readonly string[]): string[] {
  const names = new Map<string, string>()
  for (const flag of flagsFor(command)) for (const spelling of spellingsOf(flag)) names.set(spelling, flag.name)
  const end = bound.indexOf('--')
  return (end === -1 ? bound : bound.slice(0, end)).flatMap((word) => names.get(word.split('=', 1)[0]!) ?? [])
}

/** The spellings of a flag: `--q` for its name, `-f` for an alias of one letter. */
export const spellingsOf = ({ name, aliases }: CommandFlag): string[] => [
  `--${name}`,
  ...(aliases ?? []).map((alias) => (alias.length === 1 ? `-${alias}` : `--${alias}`)),
]

/** Reads a plainly well formed line; null leaves it to yargs. */
export function parseQuickly(command: Command, rest: readonly string[]): ParsedArguments | null {
  const flags = flagsFor(command)
  // Only yargs reads flags whose value was left out.
  const isPlain = flags.every((flag) => flag.bare === undefined || !rest.includes(`--${flag.name}`))
  if (!isPlain || hasSwitchedValue(flags, rest)) return null
  const { parseArgs } = process.getBuiltinModule('node:util')
  const options = Object.fromEntries(
    flags.map((flag) => [flag.name, { type: flag.kind === 'boolean' ? 'boolean' : 'string', multiple: true } as const]),
  )
  try {
    const parsed = parseArgs({ args: [...rest], options, allowPositionals: true, strict: true })
    return {
      positionals: placePositionals(command, parsed.positionals),
      flags: Object.fromEntries(
        Object.entries(parsed.values).map(([name, given = []]) => [name, lastSwitch(withBare(flags, name, given))]),
      ),
    }
  } catch {
    return null
  }
}

/** Whether `true` or `false` stands behind a switch: Node's parser takes that word for a positional. */
function hasSwitchedValue(flags: readonly CommandFlag[], rest: readonly string[]): boolean {
  const switches = new Set(flags.filter(({ kind }) => kind === 'boolean').flatMap(spellingsOf))
  return rest.some((word, at) => switches.has(word) && ['true', 'false'].includes(rest[at + 1] ?? ''))
}

/** The empty text stands for the value of a flag that was given without one. */
function withBare(flags: readonly CommandFlag[], name: string, given: readonly (string | boolean)[]) {
  const mayBeBare = flags.some((flag) => flag.name === name && flag.bare !== undefined)
  return mayBeBare ? given.map((item) => (item === '' ? true : item)) : given
}

/** Of a switch that is given more than once the last one holds. */
const lastSwitch = (given: readonly (string | boolean)[]) => (typeof given[0] === 'boolean' ? given.slice(-1) : given)

/** Assigns the words to the command's positionals. Fails when there are too few or too many. */
export function placePositionals(command: Command, words: readonly string[]): Record<string, readonly string[]> {
  const placed: Record<string, readonly string[]> = {}
  let left = words
  for (const positional of command.positionals) {
    const taken = positional.variadic === true ? left : left.slice(0, 1)
    left = left.slice(taken.length)
    if (taken.length > 0) placed[positional.name] = taken
    else if (positional.default !== undefined) placed[positional.name] = [positional.default]
    else if (positional.isOptional !== true) throw missing(command, positional.name)
  }
  if (left.length > 0) {
    throw usageError(`\`svc ${command.name}\` does not take \`${left[0]}\`.`, hint(command))
  }
  return placed
}

const missing = (command: Command, name: string) =>
  usageError(`\`svc ${command.name}\` needs <${name}>.`, hint(command))

export const hint = (command: Command) =>
  `For example: ${command.example}\nType \`svc ${command.name} --help\` for more.`
