import yargs, { type Argv, type Options } from 'yargs'
import { acceptedForms } from './accepted-forms.ts'
import { flagsFor, hint, placePositionals, spellingsOf } from './parse.ts'
import type { Command, ParsedArguments } from './command.ts'
import type { CommandFlag } from '../../shared/api/command.ts'
import { usageError, type CliError } from '../errors/cli-error.ts'
import { didYouMean } from './nearest.ts'
import { adviceOnFlag } from './refused-habits.ts'

/**
 * Reads with yargs the command lines that parseQuickly left, and says what is wrong with them. Fails with exit status 2
 * and a sentence.
 */
export function parseWithYargs(command: Command, rest: readonly string[]): ParsedArguments {
  refuseValues(command, rest)
  refuseNegations(command, rest)
  let fault: string | null = null
  const parser = build(command)
    .strictOptions()
    .exitProcess(false)
    .help(false)
    .fail((message: string | null, error: Error | undefined) => {
      fault ??= message ?? error?.message ?? 'The command line cannot be read.'
    })
  const parsed = parser.parseSync([...rest]) as Record<string, unknown> & { _: (string | number)[] }
  if (fault !== null) throw refusal(command, rest, fault)
  const flags: Record<string, readonly (string | boolean)[]> = {}
  for (const flag of flagsFor(command)) {
    const value = parsed[flag.name]
    if (value === undefined) continue
    const values = (Array.isArray(value) ? value : [value]) as (string | boolean)[]
    flags[flag.name] = values.map((item) => (flag.bare !== undefined && item === '' ? true : item))
    if (flag.bare === undefined && flag.kind !== 'boolean' && values.includes('') && isBare(flag, rest)) {
      const takes = acceptedForms(command.name)[`--${flag.name}`]
      const form = flag.choices?.join(', ') ?? takes
      throw usageError(`--${flag.name} needs a value.${form === undefined ? '' : ` It takes ${form}.`}`, hint(command))
    }
  }
  return { positionals: placePositionals(command, parsed._.map(String)), flags }
}

/** yargs reads any value of a yes-or-no flag that is not `true` as false. */
function refuseValues(command: Command, rest: readonly string[]): void {
  const switches = new Set(
    flagsFor(command)
      .filter(({ kind }) => kind === 'boolean')
      .flatMap((flag) => [...spellingsOf(flag), `--no-${flag.name}`]),
  )
  const end = rest.indexOf('--')
  for (const word of end === -1 ? rest : rest.slice(0, end)) {
    const at = word.indexOf('=')
    if (at === -1 || !switches.has(word.slice(0, at)) || /=(true|false)$/.test(word)) continue
    const name = word.slice(0, at)
    throw usageError(`${name} takes no value, or true or false, not \`${word.slice(at + 1)}\`.`, hint(command))
  }
}

/** yargs takes `--no-` before any flag; of one that takes a value nothing would be left. */
function refuseNegations(command: Command, rest: readonly string[]): void {
  const flags = flagsFor(command)
  const withValue = flags.filter(({ kind }) => kind !== 'boolean').flatMap(spellingsOf)
  const negated = new Set(withValue.map((spelling) => spelling.replace(/^-+/, '--no-')))
  const end = rest.indexOf('--')
  const word = (end === -1 ? rest : rest.slice(0, end)).find((each) => negated.has(each))
  if (word !== undefined && !flags.some(({ name }) => `--${name}` === word)) throw noFlag(command, [word])
}

function build(command: Command): Argv {
  const parser = yargs([]).scriptName('svc').version(false).locale('en').parserConfiguration({
    'camel-case-expansion': false,
    'dot-notation': false,
    'parse-numbers': false,
    'parse-positional-numbers': false,
    'short-option-groups': false,
    'greedy-arrays': false,
    'strip-aliased': true,
  })
  for (const flag of flagsFor(command)) parser.option(flag.name, optionOf(flag))
  return parser
}

function optionOf({ kind, aliases }: CommandFlag): Options {
  return { type: kind === 'boolean' ? 'boolean' : 'string', ...(aliases === undefined ? {} : { alias: [...aliases] }) }
}

/** yargs reads a flag without its value as the empty text; `--flag=` means the empty text. */
function isBare(flag: CommandFlag, rest: readonly string[]): boolean {
  return spellingsOf(flag).some((spelling) => rest.includes(spelling))
}

/** yargs names a flag without its dashes and its `no-`. */
function refusal(command: Command, rest: readonly string[], fault: string): CliError {
  const unknown = /^Unknown arguments?: (.*)$/.exec(fault)?.[1]
  if (unknown === undefined) return usageError(fault, hint(command))
  const end = rest.indexOf('--')
  const typed = (end === -1 ? rest : rest.slice(0, end)).map((word) => word.split('=', 1)[0]!)
  const names = [...new Set(unknown.split(', '))].map(
    (name) =>
      typed.find((word) => word.startsWith('-') && word.replace(/^-+/, '').replace(/^no-(?=.)/, '') === name) ??
      (name.length === 1 ? `-${name}` : `--${name}`),
  )
  return noFlag(command, names)
}

function noFlag(command: Command, names: readonly string[]): CliError {
  const known = flagsFor(command).flatMap(({ name, kind }) =>
    kind === 'boolean' ? [`--${name}`, `--no-${name}`] : [`--${name}`],
  )
  const meant = names.map((name) => adviceOnFlag(command.name, name)).find((advice) => advice !== '')
  const advice = meant ?? (names.length === 1 ? didYouMean(names[0]!, known) : '')
  return usageError(
    names.length === 1 ? `There is no flag ${names[0]}.` : `There are no flags ${names.join(', ')}.`,
    advice === '' ? hint(command) : `${advice}\n${hint(command)}`,
  )
}
