import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { realWorld } from '../../shared/lib/world.ts'
import type { AskedCall } from '../../shared/runs/asked-call.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import { nothingNames } from '../kit/programs.ts'
import { fetchClaude, signInClaude } from '../kit/real-claude.ts'
import { runSpecFixture } from '../kit/run-spec.ts'
import { startStubLlm, type StubLlm } from '../kit/stub-llm.ts'
import { TestDevice } from '../kit/system-device.ts'
import { ScriptedServer } from '../kit/system-scripted-server.ts'

/**
 * A tool call that must be asked, with the real daemon, its run hosts and the real Claude Code; the control plane and the
 * model's server are played by the test.
 */

let found: ReturnType<typeof fetchClaude>
let root: string
let folder: string
let stub: StubLlm
let server: ScriptedServer
let device: TestDevice

beforeAll(async () => {
  found = fetchClaude()
  if ('missing' in found) {
    process.stderr.write(`\n*** NOT TESTED: the real claude is not available here. ${found.missing}\n\n`)
    return
  }
  root = realpathSync(mkdtempSync(join(tmpdir(), 'svc-ask-')))
  folder = join(root, 'work')
  mkdirSync(folder)
  stub = await startStubLlm()
  server = await ScriptedServer.start()
  device = new TestDevice({ name: 'device', root, env: {} })
  signInClaude(device.homeDir, { binDir: found.binDir, modelUrl: `${stub.url}/s/run` })
  device.identify({ publicId: 'dvc_1', deviceId: 'd', token: 'svc_dev_x', displayName: 'device', server: server.url })
  await device.start()
})
beforeEach((context) => {
  if ('missing' in found) context.skip(found.missing)
})
afterAll(async () => {
  await device?.end()
  await server?.stop()
  await stub?.stop()
  if (!root) return
  await nothingNames(root)
  rmSync(root, { recursive: true, force: true, maxRetries: 5 })
})

/** Runs to the end; what the headers of its frames asked goes with the report. */
async function play(change: Partial<RunSpec>) {
  const lease = { runId: realWorld.id('run_'), fence: 1 }
  const spec = runSpecFixture(lease.runId, {
    harness: 'claude',
    command: null,
    folder: { shortId: 'fs_1', rootPath: folder },
    permissions: { allow: [], ask: ['Bash'], deny: [], defaultMode: 'full' },
    ...change,
  })
  const report = await server.play(lease, spec)
  const headers = server.events.filter(({ runId }) => runId === lease.runId)
  return { report, told: headers.flatMap(({ approvals }) => approvals ?? []) }
}
const shell = (command: string) => ({ kind: 'shell', command }) as const
const made = (name: string) => existsSync(join(folder, name))

test('a call is asked, the run woken by its answer makes it, and another call is asked again', async () => {
  await stub.script({
    run: { steps: [{ text: 'I deploy.', tool: shell('echo done > deployed.txt') }, { text: 'Hm.' }] },
  })
  const first = await play({ prompt: 'Deploy it.' })
  expect(first.report).toMatchObject({ exitReason: 'approval_requested', exitCode: 0, forced: false })
  expect(first.told).toMatchObject([
    {
      name: 'Bash',
      inputDigest: expect.stringMatching(/^[0-9a-f]{64}$/),
      safeSummary: 'Bash: echo done > deployed.txt',
      toolArgs: { command: 'echo done > deployed.txt' },
      prompt: expect.stringContaining('asks to use Bash (rule: Bash)'),
    },
  ])
  expect(first.report.approvals).toEqual(first.told)
  expect(made('deployed.txt')).toBe(false)
  // It stopped where it was: the model was not asked once more.
  expect(await stub.requests()).toHaveLength(1)

  const allowCalls = first.told.map(({ name, inputDigest }: AskedCall) => ({ name, inputDigest, approvalId: 'apr_1' }))
  await stub.script({
    run: {
      steps: [
        { text: 'Allowed, then.', tool: shell('echo done > deployed.txt') },
        { text: 'And now all of it.', tool: shell('echo done > everything.txt') },
        { text: 'Hm.' },
      ],
    },
  })
  const second = await play({
    prompt: 'Your call of Bash was approved. Make it again.',
    resumeSessionId: first.report.sessionId,
    allowCalls,
  })
  expect(readFileSync(join(folder, 'deployed.txt'), 'utf8')).toBe('done\n')
  expect(made('everything.txt')).toBe(false)
  expect(second.report).toMatchObject({ exitReason: 'approval_requested', sessionId: first.report.sessionId })
  expect(second.told).toMatchObject([{ safeSummary: 'Bash: echo done > everything.txt' }])
  expect(second.told[0]!.inputDigest).not.toBe(first.told[0]!.inputDigest)
  // The model was told what it had asked before, and what became of it.
  const [request] = await stub.requests()
  const messages = JSON.stringify(request?.body['messages'])
  for (const text of ['Deploy it.', 'I deploy.', 'is asked now', 'was approved']) expect(messages).toContain(text)
})

test('all calls of one turn are asked together, and one that is allowed beside them waits', async () => {
  const tools = [
    shell('echo 1 > one.txt'),
    { kind: 'write', path: 'beside.txt', content: 'x' } as const,
    shell('echo 2 > two.txt'),
  ]
  await stub.script({ run: { steps: [{ tools }, { text: 'Hm.' }] } })
  const { report, told } = await play({})
  expect(report.exitReason).toBe('approval_requested')
  expect(told.map(({ safeSummary }) => safeSummary)).toEqual(['Bash: echo 1 > one.txt', 'Bash: echo 2 > two.txt'])
  for (const name of ['one.txt', 'beside.txt', 'two.txt']) expect(made(name), name).toBe(false)
})

test('an approval is good for one call', async () => {
  await stub.script({ run: { steps: [{ tool: shell('echo x >> log.txt') }, { text: 'Hm.' }] } })
  const { told, report } = await play({})
  const allowCalls = told.map(({ name, inputDigest }) => ({ name, inputDigest, approvalId: 'apr_1' }))
  await stub.script({ run: { loop: true, steps: [{ tool: shell('echo x >> log.txt') }] } })
  const again = await play({ allowCalls, resumeSessionId: report.sessionId })
  expect(again.report.exitReason).toBe('approval_requested')
  expect(again.told).toMatchObject([{ inputDigest: told[0]!.inputDigest }])
  expect(readFileSync(join(folder, 'log.txt'), 'utf8')).toBe('x\n')
})
