import { pathResolver } from '../machine/input.ts'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { contract } from '../../shared/api/index.ts'
import { bindValues, flagsFor, matchCommand, parseQuickly } from './parse.ts'
import { parseWithYargs } from './parse-with-yargs.ts'
import { globalFlags } from './command.ts'
import { allCommands, contractCommands, listedCommands } from './commands.ts'
import { exitCodes } from '../errors/exit-codes.ts'
import { flowNames } from '../flows.ts'
import { commandWords } from './command-words.ts'
import { commandsFromContract } from './from-contract.ts'
import { helpOf } from './help.ts'
import { callOf } from '../http/route-call.ts'
import { valuesOf } from './values.ts'
import { exampleWords } from '../../test/cli/example-words.ts'

test('the stored table equals the one derived from the contract (node scripts/make-command-table.ts rewrites it)', async () => {
  expect(contractCommands()).toEqual(JSON.parse(JSON.stringify(commandsFromContract())))
  const listed = (await allCommands()).map(({ name, summary, hidden }) => ({
    name,
    summary,
    ...(hidden && { hidden }),
  }))
  expect(await listedCommands()).toMatchObject(listed)
  expect(await listedCommands()).toHaveLength(listed.length)
})

test('every command that makes more than one call has a flow, and every flow has a command', async () => {
  const byHand = contract.flatMap((route) =>
    route.commands.filter((spec) => spec.flow === true).map((spec) => spec.command),
  )
  expect(flowNames).toEqual(expect.arrayContaining(byHand))
  const names = new Set((await allCommands()).map((command) => command.name))
  expect(flowNames.filter((name) => !names.has(name))).toEqual([])
  expect(
    (await allCommands()).filter((command) => command.route === null && !flowNames.includes(command.name)),
  ).toEqual([])
})

test('command names are unique, no command hides a global flag, and no flag has two meanings', async () => {
  const commands = await allCommands()
  expect(new Set(commands.map((command) => command.name)).size).toBe(commands.length)
  for (const command of commands) {
    const names = flagsFor(command).flatMap((flag) => [flag.name, ...(flag.aliases ?? [])])
    expect(new Set(names).size, command.name).toBe(names.length)
    expect(names, command.name).not.toContain('help')
  }
  expect(globalFlags.map((flag) => flag.name)).toEqual(['output', 'json', 'jq', 'color', 'workspace'])
})

test('the example of each command is accepted by svc and fills the path of its route', async () => {
  const commands = await allCommands()
  for (const command of commands) {
    expect(command.example).toMatch(/^svc /)
    const match = matchCommand(commands, exampleWords(command.example))
    expect(match?.command.name, command.example).toBe(command.name)
    const rest = bindValues(command, match!.rest)
    const parsed = parseQuickly(command, rest) ?? parseWithYargs(command, rest)
    const sources = { resolvePath: pathResolver(), readInput: () => Promise.resolve(Buffer.from('text')) }
    const values = await valuesOf(command, parsed, sources)
    if (command.route === null) continue
    const missing = [...command.route.path.matchAll(/\{(\w+)\}/g)]
      .map((found) => found[1]!)
      .filter((name) => values.params[name] === undefined)
    for (const name of missing) {
      const flag = command.flags.find(({ target }) => target === `params.${name}`)
      expect(flag?.fallback, command.example).toBeDefined()
    }
    const params = Object.fromEntries(missing.map((name) => [name, 'own']))
    expect(callOf({ command, values, env: { runId: null } } as never, { params }).path).not.toContain('{')
  }
})

test('the help of each command shows its example, its route and its error codes', async () => {
  for (const command of await allCommands()) {
    const text = await helpOf(command, 100)
    expect(text).toContain(command.example)
    for (const flag of command.flags) if (flag.hidden !== true) expect(text).toContain(`--${flag.name}`)
    for (const code of command.route?.errors ?? []) expect(text).toContain(code)
    if (command.route !== null) expect(text).toContain(`${command.route.method} ${command.route.path}`)
  }
})

test('the help of each command explains each positional in a line of its own: what it is, and of a reference its forms', async () => {
  for (const command of await allCommands()) {
    const lines = (await helpOf(command, 1_000)).split('\n')
    for (const { name, refers } of command.positionals) {
      const line = lines.find((each) => each.startsWith(`  <${name}> `)) ?? ''
      const told = line.slice(`  <${name}> `.length).trim()
      const said = [command.name, name, told]
      expect(said, 'it says what it is').toEqual([command.name, name, expect.stringMatching(/^[A-Z`].{7,}[.)]$/)])
      expect(said, 'it says more than that it has an id').not.toEqual([
        command.name,
        name,
        expect.stringMatching(/^Its? id\b/),
      ])
      if (refers !== undefined)
        expect(said, 'its forms').toEqual([
          command.name,
          name,
          expect.stringMatching(/\b(?:id|UUID|name|slug|key|@handle)s?\b/),
        ])
    }
  }
})

test('docs/cli.md describes each exit status as svc does', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/cli.md'), 'utf8').replaceAll('`', '')
  const rows = page.split('\n').map((line) => line.split('|').map((cell) => cell.trim()))
  for (const { status, text } of Object.values(exitCodes)) expect(rows).toContainEqual(['', String(status), text, ''])
})

/** What only whoever writes requests knows: statuses, methods, headers, and keys of bodies. */
const ofRequests =
  /\b(?:answers?|answered|refused with) [1-5]\d\d\b|\(20\d\)|\b(?:GET|POST|PUT|PATCH|DELETE) \/|server-sent|Last-Event-ID|`Accept|Idempotency-Key|`[a-z]+[A-Z]\w*`|\bin the (?:query|body)\b|by `ids`/

test('what a command says of itself is said to people who type, not to programs that send requests', async () => {
  // Fields of what people read or write as JSON.
  const ofFiles = ['task batch', 'skill list', 'automation hook', 'mcp sign-in']
  const wrong = (await allCommands()).flatMap(({ name, summary, description = '', flags, positionals }) =>
    [summary, description, ...[...flags, ...positionals].map((each) => each.description ?? '')]
      .map((text) => text.replaceAll('`nextCursor`', ''))
      .filter((text) => ofRequests.test(text) && !ofFiles.includes(name))
      .map((text) => `${name}: ${text}`),
  )
  expect(wrong).toEqual([])
})

test('own words are those of commands, flags and positionals that there are', async () => {
  const commands = await allCommands()
  const wrong = Object.entries(commandWords).flatMap(([name, { words = {} }]) => {
    const command = commands.find((each) => each.name === name)
    const names = [...(command?.flags ?? []), ...(command?.positionals ?? [])].map((each) => each.name)
    return command === undefined ? [name] : Object.keys(words).filter((word) => !names.includes(word))
  })
  expect(wrong).toEqual([])
})
