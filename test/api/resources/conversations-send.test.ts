import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FakeDevice, FakeRun } from '../../kit/fake-device.ts'
import { openTurn } from '../../kit/turn-stream.ts'
import { codeOf, outcomeOf, type TestServer } from '../../kit/server.ts'
import { keyed, startTalk } from '../../kit/talk.ts'

let server: TestServer, device: FakeDevice, stop: () => Promise<void>
beforeAll(async () => {
  ;({ server, device, stop } = await startTalk())
})
afterAll(() => stop())

const text = (words: string) => ({ kind: 'text' as const, data: { text: words } })

async function makeDm(settings: Record<string, unknown> = { harness: 'claude' }) {
  const agent = await server.createAgent(settings)
  const body = { kind: 'dm', participants: [{ type: 'agent', id: agent.id }] }
  const dm = await server.ok('/conversations', { body, headers: keyed() })
  return { id: dm.id as string, agentId: agent.id as string }
}

describe('send', () => {
  test('posts the message, streams the words while the run works, and ends with the posted reply', async () => {
    const { id, agentId } = await makeDm()
    const turn = await openTurn(server, id, { body: 'Is the build green?' })
    expect(turn.response.headers.get('content-type')).toContain('text/event-stream')
    const [message, begun] = await turn.take(2)
    expect(message).toMatchObject({
      event: 'message',
      data: { object: 'message', conversationId: id, body: 'Is the build green?', author: { type: 'user' } },
    })
    const { runId } = begun!.data
    expect(begun).toMatchObject({ event: 'run', data: { status: 'queued', agentId } })
    const run = await device.take()
    expect(run.runId).toBe(runId)
    expect(run.spec.prompt).toContain('Is the build green?')
    await run.events({ kind: 'started', data: { harness: 'claude', cwd: '/', argv0: 'claude' } }, text('Let me '))
    // Before the run's end.
    expect(await turn.take(2)).toMatchObject([
      { event: 'run', data: { runId, status: 'running' } },
      { event: 'delta', data: { runId, seq: 2, text: 'Let me ' } },
    ])
    await run.events({ kind: 'thinking', data: { text: 'hm' } }, text('look.'))
    expect(await turn.take(1)).toMatchObject([{ event: 'delta', data: { seq: 4, text: 'look.' } }])
    await run.events({ kind: 'result', data: { text: 'It is green.', isError: false } })
    await run.end()
    const [done] = await turn.rest()
    expect(done).toMatchObject({
      event: 'done',
      data: {
        runId,
        status: 'succeeded',
        exitReason: 'completed',
        message: { body: 'It is green.', author: { type: 'agent', id: agentId } },
      },
    })
    const { data } = await server.ok(`/conversations/${id}/messages`)
    expect(data.map((each: { body: string }) => each.body)).toEqual(['Is the build green?', 'It is green.'])
    expect((await server.ok(`/runs/${runId}`)).conversationId).toBe(id)
  })

  test('a reader that was cut off goes on where it was, while the run works and after it; nothing is posted twice', async () => {
    const { id } = await makeDm()
    const first = await openTurn(server, id, { body: 'Count.' })
    await first.take(2)
    const run = await device.take()
    await run.events(text('one'), text('two'))
    const [one] = await first.take(1)
    first.abort()
    await run.events(text('three'))
    const second = await openTurn(server, id, { body: 'Count.' }, { 'last-event-id': one!.id! })
    expect((await second.take(2)).map((each) => each.data.text)).toEqual(['two', 'three'])
    second.abort()
    await run.events({ kind: 'result', data: { text: 'three', isError: false } })
    await run.end()
    const third = await openTurn(server, id, { body: 'Count.' }, { 'last-event-id': one!.id! })
    expect((await third.rest()).map((each) => each.data.text ?? each.event)).toEqual(['two', 'three', 'done'])
    expect((await server.ok(`/conversations/${id}`)).messageCount).toBe(2)
  })

  test('a reader that was cut off after its own message gets the run, and all it said', async () => {
    const { id } = await makeDm()
    const first = await openTurn(server, id, { body: 'Hello.' })
    const [message] = await first.take(1)
    first.abort()
    const run = await device.take()
    await run.events(text('Hi'))
    await run.end()
    const again = await openTurn(server, id, {}, { 'last-event-id': message!.id! })
    expect((await again.rest()).map((each) => each.event)).toEqual(['run', 'delta', 'done'])
  })

  test('the same key and text are the same turn; another text is refused', async () => {
    const { id } = await makeDm()
    const headers = keyed()
    const first = await openTurn(server, id, { body: 'Once.' }, headers)
    first.abort()
    const again = await openTurn(server, id, { body: 'Once.' }, headers)
    const [message] = await again.take(1)
    expect(message?.data.body).toBe('Once.')
    const other = await server.call(`/conversations/${id}/send`, { body: { body: 'Twice.' }, headers })
    expect(outcomeOf(other)).toBe('409 idempotency_key_reused')
    await (await device.take()).end()
    await again.rest()
    expect((await server.ok(`/conversations/${id}`)).messageCount).toBe(1)
  })

  test('with JSON asked for, the answer is the message and its run', async () => {
    const { id } = await makeDm()
    const request = { body: { text: 'Hello.' }, headers: { accept: 'application/json', ...keyed() } }
    const first = await server.call(`/conversations/${id}/send`, request)
    expect(first.body).toMatchObject({ message: { body: 'Hello.' }, runId: expect.stringMatching(/^run_/) })
    expect(first.headers.get('idempotency-replayed')).toBeNull()
    const run = await device.take()
    expect(run.runId).toBe(first.body.runId)
    const again = await server.call(`/conversations/${id}/send`, request)
    expect(again.body).toEqual(first.body)
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    await run.end()
  })

  test('a run that fails ends the stream with an error', async () => {
    const { id } = await makeDm()
    const turn = await openTurn(server, id, { body: 'Try.' })
    const run = await device.take()
    await run.end('error', { message: 'The harness fell over.' })
    const last = (await turn.rest()).at(-1)
    expect(last).toMatchObject({
      event: 'error',
      data: {
        runId: run.runId,
        status: 'failed',
        exitReason: 'error',
        error: { message: 'The harness fell over.' },
        message: null,
      },
    })
  })

  test('a run that is cancelled before a device took it ends the stream', async () => {
    const lonely = await server.addPerson('member')
    const agent = await server.createAgent({}, lonely.token)
    const body = { kind: 'dm', participants: [agent.id] }
    const dm = await server.ok('/conversations', { body, headers: keyed(), token: lonely.token })
    const turn = await openTurn(server, dm.id, { body: 'Hello?' }, { authorization: `Bearer ${lonely.token}` })
    const [, begun] = await turn.take(2)
    await server.ok(`/runs/${begun!.data.runId}/cancel`, { body: {}, token: lonely.token })
    expect(await turn.rest()).toMatchObject([{ event: 'error', data: { status: 'cancelled' } }])
  })

  test('the next turn goes on with the session of the one before, but after a switch of the runtime', async () => {
    const { id } = await makeDm()
    const say = async (body: string) => {
      const turn = await openTurn(server, id, { body })
      const run = await device.take()
      await run.events({ kind: 'session', data: { sessionId: `s-${body}` } }, text(`${body}!`))
      await run.end('completed', { sessionId: `s-${body}` })
      await turn.rest()
      return run.spec
    }
    expect((await say('one')).resumeSessionId).toBeNull()
    expect((await say('two')).resumeSessionId).toBe('s-one')
    const body = { modelId: 'claude-opus-4-5', reasoningEffort: 'high' }
    await server.ok(`/conversations/${id}/runtime`, { method: 'PATCH', body })
    const switched = await say('three')
    expect(switched).toMatchObject({ resumeSessionId: null, model: 'claude-opus-4-5', reasoningEffort: 'high' })
    // A fresh session is told what was said.
    expect(switched.prompt).toContain('two!')
    const next = await say('four')
    expect(next.resumeSessionId).toBe('s-three')
    expect(next.prompt).not.toContain('two!')
  })

  test.each([
    ['another command', { config: { runtime: { command: 'qwen --acp' } } }],
    ['another harness', { config: { runtime: { harness: 'codex', protocol: null, command: null } } }],
    ['another AGENT.md', { config: {}, agentMd: 'Be brief.' }],
  ])('with %s the next turn begins anew, and is told what was said', async (_, changes) => {
    const { id, agentId } = await makeDm({ harness: 'command', protocol: 'acp' })
    const say = async (body: string) => {
      const turn = await openTurn(server, id, { body })
      const run = await device.take()
      await run.events({ kind: 'session', data: { sessionId: `s-${body}` } }, text(`${body}!`))
      await run.end('completed', { sessionId: `s-${body}` })
      await turn.rest()
      return run.spec
    }
    await say('one')
    expect(await say('two')).toMatchObject({ resumeSessionId: 's-one', protocol: 'acp' })
    await server.ok(`/agents/${agentId}/config`, { method: 'PUT', body: changes })
    const anew = await say('three')
    expect(anew.resumeSessionId).toBeNull()
    expect(anew.prompt).toMatch(/new session.*one.*one!.*two.*two!.*three/s)
    const next = await say('four')
    expect(next.resumeSessionId).toBe('s-three')
    expect(next.prompt).not.toContain('two!')
  })

  test('with a model of another harness, another AGENT.md or context, an agent without a chosen harness is told, too', async () => {
    const { id, agentId } = await makeDm({ harness: null, model: 'gpt-5.1-codex', command: null })
    const say = async (body: string) => {
      const turn = await openTurn(server, id, { body })
      const run = await device.take()
      await run.events({ kind: 'session', data: { sessionId: `s-${body}` } }, text(`${body}!`))
      await run.end('completed', { sessionId: `s-${body}` })
      await turn.rest()
      return run.spec
    }
    const config = (body: object) => server.ok(`/agents/${agentId}/config`, { method: 'PUT', body })
    await say('one')
    expect((await say('two')).resumeSessionId).toBe('s-one')
    await config({ agentMd: 'Be brief.' })
    const briefly = await say('three')
    expect([briefly.resumeSessionId, briefly.harness]).toEqual([null, 'codex'])
    expect(briefly.prompt).toMatch(/new session.*one!.*two!.*three/s)
    await server.ok(`/workspaces/${server.owner.workspaceId}`, {
      method: 'PATCH',
      body: { contextMd: 'We build boats.' },
    })
    const inContext = await say('four')
    expect(inContext.resumeSessionId).toBeNull()
    expect(inContext.prompt).toMatch(/new session.*two!.*three!.*four/s)
    await config({ config: { runtime: { model: 'claude-opus-4-5' } } })
    const other = await say('five')
    expect([other.resumeSessionId, other.harness]).toEqual([null, 'claude'])
    expect(other.prompt).toMatch(/new session.*three!.*four!.*five/s)
    const next = await say('six')
    expect(next.resumeSessionId).toBe('s-five')
    expect(next.prompt).not.toContain('five!')
  })

  test.each([
    ['that is not on its device any more is begun anew at once', 'harness_start_failed', false],
    ['that is full is begun anew by the next turn', 'error', true],
  ] as const)('a session %s, which is told what was said', async (_, exitReason, isNamed) => {
    const { id } = await makeDm()
    const answer = async (run: FakeRun) => {
      await run.events({ kind: 'session', data: { sessionId: `s-${id}` } }, text('fine'))
      await run.end('completed', { sessionId: `s-${id}` })
      return run.spec
    }
    const say = async (body: string) => {
      const turn = await openTurn(server, id, { body })
      const spec = await answer(await device.take())
      await turn.rest()
      return spec
    }
    await say('one')
    const turn = await openTurn(server, id, { body: 'two' })
    const lost = await device.take()
    expect(lost.spec.resumeSessionId).toBe(`s-${id}`)
    if (isNamed) await lost.events({ kind: 'session', data: { sessionId: `s-${id}` } }, text('fine'))
    await lost.end(exitReason, { sessionId: null, lostSessionId: `s-${id}` })
    await turn.rest()
    const anew = isNamed ? await say('three') : await answer(await device.take())
    expect(anew.resumeSessionId).toBeNull()
    // It knows nothing of what was said in the session that is gone, so it is told.
    for (const said of ['one', 'two', 'fine']) expect(anew.prompt).toContain(said)
    const next = await say('four')
    expect(next.resumeSessionId).toBe(`s-${id}`)
    expect(next.prompt).not.toContain('two')
  })

  test('refuses a turn of an agent that takes none with the reason, and with no time to wait', async () => {
    const { id, agentId } = await makeDm()
    const ended = await server.ok(`/agents/${agentId}`)
    await server.ok(`/agents/${agentId}`, { method: 'PATCH', body: { status: 'terminated' } })
    const refused = await server.call(`/conversations/${id}/send`, { body: { body: 'Hello?' } })
    expect(outcomeOf(refused)).toBe('429 rate_limited')
    expect(refused.headers.get('retry-after')).toBeNull()
    expect(refused.body.error).toMatchObject({
      message: `${ended.name} is terminated; only an active agent takes wakes.`,
      details: { reason: 'agent_inactive' },
    })
  })

  test('refuses a turn while all agents of the workspace are paused, with no time to wait', async () => {
    const { id } = await makeDm()
    const act = (action: string) => server.ok(`/workspaces/${server.owner.workspaceId}/${action}`, { method: 'POST' })
    await act('pause-agents')
    const refused = await server.call(`/conversations/${id}/send`, { body: { body: 'Hello?' } })
    await act('resume-agents')
    expect(outcomeOf(refused)).toBe('429 rate_limited')
    expect(refused.headers.get('retry-after')).toBeNull()
    expect(refused.body.error.details).toMatchObject({ reason: 'workspace_agents_paused' })
  })

  test('refuses a turn while the agent has one, and nothing is posted then', async () => {
    const { id } = await makeDm()
    const turn = await openTurn(server, id, { body: 'First.' })
    const run = await device.take()
    const busy = await server.call(`/conversations/${id}/send`, { body: { body: 'Second.' } })
    expect(outcomeOf(busy)).toBe('429 rate_limited')
    expect(busy.headers.get('retry-after')).not.toBeNull()
    expect(busy.body.error.details.runId).toBe(run.runId)
    expect(busy.body.error.message).toContain('svc conversation message post')
    const runtime = await server.call(`/conversations/${id}/runtime`, { method: 'PATCH', body: { speed: 'standard' } })
    expect(outcomeOf(runtime)).toBe('409 conversation_busy')
    await run.end()
    await turn.rest()
    expect((await server.ok(`/conversations/${id}`)).messageCount).toBe(1)
  })

  test('refuses a turn of an agent that takes no wakes', async () => {
    const { id, agentId } = await makeDm()
    await server.ok(`/agents/${agentId}`, { method: 'PATCH', body: { status: 'running' } })
    const refused = await server.call(`/conversations/${id}/send`, { body: { body: 'Hello.' } })
    expect(outcomeOf(refused)).toBe('429 rate_limited')
    expect((await server.ok(`/conversations/${id}`)).messageCount).toBe(0)
  })

  test('says who is to answer where several agents are', async () => {
    const [one, two, other] = [await server.createAgent(), await server.createAgent(), await server.createAgent()]
    const body = { participants: [one.id, { type: 'agent', id: two.handle }] }
    const { id } = await server.ok('/conversations', { body, headers: keyed() })
    const send = async (sent: object) => outcomeOf(await server.call(`/conversations/${id}/send`, { body: sent }))
    expect(await send({ body: 'Hello.' })).toBe('400 send_target_required')
    expect(await send({ body: 'Hello.', agentId: other.id })).toBe('404 participant_not_found')
    const turn = await openTurn(server, id, { content: 'Hello, both.', agentId: two.handle })
    const [, begun] = await turn.take(2)
    expect(begun!.data.agentId).toBe(two.id)
    await (await device.take()).end()
    await turn.rest()
    const alone = await server.ok('/conversations', { body: {}, headers: keyed() })
    const nobody = await server.call(`/conversations/${alone.id}/send`, { body: { body: 'Hello.' } })
    expect(outcomeOf(nobody)).toBe('404 participant_not_found')
  })

  test('refuses what does not fit, and whom it is not for', async () => {
    const { id, agentId } = await makeDm()
    const send = async (body: object, headers: Record<string, string> = {}) =>
      outcomeOf(await server.call(`/conversations/${id}/send`, { body, headers }))
    expect(await send({})).toBe('400 validation_error')
    expect(await send({ body: ' \n' })).toBe('400 empty_message')
    expect(await send({ body: `my key is ghp_${'a1B2'.repeat(9)}` })).toBe('400 secret_in_message')
    expect(await send({ body: 'x' }, { 'last-event-id': 'nonsense' })).toBe('400 invalid_cursor')
    expect(await send({ body: 'x' }, { 'idempotency-key': 'a b' })).toBe('400 idempotency_invalid_key')
    const admin = await server.addPerson('admin')
    const path = `/conversations/${id}/send`
    expect(outcomeOf(await server.call(path, { body: { body: 'x' }, token: admin.token }))).toBe(
      '403 not_a_participant',
    )
    const member = await server.addPerson('member')
    const stranger = await server.call(path, { body: { body: 'x' }, token: member.token })
    expect(outcomeOf(stranger)).toBe('404 conversation_not_found')
    const runId = await server.startRun(agentId)
    const run = await device.take()
    const agent = await server.call(path, { body: { body: 'x' }, token: run.token })
    expect([agent.status, codeOf(agent)]).toEqual([403, 'http_exception'])
    await run.end()
    expect(runId).toBe(run.runId)
  })
})
