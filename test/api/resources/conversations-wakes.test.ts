import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FakeDevice } from '../../kit/fake-device.ts'
import type { TestServer } from '../../kit/server.ts'
import { keyed, liveRun, makeConversation, makeDm, say, wakesIn, startTalk } from '../../kit/talk.ts'

/** Tests whom messages wake, and how the agents' words come back. */
let server: TestServer, device: FakeDevice, stop: () => Promise<void>
beforeAll(async () => {
  ;({ server, device, stop } = await startTalk())
})
afterAll(() => stop())

const bodies = async (id: string) =>
  (await server.ok(`/conversations/${id}/messages?limit=100`)).data.map((each: { body: string }) => each.body)
const text = (words: string) => ({ kind: 'text' as const, data: { text: words } })
const result = (words: string) => ({ kind: 'result' as const, data: { text: words, isError: false } })

describe('wakes', () => {
  test('every message of a dm wakes its agent', async () => {
    const agent = await server.createAgent()
    const { id } = await makeDm(server, agent.id)
    await say(server, id, 'Hello, no name.')
    const run = await device.take()
    expect(run.spec.agent.id).toBe(agent.id)
    expect(run.spec.prompt).toContain('Hello, no name.')
    expect(await server.ok(`/runs/${run.runId}`)).toMatchObject({
      triggerSource: 'channel_message',
      conversationId: id,
      agent: { id: agent.id },
    })
    await run.end()
  })

  test('in a channel only who is mentioned and in it', async () => {
    const [one, two, outside] = [await server.createAgent(), await server.createAgent(), await server.createAgent()]
    const { id } = await makeConversation(server, { participants: [one.id, two.id] })
    await say(server, id, 'Hello all.')
    await say(server, id, `${two.handle} please, and ${outside.handle}`)
    expect(await wakesIn(server, id)).toEqual([[two.id, 'mention']])
    const run = await device.take()
    expect(run.spec.agent.id).toBe(two.id)
    // What it missed.
    expect(run.spec.prompt).toContain('Hello all.')
    await run.end()
  })

  test('a dm wakes nobody who is not in it', async () => {
    const [agent, outside] = [await server.createAgent(), await server.createAgent()]
    const { id } = await makeDm(server, agent.id)
    await say(server, id, `Ask ${outside.handle}.`)
    expect(await wakesIn(server, id)).toEqual([[agent.id, 'channel_message']])
    await (await device.take()).end()
  })

  test('an agent never wakes itself, and agents wake each other', async () => {
    const [one, two] = [await server.createAgent(), await server.createAgent()]
    const { id } = await makeConversation(server, { participants: [one.id, two.id] })
    const run = await liveRun(server, device, one.id)
    await say(server, id, `I am ${one.handle}`, run.token)
    expect(await wakesIn(server, id)).toEqual([])
    await say(server, id, `Your turn, ${two.handle}`, run.token)
    expect(await wakesIn(server, id)).toEqual([[two.id, 'mention']])
    const other = await device.take()
    await other.end()
    await run.end()
  })

  test('what is said while the agent works becomes one turn after it', async () => {
    const agent = await server.createAgent()
    const { id } = await makeDm(server, agent.id)
    await say(server, id, 'one')
    const first = await device.take()
    await say(server, id, 'two')
    await say(server, id, 'three')
    await first.events(result('Done with one.'))
    await first.end()
    const second = await device.take()
    expect(second.spec.prompt).toMatch(/two[\s\S]*three/)
    await second.end()
    const { data } = await server.ok(`/runs?agent=${agent.id}`)
    expect(data).toHaveLength(2)
  })

  test('twenty agent messages in a minute pause agent wakes, until a person posts or the minute is over', async () => {
    const [one, two] = [await server.createAgent(), await server.createAgent()]
    const { id } = await makeConversation(server, { participants: [one.id, two.id] })
    const run = await liveRun(server, device, one.id)
    for (let n = 1; n < 20; n++) await say(server, id, `m${n}`, run.token)
    await say(server, id, `the twentieth, ${two.handle}`, run.token)
    expect(await wakesIn(server, id)).toEqual([])
    // A person's message wakes, and lifts the pause.
    await say(server, id, `${two.handle} from me`)
    expect(await wakesIn(server, id)).toHaveLength(1)
    await say(server, id, `${two.handle} again`, run.token)
    expect(await wakesIn(server, id)).toHaveLength(2)
    for (let n = 1; n < 20; n++) await say(server, id, `n${n}`, run.token)
    expect(await wakesIn(server, id)).toHaveLength(2)
    server.world.advance(60_000)
    await say(server, id, `${two.handle} a minute later`, run.token)
    expect(await wakesIn(server, id)).toHaveLength(3)
    await run.end()
    for (let more = await device.take(); ; more = await device.take()) {
      await more.end()
      if (more.spec.prompt.includes('a minute later')) break
    }
  })
})

