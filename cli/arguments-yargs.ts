import yargs, { type Argv, type Options } from 'yargs'
import { dashed, flagsFor, hint, placePositionals } from './arguments.ts'
import type { Command, CommandFlag, ParsedArguments } from './command.ts'
import { usageError } from './errors.ts'
import { epilogueOf } from './help.ts'

/** One command as yargs knows it: reads what parseQuickly left, and writes the command's help. */

/** Fails with exit status 2 and a sentence. */
export function parseWithYargs(command: Command, rest: readonly string[]): ParsedArguments {
  let fault: string | null = null
  const parser = build(command)
    .strictOptions()
    .exitProcess(false)
    .help(false)
    .fail((message: string | null, error: Error | undefined) => {
      fault ??= message ?? error?.message ?? 'The command line cannot be read.'
    })
  const parsed = parser.parseSync([...rest]) as Record<string, unknown> & { _: (string | number)[] }
  if (fault !== null) throw usageError(sentence(fault), hint(command))
  const flags: Record<string, readonly (string | boolean)[]> = {}
  for (const flag of flagsFor(command)) {
    const value = parsed[flag.name]
    if (value === undefined) continue
    const values = (Array.isArray(value) ? value : [value]) as (string | boolean)[]
    flags[flag.name] = values.map((item) => (flag.bare !== undefined && item === '' ? true : item))
    if (flag.bare === undefined && flag.kind !== 'boolean' && values.includes('') && isBare(flag, rest)) {
      throw usageError(`--${flag.name} needs a value.`, hint(command))
    }
  }
  return { positionals: placePositionals(command, parsed._.map(String)), flags }
}

export async function helpOf(command: Command): Promise<string> {
  const described = build(command)
  for (const positional of command.positionals) {
    described.positional(positional.name, { describe: positional.description ?? '', type: 'string' })
  }
  return described
    .epilogue(await epilogueOf(command))
    .example(command.example, '')
    .wrap(Math.min(100, process.stdout.columns ?? 100))
    .help()
    .getHelp()
}

function build(command: Command): Argv {
  const parser = yargs([])
    .scriptName('svc')
    .usage(
      `svc ${usageOf(command)}\n\n${command.summary}${command.description === undefined ? '' : `\n${command.description}`}`,
    )
    .version(false)
    .locale('en')
    .parserConfiguration({
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

function optionOf(flag: CommandFlag): Options {
  const { choices, aliases } = flag
  const notes = [
    choices === undefined ? null : `one of ${choices.join(', ')}`,
    flag.nullWord === undefined ? null : `\`${flag.nullWord}\` clears it`,
    flag.repeatable === true ? 'may be repeated' : null,
    flag.kind === 'json' ? 'JSON' : null,
  ].filter((note) => note !== null)
  return {
    type: flag.kind === 'boolean' ? 'boolean' : 'string',
    describe: [flag.description, notes.length === 0 ? '' : `(${notes.join('; ')})`].join(' ').trim(),
    hidden: flag.hidden === true,
    ...(aliases === undefined ? {} : { alias: [...aliases] }),
    ...(flag.required === true ? { group: 'Needed:' } : {}),
  }
}

export function usageOf(command: Command): string {
  const positionals = command.positionals.map(({ name, variadic, default: fallback, isOptional }) => {
    const dots = variadic === true ? '...' : ''
    return fallback === undefined && isOptional !== true ? `<${name}${dots}>` : `[${name}${dots}]`
  })
  return [command.name, ...positionals, '[flags]'].join(' ')
}

/** yargs reads a flag without its value as the empty text; `--flag=` means the empty text. */
function isBare(flag: CommandFlag, rest: readonly string[]): boolean {
  return [flag.name, ...(flag.aliases ?? [])].some((name) => rest.includes(dashed(name)))
}

function sentence(fault: string): string {
  const unknown = /^Unknown arguments?: (.*)$/.exec(fault)?.[1]
  if (unknown === undefined) return fault
  const names = [...new Set(unknown.split(', '))].map(dashed)
  return names.length === 1 ? `There is no flag ${names[0]}.` : `There are no flags ${names.join(', ')}.`
}
