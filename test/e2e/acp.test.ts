import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { RunEvent } from '../../shared/api/run-events.ts'
import { goneMs, wholeLog } from '../kit/invariants.ts'
import { nothingNames, waitFor } from '../kit/programs.ts'
import { qwenCommand, qwenShell } from '../kit/real-acp.ts'
import { fetchHarness, type Fetched } from '../kit/real-harness.ts'
import { startStubLlm, type StubLlm } from '../kit/stub-llm.ts'
import { TestSystem } from '../kit/system.ts'
import { makeRepo } from '../kit/system-scenario.ts'

/** A real program that speaks the Agent Client Protocol, as an agent's own command, through the whole system. */

let found: Fetched
let stub: StubLlm
let system: TestSystem

beforeAll(async () => {
  found = fetchHarness('qwen')
  if ('missing' in found) {
    process.stderr.write(`\n*** NOT TESTED: a real program that speaks ACP is not available here. ${found.missing}\n\n`)
    return
  }
  stub = await startStubLlm()
  system = await TestSystem.start({ devices: 0 })
  const device = system.makeDevice()
  writeFileSync(join(device.homeDir, '.profile'), `export PATH='${found.binDir}':"$PATH"\n`)
  await device.enrol(system.api, system.server.url)
  await device.start()
})
beforeEach((context) => {
  if ('missing' in found) context.skip(found.missing)
})
afterAll(async () => {
  await system?.stop()
  await stub?.stop()
})

function dataOf(events: readonly RunEvent[], kind: string): Record<string, unknown>[] {
  return events.filter((event) => event.kind === kind).map(({ data }) => data)
}

test('a call is asked, approved and made in the same session; in the mode strict it does not start', async () => {
  const { api, root, device } = system
  const folder = join(root, 'Speaker')
  makeRepo(folder)
  const { shortId } = await api.addFolder({
    displayName: 'Speaker',
    rootPath: folder,
    deviceId: device.identity.publicId,
  })
  const own = { command: qwenCommand(`${stub.url}/s/run`), protocol: 'acp' }
  const agent = await api.createAgent({ name: 'Speaker', harness: 'command', defaultFolderId: shortId, ...own })
  const configure = (config: unknown) => api.call('PUT', `/agents/${agent.id}/config`, { config })
  await configure({ permissions: { tools: { ask: ['Bash'] } } })

  const call = qwenShell('echo shipped > shipped.txt')
  await stub.script({ run: { steps: [{ text: 'I ship it.', tool: call }, { text: 'Not reached.' }] } })
  const runId = await api.startRun(agent.id, 'Ship it.')
  expect((await api.waitForRun(runId, 'succeeded')).exitReason).toBe('approval_requested')
  const events = await api.events(runId)
  wholeLog(events, 'approval_requested')
  expect(existsSync(join(folder, 'shipped.txt'))).toBe(false)
  const { data: approvals } = await api.call<{ data: { id: string; runId: string }[] }>('GET', '/approvals')
  const [approval] = approvals.filter((each) => each.runId === runId)
  await stub.script({ run: { steps: [{ text: 'Thank you.', tool: call }, { text: 'Shipped.' }] } })
  await api.insist(`/approvals/${approval!.id}/approve`)
  const woken = await waitFor(async () => (await api.run(runId)).successorRunId, 'the answer wakes a run')
  await api.waitForRun(woken, 'succeeded')
  const after = await api.events(woken)
  wholeLog(after, 'completed')
  expect(dataOf(after, 'permission')).toMatchObject([{ decision: 'allow', rule: `approval:${approval!.id}` }])
  const [session] = dataOf(events, 'session')
  expect(dataOf(after, 'session')).toMatchObject([{ sessionId: session!['sessionId'], resumed: true }])
  expect(readFileSync(join(folder, 'shipped.txt'), 'utf8')).toBe('shipped\n')
  await nothingNames(woken, goneMs)

  await configure({ permissions: { tools: { defaultMode: 'strict' } } })
  const strict = await api.startRun(agent.id, 'Again.')
  expect(await api.waitForRun(strict, 'failed')).toMatchObject({
    exitReason: 'harness_start_failed',
    errorMessage: expect.stringContaining('strict'),
  })
})
