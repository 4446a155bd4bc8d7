import { idFrom } from '../../shared/lib/ids.ts'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { allCommands } from '../../cli/arguments/commands.ts'
import { parseWithYargs } from '../../cli/arguments/parse-with-yargs.ts'
import { bindValues, matchCommand, parseQuickly } from '../../cli/arguments/parse.ts'
import { valuesOf } from '../../cli/arguments/values.ts'
import type { CommandContext } from '../../cli/context/context.ts'
import { callFrom } from '../../cli/flows/permissions-check-call.ts'
import { CallJudge } from '../../device-manager/run-host/permission/call-judge.ts'
import { machineLinks } from '../../device-manager/run-host/permission/machine-links.ts'
import { realWorld } from '../../shared/lib/world.ts'
import type { ToolCall } from '../../shared/permissions/call-inputs.ts'
import { PathLookup } from '../../shared/permissions/path-lookup.ts'
import type { ToolPermissions } from '../../shared/runs/spec.ts'
import { isLong } from '../kit/forms.ts'
import { TestServer } from '../kit/server.ts'
import { makeHome, type Home } from './run-svc.ts'

// `svc agent permissions check`, by the real program against a real server, beside the call check of a run.

let home: Home
let server: TestServer
let runId: string
let asAgent: Record<string, string>
let work: string

const tools = {
  deny: ['Bash(git push:*)', 'Read(secrets/**)'],
  ask: ['Bash(npm publish:*)', 'Bash(cd:*)'],
  allow: ['Bash(npm test:*)', 'Bash(cd sub)', 'Read(./**)', 'Write(src/**)', 'WebFetch(domain:example.com)'],
}

beforeAll(async () => {
  home = makeHome()
  work = join(home.dir, 'work')
  for (const folder of ['src', 'secrets']) mkdirSync(join(work, folder), { recursive: true })
  writeFileSync(join(work, 'secrets', 'key'), 'x')
  symlinkSync('../secrets/key', join(work, 'src', 'link'))
  server = await TestServer.start()
  const login = await home.svc(['login', '--token', '-', '--server', server.url], { input: server.owner.token })
  if (login.status !== 0) throw new Error(login.stderr)
  const agent = await server.createAgent({ name: 'Builder', harness: 'claude' })
  const lists = Object.entries(tools).flatMap(([list, rules]) => rules.flatMap((rule) => [`--${list}`, rule]))
  await ok(['agent', 'config', 'set', '@builder', ...lists])
  await ok(['company', 'config', 'set', '--mode', 'strict'])
  runId = await server.startRun(agent.id)
  asAgent = { SVC_TOKEN: await server.runToken(idFrom(runId)), SVC_API_URL: server.url, SVC_RUN_ID: runId }
})
afterAll(async () => {
  await server.stop()
  home.remove()
})

const command = ['agent', 'permissions', 'check']
// oxlint-disable-next-line typescript/no-explicit-any
async function ok(line: readonly string[], env: Record<string, string> = {}): Promise<any> {
  const end = await home.svc(line, { env, cwd: work })
  if (end.status !== 0) throw new Error(`svc ${line.join(' ')}: ${end.status} ${end.stderr}`)
  return JSON.parse(end.stdout)
}
const check = (tool: string, input: string, ...more: string[]) =>
  ok([...command, '@builder', '--tool', tool, '--input', input, ...more])

test('it says the answer, the rule, its list and the reason', async () => {
  expect(await check('Bash', 'git push')).toEqual({
    object: 'permission_check',
    agent: '@builder',
    answer: 'deny',
    by: 'rule',
    list: 'deny',
    rule: 'Bash(git push:*)',
    mode: 'strict',
    reason: 'The rule Bash(git push:*) of the deny list holds for it.',
    tool: 'Bash',
    input: { command: 'git push' },
    cwd: work,
    cwdFrom: 'current',
    paths: 'links_followed',
    note: null,
  })
})

