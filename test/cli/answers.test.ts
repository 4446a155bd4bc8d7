import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bindValues, givenFlags, matchCommand, parseQuickly } from '../../cli/arguments/parse.ts'
import { parseWithYargs } from '../../cli/arguments/parse-with-yargs.ts'
import type { Command } from '../../cli/arguments/command.ts'
import { contractCommands } from '../../cli/arguments/commands.ts'
import type { CommandContext } from '../../cli/context/context.ts'
import { readEnvironment } from '../../cli/machine/environment.ts'
import { CliError } from '../../cli/errors/cli-error.ts'
import { flowOf } from '../../cli/flows.ts'
import { createClient } from '../../cli/http/client.ts'
import { createOutput } from '../../cli/output/output.ts'
import type { Caller } from '../../cli/calls/client.ts'
import { valuesOf } from '../../cli/arguments/values.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { isLong } from '../kit/forms.ts'
import type { Answer } from './api-server.ts'
import { exampleWords } from './example-words.ts'
import { makeServedHome, runId, type ServedHome } from './served-home.ts'

// What a network puts in the server's place says 200, too. None of it passes for the server's answer.

const raw =
  (type: string, text: string): Answer =>
  (response) => {
    response.writeHead(200, { 'Content-Type': type })
    response.end(text)
  }
const page = raw('text/html', '<!doctype html><title>Sign in to the network</title>')

let home: ServedHome
let env: Record<string, string>
let answer: Answer = page

beforeAll(async () => {
  home = makeServedHome()
  env = await home.inRun(() => answer)
  mkdirSync(join(home.dir, 'docs'))
  for (const name of ['AGENT.md', 'answer.json', 'task.md', 'result.json', 'tasks.json', 'file.json', 'report.pdf'])
    writeFileSync(join(home.dir, name), '{}')
})
afterAll(() => home.close())

/** The command's work in this process: one for each of all commands would take minutes. */
async function outcomeOf({ name, example }: Command): Promise<string> {
  const { command, rest } = matchCommand(contractCommands(), exampleWords(example))!
  const bound = bindValues(command, rest)
  const parsed = parseQuickly(command, bound) ?? parseWithYargs(command, bound)
  const sources = {
    resolvePath: (given: string) => join(home.dir, given),
    readInput: async () => Buffer.from('{"a":1}'),
  }
  const values = await valuesOf(command, parsed, sources)
  const { stdout, stderr } = process
  const out = createOutput({
    stdout,
    stderr: () => stderr,
    wanted: 'json',
    hasColours: null,
    hasPalette: false,
    pager: null,
    now: () => 0,
    isDebugging: false,
    isInRun: true,
  })
  const caller: Caller = { server: home.api.url, token: 't', source: 'login', workspaceId: null, ownWorkspaceId: 'w' }
  const person = { SVC_CONFIG_DIR: home.dir, SVC_STATE_DIR: home.dir, SVC_DATA_DIR: home.dir, HOME: home.dir }
  const context: CommandContext = {
    command,
    values,
    out,
    ...sources,
    positionals: parsed.positionals,
    givenFlags: givenFlags(command, bound),
    world: realWorld,
    isInteractive: false,
    env: readEnvironment(person),
    connect: async () => createClient(caller, realWorld),
  }
  const flow = await flowOf(command)
  return flow(context).then(
    (status) => `${name}: ends with ${status ?? 0}`,
    (error: Error) => (error instanceof CliError ? `${error.exit} ${error.code}` : `${name}: ${error.message}`),
  )
}

test('no command takes a sign-in page for an answer', async () => {
  const outcomes = new Map<string, string[]>()
  for (const command of contractCommands()) {
    const outcome = await outcomeOf(command)
    outcomes.set(outcome, [...(outcomes.get(outcome) ?? []), command.name])
  }
  // These look for the device of this machine first, and there is none.
  expect(outcomes.get('refused cli.no_device')).toEqual(['device set', 'folder add'])
  expect([...outcomes.keys()].sort()).toEqual(['refused cli.no_device', 'unreachable cli.not_our_server'])
  expect(contractCommands().length).toBeGreaterThan(150)
})

test.each<[string, Answer, string]>([
  ['a page', page, 'is a web page'],
  ['nothing', raw('application/json', ''), 'is empty'],
  ['half of the JSON', raw('application/json', '{"object":"list","data":['), 'breaks off'],
  ['a word', raw('text/plain', 'ok'), 'is no JSON'],
  ['a way elsewhere', { status: 302, headers: { Location: 'http://portal/' } }, 'leads elsewhere'],
])('status 3 and a sentence for %s, of reads, of writes and of any route', async (_, given, sentence) => {
  answer = given
  const write = ['agent', 'run', '@b', '--prompt', 'go']
  const ofAnyRoute = [
    ['api', '/agents'],
    ['api', '/agents', '--paginate'],
    ['api', 'DELETE', '/agents/@b'],
  ]
  // They read answers alike, whatever is wrong with one.
  for (const line of [['run', 'list'], write, ...(isLong || given === page ? ofAnyRoute : [])]) {
    const end = await home.svc(line, { env })
    const shown = line.join(' ')
    expect([end.status, end.stdout], `${shown}: ${end.stderr}`).toEqual([3, ''])
    expect(JSON.parse(end.stderr).error.message, shown).toContain(sentence)
    if (line === write) expect(end.stderr).toContain('Whether the call was carried out is not known.')
  }
})

test('a stream that is none is not opened again and again', async () => {
  answer = page
  for (const line of [
    ['run', 'events', runId, '--follow'],
    ['conversation', 'send', 'cnv_4yI8oP2cLhS6jB0d', 'hello'],
  ]) {
    const end = await home.svc(line, { env })
    expect([end.status, JSON.parse(end.stderr).error.code], line.join(' ')).toEqual([3, 'cli.not_our_server'])
  }
})

test('text that names its request is the server’s', async () => {
  answer = (response) => {
    response.writeHead(200, { 'Content-Type': 'text/plain', 'Request-Id': 'req_1' })
    response.end('up')
  }
  expect(await home.svc(['api', '/anything'], { env })).toEqual({ status: 0, stdout: 'up\n', stderr: '' })
})
