import { idFrom, type AgentRef, type ConversationId } from '../../../shared/lib/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { requestWake, type RequestedWake } from '../../../control-plane/run/wakes/wakes.ts'
import { waitFor } from '../../kit/programs.ts'
import { TestServer } from '../../kit/server.ts'

// Wakes asked for within other changes, on two replicas of one database.

let server: TestServer
let beside: TestServer
let agent: { id: AgentRef }
beforeAll(async () => {
  server = await TestServer.start()
  beside = await TestServer.start({ beside: server })
  agent = await server.createAgent()
})
afterAll(async () => {
  await beside?.stop()
  await server?.stop()
})

async function request(changes: Partial<RequestedWake>): Promise<void> {
  // Wakes of one millisecond have no order that a test could rely on.
  server.world.advance(1)
  await server.database.root.transaction((tx) =>
    requestWake(
      tx,
      {
        workspaceId: server.owner.workspaceId,
        agentRef: agent.id,
        triggerSource: 'channel_message',
        causedByUuid: null,
        wordsBy: [],
        requestedByRef: server.owner.userId,
        prompt: 'Hello.',
        ...changes,
      },
      server.world,
    ),
  )
  server.plane.bus.poke()
  beside.plane.bus.poke()
}
const runsOf = async (conversationId: string) =>
  server.database.root('runs').where({ conversation_id: conversationId }).orderBy('created_at')
const promptOf = async (runId: string) => (await server.ok(`/runs/${runId}/context`)).prompt as string

test('one wake is one run, however many replicas hear of it and however often it is asked for', async () => {
  const key = 'once'
  await request({ conversationId: idFrom<ConversationId>('cnv_once000000000000'), key })
  await request({ conversationId: idFrom<ConversationId>('cnv_once000000000000'), key })
  await waitFor(async () => (await runsOf('cnv_once000000000000')).length > 0, 'a run')
  await Promise.all([server.plane.waker.sweep(), beside.plane.waker.sweep()])
  const runs = await runsOf('cnv_once000000000000')
  expect(runs).toHaveLength(1)
  expect(await server.ok(`/runs/${runs[0].id}`)).toMatchObject({ status: 'queued', triggerSource: 'channel_message' })
})

test('what is said while the agent works is one run together, when that one has ended', async () => {
  const conversationId = 'cnv_queue00000000000'
  await request({ conversationId: idFrom<ConversationId>(conversationId), prompt: 'one' })
  const [first] = await waitFor(
    async () => ((await runsOf(conversationId)).length > 0 ? runsOf(conversationId) : null),
    'run',
  )
  await request({ conversationId: idFrom<ConversationId>(conversationId), prompt: 'two' })
  await request({ conversationId: idFrom<ConversationId>(conversationId), prompt: 'three' })
  await server.plane.waker.sweep()
  expect(await runsOf(conversationId)).toHaveLength(1)
  await server.ok(`/runs/${first.id}/cancel`, { body: {} })
  await waitFor(async () => (await runsOf(conversationId)).length === 2, 'the next run')
  const [, next] = await runsOf(conversationId)
  expect(await promptOf(next.id)).toBe('two\n\nthree')
})

test('more than a prompt holds becomes several runs, and nothing of it is lost', async () => {
  const conversationId = idFrom<ConversationId>('cnv_long000000000000')
  const prompts = ['a', 'b', 'c'].map((letter) => letter.repeat(400_000))
  await server.database.root.transaction(async (tx) => {
    for (const prompt of prompts) {
      const { workspaceId, userId: requestedBy } = server.owner
      const said = { triggerSource: 'channel_message' as const, causedByUuid: null, wordsBy: [] }
      const talk = { ...said, workspaceId, agentRef: agent.id, conversationId }
      await requestWake(tx, { ...talk, requestedByRef: requestedBy, prompt }, server.world)
      server.world.advance(1)
    }
  })
  server.plane.bus.poke()
  const [first] = await waitFor(
    async () => ((await runsOf(conversationId)).length > 0 ? runsOf(conversationId) : null),
    'run',
  )
  expect(await promptOf(first.id)).toBe(prompts.slice(0, 2).join('\n\n'))
  await server.plane.waker.sweep()
  expect(await runsOf(conversationId)).toHaveLength(1)
  await server.ok(`/runs/${first.id}/cancel`, { body: {} })
  await waitFor(async () => (await runsOf(conversationId)).length === 2, 'the next run')
  expect(await promptOf((await runsOf(conversationId))[1].id)).toBe(prompts[2])
})

test('a wake that fails holds up none of the others', async () => {
  const ill = await server.createAgent()
  const { workspaceId, userId: requestedBy } = server.owner
  const rowOf = (key: string) => server.database.root('wakes').where({ wake_key: key }).first()
  await server.database.root.transaction(async (tx) => {
    // As it may be after a fault of the disk: it cannot be read.
    await tx('agents').where({ id: ill.id }).update({ status: 'nonsense' })
    for (const [key, agentId] of [['failing', ill.id] as const, ['sound', agent.id] as const])
      await requestWake(
        tx,
        {
          workspaceId,
          agentRef: agentId,
          triggerSource: 'cron',
          causedByUuid: null,
          wordsBy: [],
          requestedByRef: requestedBy,
          prompt: key,
          key,
        },
        server.world,
      )
    // Nobody hears of the two but the sweep.
    await tx('outbox').delete()
  })
  await server.plane.waker.sweep()
  expect((await rowOf('failing')).state).toBe('waiting')
  expect((await rowOf('sound')).state).toBe('done')
  await server.database.root('agents').where({ id: ill.id }).update({ status: 'active' })
  await server.plane.waker.sweep()
  expect((await rowOf('failing')).state).toBe('done')
})

test('a wake that admission refuses makes no run and does not come again', async () => {
  const idle = await server.createAgent()
  await server.ok(`/agents/${idle.id}`, { method: 'DELETE' })
  await request({ agentRef: idle.id, key: 'refused' })
  const rowOf = () => server.database.root('wakes').where({ wake_key: 'refused' }).first()
  await waitFor(async () => (await rowOf()).state === 'done', 'the wake is answered')
  expect(JSON.parse((await rowOf()).answer)).toMatchObject({ kind: 'not_dispatched', reason: 'agent_tombstoned' })
  expect(await server.database.root('runs').where({ agent_id: idle.id })).toEqual([])
})
