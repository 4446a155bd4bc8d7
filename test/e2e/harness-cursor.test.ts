import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isLong } from '../kit/forms.ts'
import { goneMs, wholeLog } from '../kit/invariants.ts'
import { nothingNames, waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { makeRepo } from '../kit/system-scenario.ts'

/** A stand-in for Cursor through the whole system: the real one cannot be had without an account. */

let system: TestSystem

beforeAll(async () => {
  system = await TestSystem.start({ devices: 0, device: { isWalled: true } })
  const device = system.makeDevice()
  const bin = join(device.homeDir, 'bin')
  mkdirSync(bin)
  const program = join(import.meta.dirname, '../kit/stand-in-cursor.mjs')
  writeFileSync(join(bin, 'cursor-agent'), `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`, { mode: 0o755 })
  writeFileSync(join(device.homeDir, '.profile'), `export PATH='${bin}':"$PATH"\n`)
  await device.enrol(system.api, system.server.url)
  await device.start()
})
afterAll(() => system?.stop())

async function agentIn(name: string, tools: object): Promise<{ id: string; folder: string }> {
  const { api, root, device } = system
  const folder = join(root, name)
  makeRepo(folder)
  const { shortId } = await api.addFolder({ displayName: name, rootPath: folder, deviceId: device.identity.publicId })
  const { id } = await api.createAgent({ name: `Cursor ${name.length}`, harness: 'cursor', defaultFolderId: shortId })
  await api.call('PUT', `/agents/${id}/config`, { config: { permissions: { tools } } })
  return { id, folder }
}

type Case = [string, object, 'completed' | 'error', boolean]
// cursor.test.ts shows in the short form what print mode tells.
const printed: Case = ['in print mode, whose process lingers', {}, 'completed', false]
test.each<Case>([
  ['by ACP, allowed by a rule', { defaultMode: 'ask', allow: ['Bash'] }, 'completed', true],
  ['by ACP, denied', { deny: ['Bash(echo *)'] }, 'error', false],
  ...(isLong ? [printed] : []),
])('a run %s ends', async (name, tools, exitReason, isMade) => {
  const { api } = system
  const { id, folder } = await agentIn(name, tools)
  const runId = await api.startRun(id, 'Create hello.txt')
  const run = await api.waitForRun(runId, exitReason === 'completed' ? 'succeeded' : 'failed')
  expect(run).toMatchObject({ exitReason, harness: { id: 'cursor' }, toolCallCount: 1 })
  const events = await api.events(runId)
  wholeLog(events, exitReason)
  expect(events.find(({ kind }) => kind === 'tool_call')?.data).toMatchObject({
    name: 'Bash',
    input: { command: 'echo hello > hello.txt' },
  })
  const made = join(folder, 'hello.txt')
  expect(existsSync(made) && readFileSync(made, 'utf8')).toBe(isMade && 'hello\n')
  await nothingNames(runId, goneMs)
})

test('a call that the host had to allow is never made when the host is killed while it waits', async () => {
  const { api, device } = system
  const { id, folder } = await agentIn('killed', { defaultMode: 'ask', allow: ['Bash'] })
  const at = (name: string) => join(folder, name)
  writeFileSync(at('hold'), '')
  const runId = await api.startRun(id, 'Create hello.txt')
  await waitFor(() => existsSync(at('begun')), 'the program has its prompt')
  const { pid } = await device.hostOf(runId)
  process.kill(pid, 'SIGSTOP')
  try {
    writeFileSync(at('go'), '')
    await waitFor(() => existsSync(at('asked')), 'the program asks')
  } finally {
    process.kill(pid, 'SIGKILL')
  }
  expect(await api.waitForRun(runId, 'failed')).toMatchObject({ exitReason: 'crashed' })
  await nothingNames(runId, goneMs)
  expect(existsSync(at('hello.txt'))).toBe(false)
})

// In the short form harness-all.test.ts shows it, and cursor.test.ts that Cursor is not started.
if (isLong) {
  test('in the mode strict, which print mode and ACP cannot hold, it is not started', async () => {
    const { api } = system
    const { id, folder } = await agentIn('strict', { defaultMode: 'strict', allow: ['Bash'] })
    writeFileSync(join(folder, 'hold'), '')
    const runId = await api.startRun(id, 'Create hello.txt')
    const run = await api.waitForRun(runId, 'failed')
    expect(run).toMatchObject({ exitReason: 'harness_start_failed', errorMessage: expect.stringContaining('strict') })
    expect((await api.events(runId)).map(({ kind }) => kind)).not.toContain('started')
    expect(['begun', 'hello.txt'].filter((name) => existsSync(join(folder, name)))).toEqual([])
  })
}