type Why = [tool: string, input: string, shown: object]
// page.test.ts shows in the short form why the engine answers as it does.
const more: Why[] = [
  ['Bash', 'npm test $(cat x)', { by: 'mode', reason: expect.stringContaining('`$(cat`') }],
  ['Bash', "npm test 'x", { list: 'deny', reason: expect.stringContaining('cannot be read for certain') }],
  ['Bash', 'npm test && make all', { answer: 'deny', reason: expect.stringContaining('names `make all`') }],
  ['Bash', '$tool x', { list: 'ask', reason: expect.stringContaining('which program `$tool` is') }],
]
test.each<Why>([
  ['Bash', 'svc task get OPS-1', { answer: 'allow', by: 'own_svc', rule: null }],
  ['Read', 'src/link', { answer: 'deny', rule: 'Read(secrets/**)' }],
  ['Read', '/dev/fd/3', { answer: 'deny', by: 'doubt', reason: expect.stringContaining('whatever the rules say') }],
  ...(isLong ? more : []),
])('%s %s says why', async (tool, input, shown) => {
  expect(await check(tool, input)).toMatchObject(shown)
})

/** The same calls, asked of `svc` and of the call check of a run with what the server gave the run. */
describe('the command and the call check of a run agree', () => {
  type Call = [name: string, input: Record<string, string>]
  const bash = (command: string): Call => ['Bash', { command }]
  const read = (path: string): Call => ['Read', { file_path: path }]
  // One engine answers both; page.test.ts shows it in the short form.
  const more = [
    ...['git status', 'npm test', 'cd sub', 'cd x && npm test', 'sudo git push'].map(bash),
    ...['src/a', 'secrets/key', '../x', '/proc/self/root/x'].map(read),
    ['Write', { file_path: 'src/new' }] as Call,
    ['Write', { file_path: 'src/link' }] as Call,
    ['WebFetch', { url: 'https://a.example.com' }] as Call,
  ]
  const calls: Call[] = [
    ...['git push', 'npm publish'].map(bash),
    ...['src/link', '~/x'].map(read),
    ['mcp__x__y', { path: 'src/a' }],
    ...(isLong ? more : []),
  ]

  let permissions: ToolPermissions
  beforeAll(async () => {
    ;({ permissions } = (await ok(['run', 'manifest', runId])) as { permissions: ToolPermissions })
  })
  test.each(calls)('%s %j', async (name, input) => {
    expect(permissions.defaultMode).toBe('strict')
    const lookup = new PathLookup(realWorld, machineLinks)
    const ownFolders = ['config', 'state', 'data'].map((folder) => join(home.dir, folder))
    const facts = { cwd: work, homeDir: home.dir, ownFolders, svcProgram: 'svc' }
    const judge = new CallJudge({
      spec: { agent: { id: idFrom('agt_1'), handle: '@builder', name: 'Builder' }, permissions, allowCalls: [] },
      place: await lookup.placeOf({ ...facts, permissions }),
      redactText: (text) => text,
      mayAct: () => true,
      mayAsk: () => true,
      onAsked: () => {},
    })
    const ask = { askId: '1', toolCallId: null, name, input }
    const { event } = judge.answer(ask, await judge.lookUp(ask, lookup))
    const checked = await ok([...command, '@builder', '--tool', name, '--input-json', JSON.stringify(input)])
    const rule = checked.by === 'own_svc' ? 'svc' : (checked.rule ?? undefined)
    expect(event.data).toEqual({ name, decision: checked.answer, ...(rule !== undefined && { rule }), ...asked(event) })
  })
  const asked = ({ data }: { data: object }) => ('ask' in data ? { ask: data.ask } : {})
})

test('a folder that is not here is judged as it is written, and the answer says so', async () => {
  const shown = await check('Read', 'src/link', '--cwd', '/nowhere/app')
  expect(shown).toMatchObject({ answer: 'allow', cwd: '/nowhere/app', cwdFrom: 'flag', paths: 'as_written' })
  const end = await home.svc([
    ...command,
    '@builder',
    '--tool',
    'Read',
    '--input',
    'a',
    '--cwd',
    '/x',
    '--output',
    'table',
  ])
  expect(end.stdout).toBe(
    'allow: Read (rule Read(./**) of the allow list)\nThe rule Read(./**) of the allow list holds for it.\nJudged in /x (as given; it cannot be looked at on this machine, so paths are judged as written).\n',
  )
})

