import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { version } from '../../shared/lib/version.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import { ClaudeDevice } from '../kit/claude-device.ts'
import type { StubTool } from '../kit/stub-llm.ts'

/** Links that lead out of what a run may touch, with the real daemon, its run hosts and the real Claude Code. */

let machine: ClaudeDevice
let missing: string | null = null
let outside: string

beforeAll(async () => {
  const started = await ClaudeDevice.start()
  if ('missing' in started) {
    missing = started.missing
    return
  }
  machine = started
  outside = join(machine.root, 'outside')
  mkdirSync(outside)
  mkdirSync(join(machine.folder, 'src'))
  writeFileSync(join(outside, 'id'), 'the key of a person\n')
  symlinkSync(outside, join(machine.folder, 'src', 'link'))
  symlinkSync(join(outside, 'new.txt'), join(machine.folder, 'src', 'dangling.txt'))
})
beforeEach((context) => {
  if (missing !== null) context.skip(missing)
})
afterAll(() => machine?.stop())

const inWork = (name: string) => join(machine.folder, name)
const write = (path: string) => ({ name: 'Write', input: { file_path: path, content: 'by claude\n' } })

/** Returns what the model was told after it made the calls, one after another. */
async function heard(permissions: Partial<RunSpec['permissions']>, calls: readonly StubTool[]): Promise<string> {
  await machine.stub.script({ run: { steps: [...calls.map((tool) => ({ tool })), { text: 'That was it.' }] } })
  await machine.play({ permissions: { allow: [], ask: [], deny: [], defaultMode: 'strict', ...permissions } })
  const request = (await machine.stub.requests()).at(-1)
  return JSON.stringify(request?.body['messages'])
}

test('a rule that allows a folder allows nothing that a link in it leads to', async () => {
  const said = await heard({ allow: ['Write(src/**)'] }, [
    write(inWork('src/plain.txt')),
    write(inWork('src/link/written.txt')),
    write(inWork('src/dangling.txt')),
    write(inWork('src/link/../above.txt')),
  ])
  expect(readFileSync(inWork('src/plain.txt'), 'utf8')).toBe('by claude\n')
  expect(existsSync(join(outside, 'written.txt'))).toBe(false)
  expect(existsSync(join(outside, 'new.txt'))).toBe(false)
  expect(existsSync(join(machine.root, 'above.txt'))).toBe(false)
  expect(said).toContain('no rule allows it')
})

test('a rule that forbids a folder forbids every way to it', async () => {
  const said = await heard({ defaultMode: 'full', deny: [`Read(${outside}/**)`] }, [
    { name: 'Read', input: { file_path: inWork('src/link/id') } },
    { name: 'Read', input: { file_path: `/proc/self/root${outside}/id` } },
    { name: 'Read', input: { file_path: inWork('src/../../outside/id') } },
  ])
  expect(said).not.toContain('the key of a person')
  expect(said.match(/was denied/g)).toHaveLength(3)
})

test("the run's own svc needs no rule, and nothing comes along with it", async () => {
  const shell = (command: string) => ({ kind: 'shell', command }) as const
  const said = await heard({}, [shell('svc version'), shell('svc version && echo along'), shell('svc device status')])
  expect(said).toContain(version)
  expect(said).not.toContain('along\\n')
  expect(said.match(/no rule allows it/g)).toHaveLength(2)
})

test("svc's own files are out of reach, and everything else is as the rules say", async () => {
  writeFileSync(inWork('readme.txt'), 'hello from the work folder')
  const { stateDir } = machine.device
  const said = await heard({ allow: ['Read', 'Bash'] }, [
    { name: 'Read', input: { file_path: join(stateDir, 'device-token') } },
    { kind: 'shell', command: `cat ${join(stateDir, 'device-token')}` },
    { name: 'Read', input: { file_path: inWork('readme.txt') } },
  ])
  expect(said).not.toContain('svc_dev_x')
  expect(said.match(/holds files of svc itself/g)).toHaveLength(2)
  expect(said).toContain('hello from the work folder')
})

test('a run whose agent was allowed nothing is no success, and one that was allowed something is', async () => {
  const calls = [write(inWork('a.txt')), write(inWork('b.txt'))]
  const play = async (allow: string[]) => {
    await machine.stub.script({ run: { steps: [...calls.map((tool) => ({ tool })), { text: 'That was it.' }] } })
    return machine.play({ permissions: { allow, ask: [], deny: [], defaultMode: 'strict' } })
  }
  const message = expect.stringContaining(
    'All 2 tool calls that the agent tried were denied by its permissions: the mode strict.',
  )
  expect((await play([])).report).toMatchObject({ exitReason: 'error', message })
  expect((await play(['Write(a.txt)'])).report).toMatchObject({ exitReason: 'completed', message: null })
})
