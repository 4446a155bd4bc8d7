import { optimizeNothing } from '../shared/lib/v8.ts'
import { realWorld } from '../shared/lib/world.ts'
import { bindValues, givenFlags, matchCommand, parseQuickly } from './arguments/parse.ts'
import type { Command, ParsedArguments } from './arguments/command.ts'
import type { CommandContext } from './context/context.ts'
import { namedValues } from './arguments/named-things.ts'
import { contractCommandsOf, listedCommands, loadLocalCommands } from './arguments/commands.ts'
import { pathResolver } from './machine/input.ts'
import { pagerIn, readEnvironment } from './machine/environment.ts'
import type { Settings } from './machine/settings.ts'
import { ApiFailure, CliError, usageError } from './errors/cli-error.ts'
import { flowOf } from './flows.ts'
import {
  createOutput,
  endWhenNothingIsTaken,
  findOutputLoss,
  type Output,
  type OutputOptions,
  type WantedFormat,
} from './output/output.ts'
import { valuesOf, type Values } from './arguments/values.ts'

/** Runs one command line and returns the exit status. */
export async function start(argv: readonly string[]): Promise<number> {
  const env = readEnvironment(process.env)
  // A run has no settings of a person, so its calls need not load them.
  const settings = env.run === null ? await (await import('./machine/settings.ts')).readSettings(env) : {}
  const out = createOutput({
    stdout: process.stdout,
    stderr: () => process.stderr,
    ...wantedOutput(argv, env.hasColours, settings),
    hasPalette: env.hasPalette,
    pager: pagerIn(process.env, settings.pager),
    isDebugging: env.isDebugging,
    isInRun: env.run !== null,
    now: () => realWorld.now(),
  })
  endWhenNothingIsTaken(process.stdout, (error) => out.failure(error))
  const status = await answer(argv, { out, env })
  // Nothing may be optimized at the exit; a call that failed before its request has not said so.
  optimizeNothing()
  await out.written()
  const loss = findOutputLoss(process.stdout)
  return loss === null ? status : out.failure(loss)
}

async function answer(argv: readonly string[], { out, env }: Pick<Invocation, 'out' | 'env'>): Promise<number> {
  try {
    if (argv.length === 0 || (argv.length === 1 && asksForHelp(argv))) {
      const { shortHelp } = await import('./arguments/help.ts')
      out.text(shortHelp())
      return 0
    }
    const words = argv
    const match = (await find(words)) ?? (await findByHabit(words))
    if (match === null) return await helpOrFault({ words, out, env })
    if (asksForHelp(match.rest)) {
      const { helpOf } = await import('./arguments/help.ts')
      await out.longText(await helpOf(match.command, out.width))
      return 0
    }
    const line = await readLine(match)
    return await run({ ...line, out, env })
  } catch (error) {
    return out.failure(error)
  }
}

/** Commands of the contract are tried first, so that an agent's calls need not load the rest. */
const find = async (words: readonly string[]) =>
  matchCommand(contractCommandsOf(words[0] ?? ''), words) ?? matchCommand(await loadLocalCommands(), words)

async function findByHabit(words: readonly string[]) {
  const { inOurWords } = await import('./arguments/habits.ts')
  for (const meant of inOurWords(words)) {
    const match = await find(meant)
    if (match !== null) return match
  }
  return null
}

/** Reads the line, as a user of gh means it where it cannot be read as it is. */
async function readLine({ command, rest }: { command: Command; rest: readonly string[] }): Promise<Line> {
  const sources = { resolvePath: pathResolver(), readInput }
  const read = async ({ command: named, rest: words }: { command: Command; rest: readonly string[] }) => {
    const bound = bindValues(named, words)
    const parsed =
      parseQuickly(named, bound) ?? (await import('./arguments/parse-with-yargs.ts')).parseWithYargs(named, bound)
    return { command: named, bound, parsed, sources, values: await valuesOf(named, parsed, sources) }
  }
  try {
    return await read({ command, rest })
  } catch (error) {
    const { meantLine } = await import('./arguments/habit-lines.ts')
    const meant = meantLine(command.name, rest)
    const match = meant === null ? null : await find(meant)
    if (match === null) throw error
    return read(match)
  }
}

interface Line {
  command: Command
  /** The words behind the command, with values bound to their flags. */
  bound: readonly string[]
  parsed: ParsedArguments
  sources: Pick<CommandContext, 'resolvePath' | 'readInput'>
  values: Values
}

interface Invocation extends Line {
  out: Output
  env: ReturnType<typeof readEnvironment>
}

async function run({ command, bound, parsed, sources, values, out: plainOut, env }: Invocation): Promise<number> {
  const out = await inForm(plainOut, command, values.local)
  if (values.dropped.length > 0) {
    const flags = values.dropped.map((name) => `--${name}`).join(', ')
    out.message(
      `svc: ${flags} ${values.dropped.length === 1 ? 'is accepted, but changes' : 'are accepted, but change'} nothing.`,
    )
  }
  const named = values.local['workspace']
  const workspaceId = typeof named === 'string' ? named : null
  const context: CommandContext = {
    command,
    values,
    positionals: parsed.positionals,
    givenFlags: givenFlags(command, bound),
    out,
    env,
    world: realWorld,
    // A getter, because opening standard input takes 3 ms.
    get isInteractive() {
      return env.run === null && process.stdin.isTTY && process.stderr.isTTY
    },
    ...sources,
    async connect() {
      const { callerOf } = await import('./sign-in/caller.ts')
      const { createClient } = await import('./http/client.ts')
      return createClient(await callerOf(env, workspaceId, values.params['workspaceId']), realWorld)
    },
  }
  const names = namedValues(command, values)
  if (names.length > 0) {
    const { resolveNames } = await import('./http/named-references.ts')
    await resolveNames(command, values, names, await context.connect())
  }
  if (command.asks === true && values.local['yes'] !== true && context.isInteractive) await confirm(context)
  const flow = await flowOf(command)
  // A command is over before it would gain by optimized code. One that calls the API says so when its request is under way (client.ts),
  // because Node loads its modules slowly from then on.
  if (command.route === null) optimizeNothing()
  try {
    return (await flow(context)) ?? 0
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error
    const { spellRefusal } = await import('./arguments/refused-values.ts')
    throw spellRefusal(error, context)
  }
}

