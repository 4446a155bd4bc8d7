import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { EndReport } from '../../../shared/device/protocol.ts'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'
import { task } from '../resources/tasks-kit.ts'

// Work that goes on in a session that knows nothing of it: the agent is told, and a session that is gone costs no run.

let server: TestServer
let device: FakeDevice
beforeEach(async () => {
  server = await TestServer.start()
  device = await FakeDevice.connect(server)
})
afterEach(() => server?.stop())

const toldSo = /^You worked on this before\. That session is not here, so begin by finding out what is done\.\n\n/
const put = (agentId: string, body: object) => server.ok(`/agents/${agentId}/config`, { method: 'PUT', body })

async function workOn(agentId: string, taskId: string, body: Record<string, unknown> = {}): Promise<FakeRun> {
  await server.startRun(agentId, { taskId, ...body })
  const run = await device.take()
  const { runId, fence } = run
  device.send({ type: 'run.started', runId, fence, harnessStartedAt: server.world.now() })
  return run
}

describe('the first prompt of a new session in the middle of a task', () => {
  test.each([
    [
      'another AGENT.md, which codex keeps for a session',
      { harness: 'codex' },
      (id: string) => put(id, { config: {}, agentMd: 'Be long.' }),
    ],
    [
      'a model of another harness',
      { harness: null, model: 'claude-opus-4-5' },
      (id: string) => put(id, { config: { runtime: { model: 'gpt-5.1-codex' } } }),
    ],
    [
      'its sessions were reset',
      { harness: 'claude' },
      async (id: string) => {
        server.world.advance(10)
        return server.ok(`/agents/${id}/sessions/reset`, { body: {} })
      },
    ],
    [
      'its last session was full',
      { harness: 'opencode' },
      async () => undefined,
      { lostSessionId: 'ses-1', sessionId: null },
    ],
  ])('says so: %s', async (_, settings, change, ending: Partial<EndReport> = { sessionId: 'ses-1' }) => {
    const agent = await server.createAgent({ command: null, ...settings })
    const { id } = await task(server)
    const first = await workOn(agent.id, id, { prompt: 'Begin.' })
    expect(first.spec.prompt).toMatch(/^Begin\./)
    await first.end('error', ending)
    await change(agent.id)
    const second = await workOn(agent.id, id, { prompt: 'Go on.' })
    expect(second.spec).toMatchObject({ resumeSessionId: null, prompt: expect.stringMatching(toldSo) })
    expect(second.spec.prompt).toContain('\n\nGo on.')
    await second.end('completed', { sessionId: 'ses-2' })
    const third = await workOn(agent.id, id, { prompt: 'Once more.' })
    expect(third.spec).toMatchObject({ resumeSessionId: 'ses-2', prompt: expect.stringMatching(/^Once more\./) })
    await third.end()
  })

  test('says nothing where the agent is new to the task, never began, or remembers by itself', async () => {
    const { id } = await task(server)
    const [one, other, plain] = [
      await server.createAgent({ harness: 'claude', command: null }),
      await server.createAgent({ harness: 'claude', command: null }),
      await server.createAgent(),
    ]
    const first = await workOn(one.id, id)
    await first.end('completed', { sessionId: 'ses-1' })
    const second = await workOn(other.id, id, { prompt: 'You too.' })
    expect(second.spec.prompt).toMatch(/^You too\./)
    await second.end('completed', { sessionId: 'ses-2' })
    for (const _ of [1, 2]) {
      const run = await workOn(plain.id, id, { prompt: 'And you.' })
      expect(run.spec.prompt).toMatch(/^And you\./)
      await run.end()
    }
  })
})

describe('a session that is not on its device any more', () => {
  const lose = (run: FakeRun, sessionId: string) =>
    run.end('harness_start_failed', {
      message: 'It is not on this machine.',
      sessionId: null,
      lostSessionId: sessionId,
    })

  test('is begun anew at once, with all that the run was to work with, and once', async () => {
    const agent = await server.createAgent({ harness: 'claude', command: null })
    const { id, key } = await task(server)
    const first = await workOn(agent.id, id, { prompt: 'Begin.' })
    await first.end('completed', { sessionId: 'ses-1' })
    const second = await workOn(agent.id, id, {
      prompt: 'Paint the boat.',
      model: 'claude-opus-4-5',
      reasoningEffort: 'high',
    })
    expect(second.spec.resumeSessionId).toBe('ses-1')
    await lose(second, 'ses-1')
    const third = await device.take()
    expect(third.spec).toMatchObject({
      resumeSessionId: null,
      model: 'claude-opus-4-5',
      reasoningEffort: 'high',
      prompt: expect.stringMatching(new RegExp(`${toldSo.source}Paint the boat\\.`)),
    })
    expect(await server.ok(`/runs/${third.runId}`)).toMatchObject({ parentRunId: second.runId, task: { id: key } })
    expect((await server.ok(`/runs/${second.runId}`)).successorRunId).toBe(third.runId)
    // A device that says so of a run which had no session to lose gets no further one.
    await lose(third, 'ses-1')
    await server.plane.waker.sweep()
    expect((await server.ok(`/runs/${third.runId}`)).successorRunId).toBeNull()
  })

  test.each([
    ['keeps the call that a person approved', true],
    ['on a device of somebody else has a call approved anew, since that device alone says that it was not made', false],
  ])('%s', async (_, isOwn) => {
    if (!isOwn) {
      await device.disconnect()
      const { token } = await server.addPerson('admin')
      device = await FakeDevice.connect(server, { token })
      const path = `/devices/${device.identity.deviceId}`
      await server.ok(path, { method: 'PATCH', body: { isWorkspaceDefault: true }, token })
    }
    const agent = await server.createAgent({ harness: 'claude', command: null })
    await server.startRun(agent.id)
    const asking = await device.take()
    const call = {
      toolCallId: 't',
      name: 'Bash',
      inputDigest: 'd'.repeat(64),
      safeSummary: 'ls',
      toolArgs: { command: 'ls' },
      prompt: 'Allow?',
    }
    await asking.end('approval_requested', { sessionId: 'ses-1', approvals: [call] })
    const [approval] = (await server.ok('/approvals')).data
    await server.ok(`/approvals/${approval.id}/approve`, { body: {}, headers: { 'Idempotency-Key': 'k' } })
    const allowed = await device.take()
    expect(allowed.spec).toMatchObject({ resumeSessionId: 'ses-1', allowCalls: [{ inputDigest: 'd'.repeat(64) }] })
    await lose(allowed, 'ses-1')
    const anew = await device.take()
    expect(anew.spec).toMatchObject({ resumeSessionId: null, allowCalls: isOwn ? allowed.spec.allowCalls : [] })
    expect(anew.spec.prompt).toMatch(toldSo)
    await anew.end()
  })
})
