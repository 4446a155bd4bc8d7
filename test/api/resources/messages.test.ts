import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FakeDevice } from '../../kit/fake-device.ts'
import { outcomeOf, type TestServer, type Person } from '../../kit/server.ts'
import { asUser, keyed, liveRun, makeConversation, makeDm, say, tryPost, startTalk } from '../../kit/talk.ts'

let server: TestServer, device: FakeDevice, member: Person, admin: Person, stop: () => Promise<void>
beforeAll(async () => {
  ;({ server, device, member, admin, stop } = await startTalk())
})
afterAll(() => stop())

const secret = ['gh', `p_${'a1B2'.repeat(9)}`].join('')
const as = (person: Person) => ({ token: person.token })
const edit = (id: string, body: object, token?: string) =>
  server.call(`/messages/${id}`, { body, ...(token === undefined ? {} : { token }) })
const remove = (id: string, token?: string) =>
  server.call(`/messages/${id}/delete`, { method: 'POST', headers: keyed(), ...(token === undefined ? {} : { token }) })

describe('post', () => {
  test('stores what was sent, by any name of the text, and says who wrote it', async () => {
    const { id } = await makeConversation(server)
    const reply = await tryPost(server, id, { body: 'Hello *there*', source: 'slack', externalRef: 'C1/17.2' })
    expect(reply.status).toBe(201)
    expect(reply.body).toEqual({
      object: 'message',
      id: expect.stringMatching(/^msg_/),
      conversationId: id,
      taskId: null,
      author: asUser(server.owner),
      body: 'Hello *there*',
      source: 'slack',
      externalRef: 'C1/17.2',
      automationId: null,
      mentions: [],
      parentMessageId: null,
      attachments: [],
      editedAt: null,
      deletedAt: null,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    })
    const inThread = await say(server, id, { content: 'A reply', parentMessageId: reply.body.id })
    expect(inThread).toMatchObject({ body: 'A reply', source: 'in_app', parentMessageId: reply.body.id })
    expect(await say(server, id, { text: 'Third' })).toMatchObject({ body: 'Third' })
  })

  test('finds who is mentioned', async () => {
    const agent = await server.createAgent({ name: 'Mentioned One' })
    const hidden = await server.createAgent({ name: 'Hidden One', visibility: 'private' })
    const { id } = await makeConversation(server, { participants: [member.userId] })
    const body = `@mentioned-one and @${member.userId}, not \`@mentioned-one\` nor me@example.com, @nobody, @${member.email}`
    expect((await say(server, id, body)).mentions).toEqual([
      { type: 'agent', id: agent.id },
      { type: 'user', id: member.userId },
    ])
    expect((await say(server, id, `@${hidden.id}`)).mentions).toEqual([{ type: 'agent', id: hidden.id }])
    expect((await say(server, id, `@${hidden.id} @hidden-one`, member.token)).mentions).toEqual([])
  })

  test('what is wrong with a text is said by the name under which it was sent', async () => {
    const { id } = await makeConversation(server)
    const { id: said } = await say(server, id, 'First')
    const { key } = await server.ok('/tasks', { body: { title: 'Named' }, headers: keyed() })
    const sent: [path: string, name: string, more?: object][] = [
      [`/conversations/${id}/messages`, 'content'],
      [`/conversations/${id}/messages`, 'body'],
      [`/conversations/${id}/send`, 'text'],
      [`/messages/${said}`, 'text'],
      ['/conversations', 'firstMessage'],
      [`/tasks/${key}/comments`, 'content'],
      [`/tasks/${key}/comments`, 'body'],
      [`/tasks/${key}/transition`, 'comment', { status: 'done' }],
    ]
    for (const [path, name, more] of sent)
      for (const text of [' ', `Use ${secret}`]) {
        const reply = await server.call(path, { body: { ...more, [name]: text }, headers: keyed() })
        expect([reply.status, path, reply.body.error.param]).toEqual([400, path, name])
      }
    const without = await server.call(`/tasks/${key}/comments`, { body: {}, headers: keyed() })
    expect(without.body.error).toMatchObject({ code: 'validation_error', param: 'content' })
  })

  test('the same key is the same message', async () => {
    const { id } = await makeConversation(server)
    const headers = keyed()
    const post = () => server.call(`/conversations/${id}/messages`, { body: { body: 'Once' }, headers })
    const [first, again] = [await post(), await post()]
    expect(again.body).toEqual(first.body)
    expect((await server.ok(`/conversations/${id}`)).messageCount).toBe(1)
  })

  test('refuses what does not fit', async () => {
    const { id } = await makeConversation(server)
    const elsewhere = await say(server, (await makeConversation(server)).id, 'Elsewhere')
    const refused = async (body: object, token?: string) => outcomeOf(await tryPost(server, id, body, token))
    expect(await refused({ body: ' \n ' })).toBe('400 empty_message')
    expect(await refused({ body: `Use ${secret}` })).toBe('400 secret_in_message')
    expect(await refused({ body: 'x', parentMessageId: elsewhere.id })).toBe('400 parent_not_in_conversation')
    expect(await refused({ body: 'x', parentMessageId: 'msg_0000000000000000' })).toBe('400 parent_not_in_conversation')
    expect(await refused({ body: 'x', attachmentIds: ['file_1'] })).toBe('404 resource_not_found')
    expect(await refused({ body: 'x', attachmentIds: Array(21).fill('f') })).toBe('400 validation_error')
    expect(await refused({ body: 'x', source: 'fax' })).toBe('400 validation_error')
    expect(await refused({ body: 'x'.repeat(100_001) })).toBe('400 validation_error')
    expect(await refused({})).toBe('400 validation_error')
    expect(await refused({ body: 'x' }, member.token)).toBe('403 not_a_participant')
    expect(outcomeOf(await tryPost(server, 'cnv_0000000000000000', { body: 'x' }))).toBe('404 conversation_not_found')
    const unkeyed = await server.call(`/conversations/${id}/messages`, { body: { body: 'x' } })
    expect(outcomeOf(unkeyed)).toBe('400 idempotency_invalid_key')
    // The secret is not said back.
    const reply = await tryPost(server, id, { body: `Use ${secret}` })
    expect(JSON.stringify(reply.body)).not.toContain(secret)
    expect((await server.ok(`/conversations/${id}`)).messageCount).toBe(0)
  })

  test('many at once get places of their own', async () => {
    const { id } = await makeConversation(server)
    const sent = await Promise.all(Array.from({ length: 12 }, (_, n) => say(server, id, `m${n}`)))
    const { data } = await server.ok(`/conversations/${id}/messages`)
    expect(data).toHaveLength(12)
    expect(new Set(data.map((each: { id: string }) => each.id))).toEqual(new Set(sent.map((each) => each.id)))
    const read = await server.ok(`/conversations/${id}`)
    expect(read).toMatchObject({
      messageCount: 12,
      lastMessageId: data.at(-1).id,
      lastMessagePreview: data.at(-1).body,
    })
  })
})