/** Nobody is asked in a pipe or a run: what runs there goes on as it is told. */
async function confirm({ command, positionals }: CommandContext): Promise<void> {
  const { askYesOrNo } = await import('./machine/ask.ts')
  const { plainText } = await import('./output/terminal-text.ts')
  const named = Object.values(positionals).flat().map(plainText).join(' ')
  const question = `svc ${command.name} ${named}`.trim()
  if (!(await askYesOrNo(`${command.summary}.\n${question}: go on?`)))
    throw new CliError('not_confirmed', 'Nothing was done.')
}

/** With `--json FIELDS` and `--jq` the JSON is printed in a form of its own. */
async function inForm(out: Output, command: Command, { json, jq }: Readonly<Record<string, unknown>>): Promise<Output> {
  if ((json === undefined || json === '') && jq === undefined) return out
  const { fieldsOf, withForm } = await import('./output/form.ts')
  const adviceOn = async (field: string, known: readonly string[]) =>
    (await import('./arguments/refused-habits.ts')).adviceOnField(field, known)
  const fields = await fieldsOf(json, command, adviceOn)
  return withForm(out, { fields, expression: typeof jq === 'string' ? jq : null })
}

/** Read before the command line is parsed, since its errors are shown in this format, too. */
function wantedOutput(
  argv: readonly string[],
  hasColours: boolean | null,
  settings: Settings,
): Pick<OutputOptions, 'wanted' | 'hasColours'> {
  const end = argv.indexOf('--')
  const words = end === -1 ? argv : argv.slice(0, end)
  const valueOf = (...spellings: readonly string[]) => {
    const at = words.findLastIndex((word) => spellings.includes(word.split('=', 1)[0]!))
    return at === -1 ? null : words[at]!.includes('=') ? words[at]!.slice(words[at]!.indexOf('=') + 1) : words[at + 1]
  }
  const [format, flag] = [valueOf('--output', '-o'), valueOf('--color')]
  // In a pipe the form is the same on each machine.
  const chosen = process.stdout.isTTY ? settings.output : undefined
  const colour = flag ?? (hasColours === null ? settings.color : null)
  const isJson = words.some((word) => word === '--json' || word.startsWith('--json=') || /^--jq(=|$)/.test(word))
  return {
    wanted: isJson ? 'json' : (formats.find((name) => name === (format ?? chosen)) ?? null),
    hasColours: colour === 'always' ? true : colour === 'never' ? false : hasColours,
  }
}

const formats: readonly WantedFormat[] = ['json', 'table', 'tsv']

function asksForHelp(rest: readonly string[]): boolean {
  const end = rest.indexOf('--')
  const words = end === -1 ? rest : rest.slice(0, end)
  return words.includes('--help') || words.includes('-h')
}

async function helpOrFault({ words, out, env }: Pick<Invocation, 'out' | 'env'> & { words: readonly string[] }) {
  if (words[0] === '--version' || words[0] === '-v') {
    return run({ ...(await readLine(matchCommand(await loadLocalCommands(), ['version'])!)), out, env })
  }
  const commands = await listedCommands()
  const { overviewOf } = await import('./arguments/help.ts')
  const isHelp = words.includes('--help') || words.includes('-h')
  const names = words.filter((word) => !word.startsWith('-'))
  let prefix = names.slice(0, 2).join(' ')
  while (prefix !== '' && !commands.some((command) => command.name.startsWith(`${prefix} `))) {
    prefix = prefix.includes(' ') ? prefix.split(' ')[0]! : ''
  }
  const isWhole = prefix === names.join(' ')
  if (isWhole && (isHelp || names.length > 0)) {
    await out.longText(overviewOf(commands, prefix, out.width))
    return isHelp ? 0 : 2
  }
  const { inOurWords } = await import('./arguments/habits.ts')
  const refused = (await import('./arguments/refused-habits.ts')).refusedHabitOf(inOurWords(names)[0] ?? [])
  if (refused !== null) throw usageError(refused.message, refused.remediation)
  const { didYouMean } = await import('./arguments/nearest.ts')
  const below = commands.filter(
    ({ name, hidden }) => hidden !== true && (prefix === '' || name.startsWith(`${prefix} `)),
  )
  const place = prefix === '' ? 0 : prefix.split(' ').length
  const wordOf = (name: string) => name.split(' ')[place] ?? ''
  const wanted = names[place] ?? ''
  const before = prefix === '' ? 'svc' : `svc ${prefix}`
  const advice = didYouMean(
    wanted,
    below.map(({ name }) => wordOf(name)),
    (name) => `${before} ${name}`,
  )
  throw usageError(
    `There is no command \`${before} ${wanted}\`.`,
    [
      advice,
      prefix === ''
        ? 'Type `svc help` to see all commands.'
        : `There are: ${below.map(({ name }) => name).join(', ')}.`,
    ]
      .filter((line) => line !== '')
      .join('\n'),
  )
}

async function readInput(): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}
