import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FakeDevice } from '../../kit/fake-device.ts'
import { outcomeOf, type TestServer, type Person } from '../../kit/server.ts'
import { act, asUser, liveRun, makeConversation, makeDm, say, startTalk } from '../../kit/talk.ts'

/** Archiving, deleting, participants, runtime and transcript of conversations. */
let server: TestServer, device: FakeDevice, member: Person, admin: Person, stop: () => Promise<void>
beforeAll(async () => {
  ;({ server, device, member, admin, stop } = await startTalk())
})
afterAll(() => stop())

const as = (person: Person) => ({ token: person.token })

describe('what only admins do', () => {
  test('a channel is archived and put back, as often as one likes; a dm is not', async () => {
    const { id } = await makeConversation(server)
    expect((await act(server, id, 'archive', as(admin))).body.archivedAt).toEqual(expect.any(String))
    expect((await act(server, id, 'archive', as(admin))).status).toBe(200)
    expect((await act(server, id, 'unarchive', as(admin))).body.archivedAt).toBeNull()
    expect((await act(server, id, 'unarchive', as(admin))).status).toBe(200)
    const dm = await makeDm(server, (await server.createAgent()).id)
    expect(outcomeOf(await act(server, dm.id, 'archive'))).toBe('409 conversation_dm_not_archivable')
    expect(outcomeOf(await act(server, dm.id, 'delete'))).toBe('409 conversation_dm_not_deletable')
  })

  test('a deleted channel is gone with its messages', async () => {
    const { id } = await makeConversation(server, { firstMessage: 'Gone soon.' })
    const [message] = (await server.ok(`/conversations/${id}/messages`)).data
    expect((await act(server, id, 'delete', as(admin))).status).toBe(204)
    expect(outcomeOf(await server.call(`/conversations/${id}`))).toBe('404 conversation_not_found')
    expect(outcomeOf(await server.call(`/messages/${message.id}`))).toBe('404 message_not_found')
    expect(outcomeOf(await act(server, id, 'delete'))).toBe('404 conversation_not_found')
  })

  test('a channel with a run going on is not deleted', async () => {
    const agent = await server.createAgent()
    const { id } = await makeConversation(server, { participants: [agent.id] })
    await say(server, id, `${agent.handle} work`)
    const run = await device.take()
    const refused = await act(server, id, 'delete')
    expect(outcomeOf(refused)).toBe('409 conversation_has_live_run')
    expect(refused.body.error.details).toEqual({ runId: run.runId })
    await run.end()
    expect((await act(server, id, 'delete')).status).toBe(204)
  })

  test('participants of a channel come and go', async () => {
    const agent = await server.createAgent()
    const { id } = await makeConversation(server)
    const add = (body: object) => act(server, id, 'participants', { body })
    expect((await add({ type: 'agent', id: agent.handle })).body.participants).toContainEqual({
      type: 'agent',
      id: agent.id,
    })
    expect((await add({ participant: { type: 'user', id: member.userId } })).body.participants).toHaveLength(3)
    expect((await add({ id: agent.id })).body.participants).toHaveLength(3)
    expect(outcomeOf(await add({ id: 'usr_0000000000000000' }))).toBe('404 participant_not_found')
    expect(outcomeOf(await add({}))).toBe('400 validation_error')
    const remove = (ref: string) => act(server, id, `participants/${encodeURIComponent(ref)}/remove`)
    expect((await remove(agent.handle)).body.participants).toHaveLength(2)
    expect(outcomeOf(await remove(agent.id))).toBe('404 participant_not_found')
    expect((await remove(member.userId)).body.participants).toEqual([asUser(server.owner)])
    const dm = await makeDm(server, agent.id)
    const added = await act(server, dm.id, 'participants', { body: { id: member.userId } })
    expect(outcomeOf(added)).toBe('400 dm_cannot_add_participant')
    const removed = await act(server, dm.id, `participants/${agent.id}/remove`)
    expect(outcomeOf(removed)).toBe('409 http_exception')
    expect(outcomeOf(await act(server, 'cnv_0000000000000000', 'participants', { body: { id: agent.id } }))).toBe(
      '404 conversation_not_found',
    )
  })

  test('others are refused, agents too', async () => {
    const agent = await server.createAgent()
    const { id } = await makeConversation(server, { participants: [agent.id, member.userId] })
    const run = await liveRun(server, device, agent.id)
    for (const token of [member.token, run.token])
      for (const [action, body] of [
        ['archive', undefined],
        ['unarchive', undefined],
        ['delete', undefined],
        ['participants', { id: admin.userId }],
        [`participants/${agent.id}/remove`, undefined],
      ] as const)
        expect([action, outcomeOf(await act(server, id, action, { token, ...(body && { body }) }))]).toEqual([
          action,
          '403 not_authorized',
        ])
    await run.end()
  })
})