describe('list', () => {
  async function talk(count: number): Promise<{ id: string; ids: string[] }> {
    const { id } = await makeConversation(server)
    const ids: string[] = []
    for (let n = 1; n <= count; n++) ids.push((await say(server, id, `m${n}`)).id)
    return { id, ids }
  }
  const bodies = (page: { data: { body: string }[] }) => page.data.map((each) => each.body)
  const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => `m${from + n}`)

  test('is oldest first and pages by id both ways', async () => {
    const { id, ids } = await talk(7)
    const page = (query: string) => server.ok(`/conversations/${id}/messages?${query}`)
    const first = await page('limit=3')
    expect(bodies(first)).toEqual(range(1, 3))
    expect(first).toMatchObject({ object: 'list', hasMore: true, nextCursor: ids[2] })
    const second = await page(`limit=3&startingAfter=${first.nextCursor}`)
    expect([bodies(second), second.hasMore]).toEqual([range(4, 6), true])
    const third = await page(`limit=3&startingAfter=${ids[5]}`)
    expect([bodies(third), third.hasMore, third.nextCursor]).toEqual([range(7, 7), false, null])
    const back = await page(`limit=3&endingBefore=${ids[6]}`)
    expect([bodies(back), back.hasMore, back.nextCursor]).toEqual([range(4, 6), true, ids[3]])
    expect(bodies(await page(`limit=3&endingBefore=${ids[3]}`))).toEqual(range(1, 3))
    expect(bodies(await page(`limit=3&endingBefore=${ids[0]}`))).toEqual([])
  })

  test('`around` returns the page that holds one message', async () => {
    const { id, ids } = await talk(30)
    const around = (n: number, query = '') => server.ok(`/conversations/${id}/messages?around=${ids[n - 1]}${query}`)
    const middle = await around(15)
    expect(bodies(middle)).toEqual(range(3, 27))
    expect(middle).toMatchObject({ hasMore: true, hasMoreBefore: true, nextCursor: ids[26] })
    const small = await around(2, '&before=5&after=1')
    expect([bodies(small), small.hasMore, small.hasMoreBefore]).toEqual([range(1, 3), true, false])
    expect(bodies(await around(30, '&before=0&after=100'))).toEqual(['m30'])
    const refused = async (query: string) => outcomeOf(await server.call(`/conversations/${id}/messages?${query}`))
    expect(await refused(`around=${ids[0]}&startingAfter=${ids[1]}`)).toBe('400 invalid_cursor')
    expect(await refused(`around=${ids[0]}&endingBefore=${ids[1]}`)).toBe('400 invalid_cursor')
    expect(await refused(`startingAfter=${ids[0]}&endingBefore=${ids[1]}`)).toBe('400 invalid_cursor')
    expect(await refused('startingAfter=msg_0000000000000000')).toBe('400 invalid_cursor')
    expect(await refused('around=msg_0000000000000000')).toBe('404 message_not_found')
    expect(await refused(`around=${ids[0]}&before=101`)).toBe('400 validation_error')
    expect(await refused('before=5')).toBe('400 validation_error')
    expect(await refused('after=5')).toBe('400 validation_error')
    expect(await refused('limit=101')).toBe('400 validation_error')
  })

  test('deleted ones are hidden, or shown without their text', async () => {
    const { id, ids } = await talk(3)
    await remove(ids[1]!)
    const page = (query = '') => server.ok(`/conversations/${id}/messages${query}`)
    expect(bodies(await page())).toEqual(['m1', 'm3'])
    const all = await page('?includeDeleted=true')
    expect(bodies(all)).toEqual(['m1', '', 'm3'])
    expect(all.data[1].deletedAt).toEqual(expect.any(String))
    expect(bodies(await page(`?startingAfter=${ids[1]}`))).toEqual(['m3'])
    expect(bodies(await page(`?around=${ids[2]}`))).toEqual(['m1', 'm3'])
    const hidden = await server.call(`/conversations/${id}/messages?around=${ids[1]}`)
    expect(outcomeOf(hidden)).toBe('404 message_not_found')
    expect(bodies(await page(`?around=${ids[1]}&includeDeleted=true`))).toEqual(['m1', '', 'm3'])
  })
})