describe('replies', () => {
  test('the result of a run is its agent’s message, once', async () => {
    const agent = await server.createAgent()
    const { id } = await makeDm(server, agent.id)
    await say(server, id, 'What is it?')
    const run = await device.take()
    await run.events(text('Looking.'), result(' It is **42**. '))
    await run.end()
    // Told again, as after a lost answer.
    await run.report('completed')
    expect(await bodies(id)).toEqual(['What is it?', 'It is **42**.'])
    const { data } = await server.ok(`/conversations/${id}/messages`)
    expect(data[1].author).toEqual({ type: 'agent', id: agent.id })
    expect(await wakesIn(server, id)).toHaveLength(1)
  })

  test('without a result the last words count; without words nothing is posted', async () => {
    const { id } = await makeDm(server, (await server.createAgent()).id)
    await say(server, id, 'one')
    const first = await device.take()
    await first.events(text('Begin.'), text('The end.'))
    await first.end()
    await say(server, id, 'two')
    await (await device.take()).end('error', { message: 'broke' })
    expect(await bodies(id)).toEqual(['one', 'The end.', 'two'])
  })

  test('a run that stops to ask has not answered', async () => {
    const { id } = await makeDm(server, (await server.createAgent()).id)
    await say(server, id, 'one')
    const run = await device.take()
    await run.events(text('May I?'))
    await run.end('approval_requested')
    expect(await bodies(id)).toEqual(['one'])
  })

  test('a reply that holds a secret is not posted, which is said', async () => {
    const { id } = await makeDm(server, (await server.createAgent()).id)
    await say(server, id, 'one')
    const run = await device.take()
    const secret = ['gh', `p_${'a1B2'.repeat(9)}`].join('')
    await run.events(result(`The key is ${secret}`))
    await run.end()
    const [, reply] = (await server.ok(`/conversations/${id}/messages`)).data
    expect(reply.author).toEqual({ type: 'system', id: null })
    expect(reply.body).toContain(run.runId)
    expect(reply.body).not.toContain(secret)
  })

  test('a mention in a reply wakes whom it names', async () => {
    const [one, two] = [await server.createAgent(), await server.createAgent()]
    const { id } = await makeConversation(server, { participants: [one.id, two.id] })
    await say(server, id, `${one.handle} begin`)
    const first = await device.take()
    await first.events(result(`Over to ${two.handle}`))
    await first.end()
    const second = await device.take()
    expect(second.spec.agent.id).toBe(two.id)
    expect(second.spec.prompt).toContain('Over to')
    await second.end()
  })

  test('runs without a conversation post nothing', async () => {
    const agent = await server.createAgent()
    const run = await liveRun(server, device, agent.id)
    await run.events(result('Done.'))
    await run.end()
    expect((await server.ok(`/runs/${run.runId}`)).conversationId).toBeNull()
    expect((await server.ok(`/conversations?participantId=${agent.id}`)).data).toEqual([])
  })
})

describe('questions', () => {
  const ask = async (token: string, prompt: string) =>
    (await server.ok('/questions', { body: { prompt, answerMode: 'free_text' }, token, headers: keyed() })).question

  test('a person’s reply in the thread of a question answers it, and the agent goes on with its session', async () => {
    const agent = await server.createAgent({ harness: 'claude' })
    const { id } = await makeDm(server, agent.id)
    await say(server, id, 'Deploy it.')
    const run = await device.take()
    await run.events({ kind: 'session', data: { sessionId: 's-asking' } }, text('Let me ask.'))
    const question = await ask(run.token, 'To which region?')
    expect(question).toMatchObject({ status: 'open', conversationId: id })
    await device.next('run.cancel')
    await run.end('question_asked', { sessionId: 's-asking' })
    const { data } = await server.ok(`/conversations/${id}/messages`)
    expect(data).toHaveLength(2)
    expect(data[1]).toMatchObject({ author: { type: 'agent', id: agent.id } })
    expect(data[1].body).toContain('To which region?')
    await say(server, id, { body: 'eu-west', parentMessageId: data[1].id })
    expect(await server.ok(`/questions/${question.id}`)).toMatchObject({
      status: 'resolved',
      answer: { text: 'eu-west', selected: null },
      answeredBy: { type: 'user', id: server.owner.userId },
    })
    const next = await device.take()
    expect(next.spec).toMatchObject({ resumeSessionId: 's-asking', agent: { id: agent.id } })
    expect(next.spec.prompt).toContain('eu-west')
    await next.events(result('Deployed.'))
    await next.end()
    expect(await bodies(id)).toEqual(['Deploy it.', data[1].body, 'eu-west', 'Deployed.'])
    // The answer was the one wake of the reply.
    const wakes = await wakesIn(server, id)
    expect(wakes.map(([, source]) => source)).toEqual(['channel_message', 'approval_resolved'])
  })

  test('a comment in the thread of a question on a task answers it; one beside it does not', async () => {
    const agent = await server.createAgent()
    const task = await server.ok('/tasks', {
      body: { title: `Ask ${crypto.randomUUID()}`, assignee: { type: 'agent', id: agent.id } },
      headers: keyed(),
    })
    const run = await device.take()
    const question = await ask(run.token, 'Which colour?')
    await device.next('run.cancel')
    await run.end('question_asked')
    const [asked] = (await server.ok(`/tasks/${task.key}/comments`)).data
    await server.ok(`/tasks/${task.key}/comments`, { body: { content: 'Let me think.' } })
    expect((await server.ok(`/questions/${question.id}`)).status).toBe('open')
    await server.ok(`/tasks/${task.key}/comments`, { body: { content: 'Blue.', parentMessageId: asked.id } })
    expect(await server.ok(`/questions/${question.id}`)).toMatchObject({
      status: 'resolved',
      answer: { text: 'Blue.' },
    })
    const next = await device.take()
    expect(next.spec.prompt).toContain('Blue.')
    await next.end()
  })

  test('an agent’s reply answers nothing', async () => {
    const [asking, other] = [await server.createAgent(), await server.createAgent()]
    const { id } = await makeConversation(server, { participants: [asking.id, other.id] })
    await say(server, id, `${asking.handle} go`)
    const run = await device.take()
    const question = await ask(run.token, 'Shall I?')
    await device.next('run.cancel')
    await run.end('question_asked')
    const [, asked] = (await server.ok(`/conversations/${id}/messages`)).data
    const helper = await liveRun(server, device, other.id)
    await say(server, id, { body: 'Yes.', parentMessageId: asked.id }, helper.token)
    expect((await server.ok(`/questions/${question.id}`)).status).toBe('open')
    await helper.end()
  })
})