test('so is one that may not be looked into', async () => {
  // It holds for root, too, which may look into all others.
  symlinkSync('loop', join(work, 'loop'))
  for (const cwd of ['loop', 'loop/below', 'x'.repeat(300)]) {
    const shown = await ok([...command, '@builder', '--tool', 'Read', '--input', 'a.txt', '--cwd', cwd])
    expect(shown).toMatchObject({ answer: 'allow', cwd: join(work, cwd), paths: 'as_written' })
  }
})

test('an agent asks about itself, and about nobody else', async () => {
  const line = ['--tool', 'Bash', '--input', 'npm publish']
  expect(await ok([...command, ...line], asAgent)).toMatchObject({ agent: '@builder', answer: 'ask', list: 'ask' })
  await server.createAgent({ name: 'Other' })
  const end = await home.svc([...command, '@other', ...line], { env: asAgent })
  expect([end.status, JSON.parse(end.stderr).error.code]).toEqual([1, 'agent_self_only'])
})

test('input comes from a file, from standard input, or as JSON', async () => {
  writeFileSync(join(work, 'line'), 'git push')
  writeFileSync(join(work, 'call.json'), '{"path": "secrets/key"}')
  expect(await check('Bash', '@line')).toMatchObject({ answer: 'deny', input: { command: 'git push' } })
  expect(await check('mcp__files__open', '@call.json')).toMatchObject({ by: 'mode', input: { path: 'secrets/key' } })
  const end = await home.svc([...command, '@builder', '--tool', 'Bash', '--input', '@-'], { input: 'npm test' })
  expect(JSON.parse(end.stdout)).toMatchObject({ answer: 'allow', list: 'allow', rule: 'Bash(npm test:*)' })
})

const refused: [line: string[], message: string][] = [
  [['--tool', 'Bash'], 'Give --input or --input-json'],
  [['--tool', 'Bash', '--input', ' '], '--input is empty'],
  [['--tool', '', '--input', 'x'], '--tool is empty'],
  [['--tool', 'x'.repeat(201), '--input-json', '{}'], 'longer than the 200'],
  [['--tool', 'Bash', '--input', 'x', '--input-json', '{}'], 'one of them'],
  [['--tool', 'mcp__a__b', '--input', 'x'], 'give --input-json'],
  [['--tool', 'Bash', '--input-json', '[1]'], 'no JSON object'],
  [['--tool', 'Bash', '--input-json', '{'], 'is not JSON'],
  [['--tool', 'Bash', '--input', '@big'], 'longer than 1048576'],
  [['--tool', 'Bash', '--input', '@none'], 'cannot be read'],
]
const layBig = () => writeFileSync(join(work, 'big'), 'x'.repeat(1_048_577))

/** Reads the call of a line as svc does, without a process of its own. */
async function callOf(line: readonly string[]): Promise<ToolCall> {
  const match = matchCommand(await allCommands(), [...command, '@builder', ...line])!
  const bound = bindValues(match.command, match.rest)
  const parsed = parseQuickly(match.command, bound) ?? parseWithYargs(match.command, bound)
  const sources = {
    resolvePath: (given: string) => resolve(work, given),
    readInput: () => Promise.reject(new Error('nothing is read from standard input')),
  }
  const values = await valuesOf(match.command, parsed, sources)
  return callFrom({ command: match.command, values, ...sources } as unknown as CommandContext)
}

test.each(refused)('%j is refused: %s', async (line, message) => {
  layBig()
  await expect(callOf(line)).rejects.toMatchObject({ exit: 'usage', message: expect.stringContaining(message) })
})

test.each(isLong ? refused : refused.slice(0, 1))('%j is refused by svc itself: %s', async (line, message) => {
  layBig()
  const end = await home.svc([...command, '@builder', ...line], { cwd: work })
  expect([end.status, end.stderr]).toEqual([2, expect.stringContaining(message)])
})
