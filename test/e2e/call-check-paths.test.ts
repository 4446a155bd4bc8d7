import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { version } from '../../shared/lib/version.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import { isLong } from '../kit/forms.ts'
import { ClaudeDevice } from '../kit/claude-device.ts'
import type { StubTool } from '../kit/stub-llm.ts'

// Links that lead out of what a run may touch, with the real daemon, its run hosts and the real Claude Code.

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

/** Returns how the run ended, and what the model was told after it made the calls, one after another. */
async function played(permissions: Partial<RunSpec['permissions']>, calls: readonly StubTool[]) {
  await machine.stub.script({ run: { steps: [...calls.map((tool) => ({ tool })), { text: 'That was it.' }] } })
  const { report } = await machine.play({
    permissions: { allow: [], ask: [], deny: [], defaultMode: 'strict', ...permissions },
  })
  const request = (await machine.stub.requests()).at(-1)
  return { report, heard: JSON.stringify(request?.body['messages']) }
}
const shell = (command: string) => ({ kind: 'shell', command }) as const

test("a rule holds for a folder however a link leads into or out of it, svc's own files are out of reach, and the run's own svc needs no rule and nothing comes along with it", async () => {
  writeFileSync(inWork('readme.txt'), 'hello from the work folder')
  const { stateDir } = machine.device
  const read = (path: string) => ({ name: 'Read', input: { file_path: path } })
  const rules = { allow: ['Write(src/**)', 'Read', 'Bash(cat:*)'], deny: [`Read(${outside}/**)`] }
  const { report, heard } = await played(rules, [
    write(inWork('src/plain.txt')),
    write(inWork('src/link/written.txt')),
    write(inWork('src/dangling.txt')),
    write(inWork('src/link/../above.txt')),
    shell('svc version'),
    shell('svc version && echo along'),
    shell('svc device status'),
    read(inWork('src/link/id')),
    read(`/proc/self/root${outside}/id`),
    read(inWork('src/../../outside/id')),
    read(join(stateDir, 'device-token')),
    shell(`cat ${join(stateDir, 'device-token')}`),
    read(inWork('readme.txt')),
  ])
  // A rule that allows a folder allows nothing that a link in it leads to.
  expect(readFileSync(inWork('src/plain.txt'), 'utf8')).toBe('by claude\n')
  expect(existsSync(join(outside, 'written.txt'))).toBe(false)
  expect(existsSync(join(outside, 'new.txt'))).toBe(false)
  expect(existsSync(join(machine.root, 'above.txt'))).toBe(false)
  expect(heard).toContain(version)
  expect(heard).not.toContain('along\\n')
  expect(heard.match(/no rule allows it/g)).toHaveLength(4)
  // A rule that forbids a folder forbids every way to it.
  expect(heard).not.toContain('the key of a person')
  expect(heard.match(/was denied/g)).toHaveLength(9)
  expect(heard).not.toContain('svc_dev_x')
  expect(heard.match(/holds files of svc itself/g)).toHaveLength(2)
  expect(heard).toContain('hello from the work folder')
  expect(report).toMatchObject({ exitReason: 'completed', message: null })
})

// In the short form harness-all.test.ts shows such a run, and call-judge.test.ts what is said of it.
if (isLong) {
  test('a run whose agent was allowed nothing is no success', async () => {
    const { report } = await played({}, [write(inWork('a.txt')), write(inWork('b.txt'))])
    const message = expect.stringContaining(
      'All 2 tool calls that the agent tried were denied by its permissions: the mode strict.',
    )
    expect(report).toMatchObject({ exitReason: 'error', message })
  })
}