describe('runtime', () => {
  const patch = (id: string, body: object, token?: string) =>
    server.call(`/conversations/${id}/runtime`, { method: 'PATCH', body, ...(token === undefined ? {} : { token }) })

  test('is switched by who is in it, key by key', async () => {
    const agent = await server.createAgent({ harness: null, command: null })
    const { id } = await makeDm(server, agent.id)
    const first = await patch(id, { modelId: 'claude-opus-4-5', reasoningEffort: 'high', speed: 'standard' })
    expect(first.body.runtime).toEqual({
      modelId: 'claude-opus-4-5',
      harness: null,
      reasoningEffort: 'high',
      speed: 'standard',
      changedAt: expect.any(String),
    })
    const second = await patch(id, { reasoningEffort: null, harness: 'claude' })
    expect(second.body.runtime).toMatchObject({ modelId: 'claude-opus-4-5', harness: 'claude', reasoningEffort: null })
    expect((await server.ok(`/conversations/${id}?include=runtime`)).runtime).toEqual(second.body.runtime)
    const fast = await patch(id, { modelId: 'claude-opus-5-5', speed: 'fast' })
    expect(fast.body.runtime).toMatchObject({ modelId: 'claude-opus-5-5', speed: 'fast' })
    await say(server, id, 'Quick!')
    const run = await device.take()
    expect(run.spec).toMatchObject({ model: 'claude-opus-5-5', speed: 'fast', harness: 'claude' })
    await run.end()
  })

  test('refuses what does not go together', async () => {
    const agent = await server.createAgent({ harness: null, command: null, model: 'claude-opus-4-5' })
    const { id } = await makeDm(server, agent.id)
    const refused = async (body: object) => outcomeOf(await patch(id, body))
    expect(await refused({})).toBe('400 validation_error')
    expect(await refused({ modelId: 'no-such-model' })).toBe('400 model_not_found')
    expect(await refused({ modelId: 'claude-opus-4-5', harness: 'codex' })).toBe('422 harness_model_unsupported')
    expect(await refused({ harness: 'codex' })).toBe('422 harness_model_unsupported')
    expect(await refused({ reasoningEffort: 'minimal' })).toBe('400 reasoning_effort_unsupported')
    expect(await refused({ speed: 'fast' })).toBe('400 speed_unsupported')
    expect(await refused({ speed: 'warp' })).toBe('400 validation_error')
    expect(outcomeOf(await patch('cnv_0000000000000000', { speed: null }))).toBe('404 conversation_not_found')
    const channel = await makeConversation(server)
    expect(outcomeOf(await patch(channel.id, { speed: null }, member.token))).toBe('403 not_authorized')
  })
})

test('the transcript of a conversation is that of its runs, one after the other', async () => {
  const agent = await server.createAgent()
  const { id } = await makeDm(server, agent.id)
  const runs: string[] = []
  for (const word of ['one', 'two']) {
    await say(server, id, word)
    const run = await device.take()
    runs.push(run.runId)
    await run.events({ kind: 'text', data: { text: `${word} a` } }, { kind: 'text', data: { text: `${word} b` } })
    await run.end()
  }
  const page = (query: string) => server.ok(`/conversations/${id}/events${query}`)
  const all = await page('')
  expect(all.data.map((each: Event) => [each.runId, each.kind, each.data.text])).toEqual([
    [runs[0], 'text', 'one a'],
    [runs[0], 'text', 'one b'],
    [runs[0], 'ended', undefined],
    [runs[1], 'text', 'two a'],
    [runs[1], 'text', 'two b'],
    [runs[1], 'ended', undefined],
  ])
  expect(all).toMatchObject({ object: 'list', hasMore: false, nextCursor: null })
  expect(all.runs.map((each: { id: string; status: string }) => [each.id, each.status])).toEqual(
    runs.map((runId) => [runId, 'succeeded']),
  )
  const seen: unknown[] = []
  let after = ''
  for (;;) {
    const next = await page(`?limit=2${after}`)
    seen.push(...next.data)
    if (!next.hasMore) break
    after = `&after=${next.nextCursor}`
  }
  expect(seen).toEqual(all.data)
  const { id: other } = await makeDm(server, (await server.createAgent()).id)
  for (const strange of [`${id}/events?after=x`, `${other}/events?limit=2${after}`])
    expect(outcomeOf(await server.call(`/conversations/${strange}`))).toBe('400 invalid_cursor')
  expect(outcomeOf(await server.call('/conversations/cnv_0000000000000000/events'))).toBe('404 conversation_not_found')
})
interface Event {
  runId: string
  kind: string
  data: { text?: string }
}
