import type { Command } from './command.ts'
import { exitCodes } from './exit-codes.ts'

/** Texts of help. The flags of a command are laid out by yargs (arguments-yargs.ts). */

/** Route, callers and codes of a command, as they stand under its flags. */
export async function epilogueOf(command: Command): Promise<string> {
  const { route } = command
  if (route === null) return 'Exit codes: svc help exit-codes'
  const { errorCodes, plainErrors } = await import('../shared/api/error-codes.ts')
  const known: Record<string, { status: number | readonly number[]; message: string }> = {
    ...errorCodes,
    ...plainErrors,
  }
  const codes = route.errors.map((code) => {
    const entry = known[code]
    const status = entry === undefined ? '' : [entry.status].flat()[0]
    return `  ${code}${status === '' ? '' : ` (${status})`}: ${entry?.message ?? ''}`
  })
  return [
    `Route: ${route.method} ${route.path}`,
    `For: ${route.callers}`,
    codes.length === 0
      ? 'Errors: only those of all routes.'
      : `Errors, beside those of all routes:\n${codes.join('\n')}`,
    'Exit codes: svc help exit-codes',
  ].join('\n')
}

/** All commands, or those whose names begin with `prefix`. */
export function overviewOf(commands: readonly Command[], prefix: string): string {
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
    lines.push(`  svc ${command.name.padEnd(width)}  ${command.summary}`)
  }
  return [
    `Usage: svc ${prefix === '' ? '' : `${prefix} `}COMMAND [flags]`,
    '',
    ...lines,
    '',
    ...(prefix === ''
      ? [
          'Within a run, `current` is the run, `me` its agent; svc calls with SVC_TOKEN to SVC_API_URL.',
          'Results go to standard output (JSON where it is not a terminal), messages to standard error.',
          '',
          'svc COMMAND --help   flags, an example, the route and its error codes',
          'svc help exit-codes  what the exit status says',
        ]
      : [`svc ${prefix} COMMAND --help for flags, an example, the route and its error codes.`]),
  ].join('\n')
}

export function exitCodesText(): string {
  return Object.values(exitCodes)
    .map(({ status, text }) => `${String(status).padStart(3)}  ${text}`)
    .join('\n')
}