describe('one message', () => {
  test('is read with what is asked for', async () => {
    const { id } = await makeConversation(server, { title: 'Place' })
    const message = await say(server, id, 'first')
    await edit(message.id, { body: 'second' })
    await edit(message.id, { content: 'third' })
    expect((await server.ok(`/messages/${message.id}`)).body).toBe('third')
    const full = await server.ok(`/messages/${message.id}?include=conversation,author&include[]=editHistory`)
    expect(full).toMatchObject({
      conversation: { id, kind: 'channel', title: 'Place' },
      author: { ...asUser(server.owner), handle: expect.stringMatching(/^@/), name: expect.any(String) },
      editHistory: [
        { body: 'first', replacedAt: expect.any(String) },
        { body: 'second', replacedAt: full.editedAt },
      ],
    })
    expect(outcomeOf(await server.call(`/messages/${message.id}?include=task`))).toBe('400 invalid_include')
    expect(outcomeOf(await server.call('/messages/msg_0000000000000000'))).toBe('404 message_not_found')
    expect(outcomeOf(await server.call('/messages/x'))).toBe('400 invalid_id_format')
  })

  test('is not found by whom its conversation is hidden from', async () => {
    const dm = await makeDm(server, (await server.createAgent()).id)
    const message = await say(server, dm.id, 'private')
    await (await device.take()).end()
    for (const reply of [
      await server.call(`/messages/${message.id}`, as(member)),
      await edit(message.id, { body: 'x' }, member.token),
      await remove(message.id, member.token),
    ])
      expect(outcomeOf(reply)).toBe('404 message_not_found')
  })

  test('is edited by its author only; what it mentions is found anew, and the preview follows', async () => {
    const agent = await server.createAgent()
    const { id } = await makeConversation(server, { participants: [member.userId, agent.id] })
    const message = await say(server, id, 'a', member.token)
    const edited = await edit(message.id, { body: `b ${agent.handle}` }, member.token)
    expect(edited.body).toMatchObject({
      body: `b ${agent.handle}`,
      mentions: [{ type: 'agent', id: agent.id }],
      editedAt: expect.any(String),
      updatedAt: edited.body.editedAt,
    })
    expect((await server.ok(`/conversations/${id}`)).lastMessagePreview).toBe(`b ${agent.handle}`)
    // As it is already: nothing happens.
    const same = await edit(message.id, { body: `b ${agent.handle}` }, member.token)
    expect(same.body.editedAt).toBe(edited.body.editedAt)
    const refused = async (body: object, token = member.token) => outcomeOf(await edit(message.id, body, token))
    expect(await refused({ body: 'c' }, admin.token)).toBe('403 not_authorized')
    expect(await refused({ body: ' ' })).toBe('400 empty_message')
    expect(await refused({ body: secret })).toBe('400 secret_in_message')
    expect(await refused({})).toBe('400 validation_error')
    expect(outcomeOf(await edit('msg_0000000000000000', { body: 'x' }))).toBe('404 message_not_found')
    await remove(message.id, member.token)
    expect(await refused({ body: 'd' })).toBe('409 message_deleted')
  })

  test('is deleted by its author or an admin, and its text is gone with its history', async () => {
    const { id } = await makeConversation(server, { participants: [member.userId] })
    const [one, two] = [await say(server, id, 'one'), await say(server, id, 'two', member.token)]
    await edit(two.id, { body: 'two and more' }, member.token)
    expect(outcomeOf(await remove(one.id, member.token))).toBe('403 not_authorized')
    const deleted = await remove(two.id, admin.token)
    expect(deleted.body).toMatchObject({ id: two.id, body: '', deletedAt: expect.any(String) })
    const read = await server.ok(`/messages/${two.id}?include=editHistory`)
    expect(read).toMatchObject({ body: '', deletedAt: deleted.body.deletedAt, editHistory: [] })
    expect(await server.ok(`/conversations/${id}`)).toMatchObject({
      messageCount: 1,
      lastMessageId: one.id,
      lastMessagePreview: 'one',
    })
    expect(outcomeOf(await remove(two.id, admin.token))).toBe('409 message_deleted')
    expect(outcomeOf(await remove('msg_0000000000000000'))).toBe('404 message_not_found')
    expect((await remove(one.id)).status).toBe(200)
    expect(await server.ok(`/conversations/${id}`)).toMatchObject({ messageCount: 0, lastMessageId: null })
  })

  test('an agent edits and deletes its own', async () => {
    const agent = await server.createAgent()
    const { id } = await makeConversation(server, { participants: [agent.id] })
    const run = await liveRun(server, device, agent.id)
    const own = await say(server, id, 'mine', run.token)
    expect(own.author).toEqual({ type: 'agent', id: agent.id })
    expect((await edit(own.id, { body: 'still mine' }, run.token)).body.body).toBe('still mine')
    const others = await say(server, id, 'not its')
    expect(outcomeOf(await edit(others.id, { body: 'x' }, run.token))).toBe('403 not_authorized')
    expect(outcomeOf(await remove(others.id, run.token))).toBe('403 not_authorized')
    expect((await remove(own.id, run.token)).status).toBe(200)
    await run.end()
  })
})
