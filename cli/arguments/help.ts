import { flagsFor, spellingsOf } from './parse.ts'
import type { Command } from './command.ts'
import type { ListedCommand } from './commands.ts'
import { exitCodes } from '../errors/exit-codes.ts'
import { brokenLine } from '../output/broken-lines.ts'
import type { CommandFlag, PositionalSpec } from '../../shared/api/command.ts'

/** The text of `svc COMMAND --help`: usage, flags, an example, the route, its callers and its error codes. */
export async function helpOf(command: Command, width: number): Promise<string> {
  const flags = flagsFor(command).filter((flag) => flag.hidden !== true)
  const rows = [
    ...command.positionals.map((positional) => [`<${positional.name}>`, aboutPositional(positional)] as const),
    ...flags.map((flag) => [spellingOf(flag), notesOf(flag)] as const),
    ['--help', 'Show this help.'] as const,
  ]
  return [
    `Usage: svc ${usageOf(command)}`,
    '',
    ...brokenLine(command.summary, width),
    ...(command.description === undefined ? [] : brokenLine(command.description, width)),
    '',
    ...inColumns(rows, width),
    '',
    'For example:',
    `  ${command.example}`,
    '',
    ...(await routeLines(command, width)),
    'Exit codes: svc help exit-codes',
  ].join('\n')
}

function aboutPositional({ description = '', nullWord }: PositionalSpec): string {
  return nullWord === undefined ? description : `${description} (\`${nullWord}\` is read as null)`.trim()
}

function usageOf(command: Command): string {
  const positionals = command.positionals.map(({ name, variadic, default: fallback, isOptional }) => {
    const dots = variadic === true ? '...' : ''
    return fallback === undefined && isOptional !== true ? `<${name}${dots}>` : `[${name}${dots}]`
  })
  const needed = command.flags.filter((flag) => flag.required === true).map((flag) => `--${flag.name} <${flag.kind}>`)
  return [command.name, ...positionals, ...needed, '[flags]'].join(' ')
}

function spellingOf(flag: CommandFlag): string {
  const names = spellingsOf(flag).join(', ')
  if (flag.kind === 'boolean') return names
  return flag.bare === undefined ? `${names} <${flag.kind}>` : `${names} [${flag.kind}]`
}

function notesOf(flag: CommandFlag): string {
  const notes = [
    flag.required === true ? 'needed' : null,
    flag.choices === undefined ? null : `one of ${flag.choices.join(', ')}`,
    flag.nullWord === undefined ? null : `\`${flag.nullWord}\` clears it`,
    flag.default === undefined ? null : `default ${JSON.stringify(flag.default)}`,
    flag.repeatable === true ? 'may be repeated' : null,
  ].filter((note) => note !== null)
  return [flag.description, notes.length === 0 ? '' : `(${notes.join('; ')})`].join(' ').trim()
}

async function routeLines({ route }: Command, width: number): Promise<string[]> {
  if (route === null) return []
  const { errorCodes, plainErrors } = await import('../../shared/api/error-codes.ts')
  const known: Record<string, { status: number | readonly number[]; message: string }> = {
    ...errorCodes,
    ...plainErrors,
  }
  const codes = route.errors.map((code) => {
    const entry = known[code]
    return [entry === undefined ? code : `${code} (${[entry.status].flat()[0]})`, entry?.message ?? ''] as const
  })
  return [
    `Route: ${route.method} ${route.path}`,
    `For: ${route.callers}`,
    codes.length === 0 ? 'Errors: only those of all routes.' : 'Errors, beside those of all routes:',
    ...inColumns(codes, width),
  ]
}

const maxLeft = 34

function inColumns(rows: readonly (readonly [string, string])[], width: number): string[] {
  const left = Math.min(maxLeft, Math.max(...rows.map(([name]) => name.length)))
  return rows.flatMap(([name, text]) => {
    const [first = '', ...more] = brokenLine(text, Math.max(30, width - left - 4))
    const head =
      name.length > left ? [`  ${name}`, `  ${' '.repeat(left)}  ${first}`] : [`  ${name.padEnd(left)}  ${first}`]
    return [...head, ...more.map((line) => `  ${' '.repeat(left)}  ${line}`)].map((line) => line.trimEnd())
  })
}

/** All commands, or those whose names begin with `prefix`. */
export function overviewOf(commands: readonly ListedCommand[], prefix: string, columns: number): string {
  const shown = commands.filter(
    (command) => command.hidden !== true && (prefix === '' || command.name.startsWith(`${prefix} `)),
  )
  const width = Math.max(...shown.map((command) => command.name.length))
  const lines: string[] = []
  let topic: string | null = null
  for (const command of shown) {
    const own = command.name.split(' ')[0]!
    if (prefix === '' && topic !== null && own !== topic && (command.name.includes(' ') || topic !== '')) lines.push('')
    topic = command.name.includes(' ') ? own : ''
    const [first = '', ...more] = brokenLine(command.summary, Math.max(24, columns - width - 8))
    lines.push(`  svc ${command.name.padEnd(width)}  ${first}`, ...more.map((line) => ' '.repeat(width + 8) + line))
  }
  return [
    `Usage: svc ${prefix === '' ? '' : `${prefix} `}COMMAND [flags]`,
    '',
    ...lines,
    '',
    ...(prefix === ''
      ? [
          'Within a run, `current` is the run and `me` its agent; svc calls SVC_API_URL with SVC_TOKEN.',
          'Results go to standard output (JSON where it is not a terminal), messages to standard error.',
          '',
          'svc COMMAND --help   flags, an example, the route and its error codes',
          'svc help exit-codes  the meaning of each exit status',
        ]
      : [`svc ${prefix} COMMAND --help for flags, an example, the route and its error codes.`]),
  ].join('\n')
}

export function exitCodesText(): string {
  return Object.values(exitCodes)
    .map(({ status, text }) => `${String(status).padStart(3)}  ${text}`)
    .join('\n')
}

/** What `svc` alone prints: where to begin. */
export function shortHelp(): string {
  return `svc runs AI coding agents on your own machines.

Usage: svc COMMAND [flags]

Give work
  svc task create --title "Fix the log-in page" --assignee @builder
  svc agent run @builder --prompt "Look into the slow tests"
  svc run watch run_3nB7cW1yHsD5jK9q

See what goes on
  svc status                   what waits for you, what works, what failed
  svc why RUN-OR-TASK          why it waits or failed, and what helps
  svc run list                 runs, and what they wait for
  svc task list                tasks
  svc approval list            what agents ask to be allowed to do
  svc question list            what agents ask you

Agents and where they work
  agent      create, change and inspect agents
  device     connect this machine, see its state
  folder     the folders that agents work in
  secret     keys that runs are given; also connection, mcp, skill, plugin

More
  automation, workflow         work that starts by itself
  conversation, comment        talk with agents
  file, wiki, learning         what is kept
  workspace, project, member   where it all belongs

Begin
  svc login                    sign in to a server
  svc whoami                   who you are to it
  svc help                     all commands
  svc COMMAND --help           the flags of one, with an example
  svc run list --json id,status --jq '.[].id'`
}
