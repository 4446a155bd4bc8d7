import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FakeDevice } from '../../kit/fake-device.ts'
import { codeOf, outcomeOf, type TestServer, type Person } from '../../kit/server.ts'
import { act, asUser, keyed, liveRun, makeConversation, makeDm, say, tryPost, startTalk } from '../../kit/talk.ts'

let server: TestServer, device: FakeDevice, member: Person, admin: Person, stop: () => Promise<void>
beforeAll(async () => {
  ;({ server, device, member, admin, stop } = await startTalk())
})
afterAll(() => stop())

const as = (person: Person) => ({ token: person.token })
const tryMake = async (body: object, token?: string) =>
  server.call('/conversations', { body, headers: keyed(), ...(token === undefined ? {} : { token }) })

describe('create', () => {
  test('a channel holds whoever is asked for and the caller, once each', async () => {
    const agent = await server.createAgent()
    const body = {
      title: ' Release ',
      participants: [
        agent.handle,
        { type: 'user', id: member.userId },
        { type: 'agent', id: agent.id },
        server.owner.userId,
      ],
    }
    const reply = await tryMake(body)
    expect(reply.status).toBe(201)
    const { workspaceId, publicId, companyId } = (await server.ok('/user/workspaces')).data.map(
      (each: { id: string; publicId: string; companyId: string }) => ({ workspaceId: each.id, ...each }),
    )[0]
    expect(workspaceId).toBe(server.owner.workspaceId)
    expect(reply.body).toEqual({
      object: 'conversation',
      id: expect.stringMatching(/^cnv_/),
      workspaceId: publicId,
      companyId,
      title: 'Release',
      taskId: null,
      kind: 'channel',
      triggerMode: 'mention_to_wake',
      capabilities: { canEdit: true, canArchive: true, canDelete: true },
      participants: expect.arrayContaining([asUser(server.owner), asUser(member), { type: 'agent', id: agent.id }]),
      agentParticipantCount: 1,
      lastMessageId: null,
      lastMessagePreview: null,
      lastActivityAt: null,
      messageCount: 0,
      createdBy: asUser(server.owner),
      archivedAt: null,
      lastReadAt: null,
      unreadCount: 0,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    })
    expect(reply.body.participants).toHaveLength(3)
  })

  test('a dm is of one person and one agent, and there is one of them', async () => {
    const agent = await server.createAgent()
    const dm = await makeDm(server, agent.id)
    expect(dm).toMatchObject({
      kind: 'dm',
      triggerMode: 'respond_to_all',
      capabilities: { canEdit: true, canArchive: false, canDelete: false },
      participants: [asUser(server.owner), { type: 'agent', id: agent.id }],
    })
    const again = await tryMake({ kind: 'dm', participants: [agent.id] })
    expect(outcomeOf(again)).toBe('409 dm_already_exists')
    expect(again.body.error.details).toEqual({ conversationId: dm.id })
    // Somebody else's is another one.
    expect((await makeDm(server, agent.id, member.token)).id).not.toBe(dm.id)
  })

  test('a dm of other numbers is refused', async () => {
    const [one, two] = [await server.createAgent(), await server.createAgent()]
    const dm = async (...participants: unknown[]) => outcomeOf(await tryMake({ kind: 'dm', participants }))
    expect(await dm()).toBe('400 dm_requires_one_agent')
    expect(await dm(one.id, two.id)).toBe('400 dm_requires_one_agent')
    expect(await dm(one.id, member.userId)).toBe('400 dm_requires_one_user')
  })

  test('many dms at once are one', async () => {
    const agent = await server.createAgent()
    const replies = await Promise.all(
      Array.from({ length: 6 }, () => tryMake({ kind: 'dm', participants: [agent.id] })),
    )
    expect(replies.map(outcomeOf).sort()).toEqual(['201', ...Array<string>(5).fill('409 dm_already_exists')])
  })

  test('an agent makes a dm with a person, and is in it', async () => {
    const agent = await server.createAgent()
    const run = await liveRun(server, device, agent.id)
    const body = { kind: 'dm', participants: [member.userId], firstMessage: { body: 'Hello from the run.' } }
    const dm = await makeConversation(server, body, run.token)
    expect(dm).toMatchObject({ createdBy: { type: 'agent', id: agent.id }, messageCount: 1, unreadCount: 0 })
    expect((await tryMake({ kind: 'dm' }, run.token)).body.error.code).toBe('dm_requires_one_user')
    expect(await server.ok(`/conversations/${dm.id}`, as(member))).toMatchObject({ unreadCount: 1 })
    await run.end()
  })

  test('the first message is the caller’s, and what it may not say is refused with all', async () => {
    const { id } = await makeConversation(server, { title: 'First', firstMessage: 'Hello *all*\n' })
    const { data } = await server.ok(`/conversations/${id}/messages`)
    expect(data).toMatchObject([{ body: 'Hello *all*\n', author: asUser(server.owner) }])
    expect(await server.ok(`/conversations/${id}`)).toMatchObject({
      messageCount: 1,
      lastMessageId: data[0].id,
      lastMessagePreview: 'Hello *all*',
      lastActivityAt: data[0].createdAt,
      unreadCount: 0,
    })
    const count = async () => (await server.ok('/conversations?limit=100')).data.length
    const before = await count()
    expect(outcomeOf(await tryMake({ firstMessage: '' }))).toBe('400 empty_message')
    expect(outcomeOf(await tryMake({ firstMessage: {} }))).toBe('400 empty_message')
    expect(outcomeOf(await tryMake({ firstMessage: ['AKIA', 'IOSFODNN7EXAMPLE'].join('') }))).toBe(
      '400 secret_in_message',
    )
    expect(await count()).toBe(before)
  })

  test('the conversation of a task is no channel either, in which comments would not wake the assignee', async () => {
    const task = await server.ok('/tasks', { body: { title: `Talk ${crypto.randomUUID()}` }, headers: keyed() })
    const made = await makeConversation(server, { taskId: task.key, kind: 'channel' }, member.token)
    expect(made).toMatchObject({ kind: 'dm', taskId: task.id, triggerMode: 'respond_to_all' })
    expect(outcomeOf(await act(server, made.id, 'archive'))).toBe('409 conversation_dm_not_archivable')
  })

  test('the conversation of a task is a dm of its own rules, and there is one', async () => {
    const agent = await server.createAgent()
    const task = await server.ok('/tasks', { body: { title: `Talk ${crypto.randomUUID()}` }, headers: keyed() })
    const made = await makeConversation(server, { taskId: task.key, participants: [agent.id, member.userId] })
    expect(made).toMatchObject({ kind: 'dm', taskId: task.id, triggerMode: 'respond_to_all' })
    const again = await tryMake({ taskId: task.id })
    expect(outcomeOf(again)).toBe('409 task_already_has_conversation')
    expect(again.body.error.details).toEqual({ conversationId: made.id })
    expect(outcomeOf(await tryMake({ taskId: 'tsk_0000000000000000' }))).toBe('404 task_not_found')
    expect(outcomeOf(await act(server, made.id, 'delete'))).toBe('409 conversation_task_linked')
    expect(outcomeOf(await act(server, made.id, 'archive'))).toBe('409 conversation_dm_not_archivable')
    expect((await server.ok(`/conversations/${made.id}?include=task`)).task).toMatchObject({
      id: task.id,
      key: task.key,
    })
  })

  test('refuses unknown people and agents, and private agents of others', async () => {
    const hidden = await server.createAgent({ visibility: 'private' })
    const gone = await server.createAgent()
    await server.call(`/agents/${gone.id}`, { method: 'DELETE' })
    for (const participant of [
      'usr_0000000000000000',
      'nobody',
      gone.id,
      { type: 'user', id: gone.id },
      { type: 'agent', id: member.userId },
    ])
      expect(outcomeOf(await tryMake({ participants: [participant] }))).toBe('404 participant_not_found')
    const seen = await tryMake({ participants: [hidden.id] }, member.token)
    expect(outcomeOf(seen)).toBe('404 participant_not_found')
    expect(outcomeOf(await tryMake({ kind: 'group' }))).toBe('400 validation_error')
    expect(outcomeOf(await tryMake({ title: ' ' }))).toBe('400 validation_error')
    const unkeyed = await server.call('/conversations', { body: {} })
    expect(outcomeOf(unkeyed)).toBe('400 idempotency_invalid_key')
  })
})

describe('who sees what', () => {
  test('channels all people, dms their person and admins, an agent where it is', async () => {
    const agent = await server.createAgent()
    const run = await liveRun(server, device, agent.id)
    const dm = await makeDm(server, agent.id, member.token)
    const channel = await makeConversation(server, { title: 'Open' })
    const closed = await makeConversation(server, { title: 'With it', participants: [agent.id] })
    const other = await server.addPerson('member')
    const sees = async (token: string, id: string) => outcomeOf(await server.call(`/conversations/${id}`, { token }))
    expect(await sees(member.token, dm.id)).toBe('200')
    expect(await sees(admin.token, dm.id)).toBe('200')
    expect(await sees(run.token, dm.id)).toBe('200')
    expect(await sees(other.token, dm.id)).toBe('404 conversation_not_found')
    expect(await sees(other.token, channel.id)).toBe('200')
    expect(await sees(run.token, channel.id)).toBe('404 conversation_not_found')
    expect(await sees(run.token, closed.id)).toBe('200')
    const listed = async (token: string) =>
      (await server.ok('/conversations?limit=100', { token })).data.map((each: { id: string }) => each.id)
    expect(await listed(run.token)).toEqual([closed.id, dm.id])
    expect(await listed(other.token)).not.toContain(dm.id)
    expect(await listed(other.token)).toEqual(expect.arrayContaining([channel.id, closed.id]))
    expect(await listed(admin.token)).toContain(dm.id)
    const ids = [dm.id, 'nonsense', channel.id, 'cnv_0000000000000000']
    const batch = await server.ok(`/conversations?ids=${ids.join(',')}`, as(other))
    expect(batch.data.map((each: { id: string } | null) => each?.id ?? null)).toEqual([null, null, channel.id, null])
    // What cannot be seen cannot be read, posted to or changed either.
    for (const path of ['messages', 'events'])
      expect(codeOf(await server.call(`/conversations/${dm.id}/${path}`, as(other)))).toBe('conversation_not_found')
    expect(codeOf(await tryPost(server, dm.id, { body: 'x' }, other.token))).toBe('conversation_not_found')
    expect(codeOf(await act(server, dm.id, 'read', as(other)))).toBe('conversation_not_found')
    await run.end()
  })

  test('the conversation of a task in a private project is seen by who sees the project', async () => {
    const project = await server.ok('/projects', { body: { name: 'Secret', visibility: 'private' } })
    const body = { title: `Hidden ${crypto.randomUUID()}`, projectId: project.id }
    const task = await server.ok('/tasks', { body, headers: keyed() })
    const { id } = await makeConversation(server, { taskId: task.id })
    expect(outcomeOf(await server.call(`/conversations/${id}`, as(member)))).toBe('404 conversation_not_found')
    const listed = async (person: Person) =>
      (await server.ok('/conversations?limit=100', as(person))).data.some((each: { id: string }) => each.id === id)
    expect([await listed(member), await listed(admin), await listed(server.owner)]).toEqual([false, true, true])
    const batch = await server.ok(`/conversations?ids=${id}`, as(member))
    expect(batch.data).toEqual([null])
  })
})

describe('list', () => {
  test('is newest first, pages by id both ways, and filters', async () => {
    const agent = await server.createAgent()
    const task = await server.ok('/tasks', { body: { title: `List ${crypto.randomUUID()}` }, headers: keyed() })
    const made: string[] = []
    for (const body of [{ title: 'One' }, { title: 'Two', taskId: task.id }, { title: 'Three' }, { title: 'Four' }]) {
      server.world.advance(10)
      made.unshift((await makeConversation(server, { participants: [agent.id], ...body })).id)
    }
    const page = (query: string) => server.ok(`/conversations?participantId=${agent.handle}&${query}`)
    const ids = (list: { data: { id: string }[] }) => list.data.map((each) => each.id)
    const first = await page('limit=2')
    expect(ids(first)).toEqual(made.slice(0, 2))
    expect(first).toMatchObject({ object: 'list', hasMore: true })
    expect(ids(await page(`limit=2&startingAfter=${made[1]}`))).toEqual(made.slice(2))
    const second = await page(`limit=2&startingAfter=${first.nextCursor}`)
    expect(ids(second)).toEqual(made.slice(2))
    expect(second).toMatchObject({ hasMore: false, nextCursor: null })
    const back = await page(`limit=2&endingBefore=${made[3]}`)
    expect(ids(back)).toEqual([made[1], made[2]])
    expect(back.hasMore).toBe(true)
    expect(ids(await page(`limit=2&endingBefore=${made[1]}`))).toEqual([made[0]])
    expect(ids(await page('q=t'))).toEqual([made[1], made[2]])
    expect(ids(await page(`taskId=${task.key}`))).toEqual([made[2]])
    expect(ids(await page('taskId=none'))).toEqual([made[0], made[1], made[3]])
    expect(ids(await page('taskId=tsk_0000000000000000'))).toEqual([])
    expect(ids(await server.ok('/conversations?participantId=usr_0000000000000000'))).toEqual([])
    expect((await act(server, made[0]!, 'archive')).body.archivedAt).not.toBeNull()
    expect(ids(await page(''))).toEqual(made.slice(1))
    expect(ids(await page('archived=true'))).toEqual(made)
  })

  test('has the latest activity first, and a page goes on from where the one before ended', async () => {
    const agent = await server.createAgent()
    const made: string[] = []
    for (const title of ['One', 'Two', 'Three', 'Four', 'Five', 'Six']) {
      server.world.advance(10)
      made.push((await makeConversation(server, { participants: [agent.id], title })).id)
    }
    const [one, two, three, four, five, six] = made
    const say = async (id: string) => {
      server.world.advance(10)
      await server.ok(`/conversations/${id}/messages`, { body: { body: 'Here.' }, headers: keyed() })
    }
    await say(two!)
    const read = async (query: string) => {
      const { data, nextCursor } = await server.ok(`/conversations?participantId=${agent.id}&limit=2&${query}`)
      return { ids: data.map((each: { id: string }) => each.id), next: nextCursor }
    }
    const first = await read('')
    expect(first.ids).toEqual([two, six])
    // The row at which the next page starts, and one of a later page, move to the top.
    await say(six!)
    await say(three!)
    const second = await read(`startingAfter=${first.next}`)
    expect(second.ids).toEqual([five, four])
    const third = await read(`startingAfter=${second.next}`)
    expect(third).toEqual({ ids: [one], next: null })
    expect((await read(`endingBefore=${second.next}`)).ids).toEqual([two, five])
    expect((await read(`startingAfter=${six}`)).ids).toEqual([two, five])
  })

  test('refuses what does not fit', async () => {
    const { id } = await makeConversation(server)
    const refused = async (query: string) => outcomeOf(await server.call(`/conversations?${query}`))
    expect(await refused(`startingAfter=${id}&endingBefore=${id}`)).toBe('400 invalid_cursor')
    expect(await refused('startingAfter=cnv_0000000000000000')).toBe('400 invalid_cursor')
    expect(await refused(`ids=${id}&limit=5`)).toBe('400 ids_exclusive')
    expect(await refused(`ids=${Array(101).fill(id).join(',')}`)).toBe('400 too_many_ids')
    expect(await refused('limit=101')).toBe('400 validation_error')
    expect(await refused(`q=${'x'.repeat(201)}`)).toBe('400 validation_error')
  })
})

describe('one conversation', () => {
  test('is read with what is asked for', async () => {
    const agent = await server.createAgent({ name: 'Reader' })
    const { id } = await makeConversation(server, { participants: [agent.id] })
    for (let n = 1; n <= 27; n++) await say(server, id, `m${n}`)
    const plain = await server.ok(`/conversations/${id}`)
    expect(Object.keys(plain)).not.toContain('messages')
    const full = await server.ok(
      `/conversations/${id}?include=messages&include[]=task,participantsExpanded&include=runtime`,
    )
    expect(full.messages.map((each: { body: string }) => each.body)).toEqual(
      Array.from({ length: 25 }, (_, n) => `m${n + 3}`),
    )
    expect(full.task).toBeNull()
    expect(full.participantsExpanded).toContainEqual({ type: 'agent', id: agent.id, handle: '@reader', name: 'Reader' })
    expect(full.participantsExpanded).toContainEqual({
      ...asUser(server.owner),
      handle: expect.stringMatching(/^@/),
      name: expect.any(String),
    })
    expect(full.runtime).toEqual({ modelId: null, harness: null, reasoningEffort: null, speed: null, changedAt: null })
    const invalid = await server.call(`/conversations/${id}?include=everything`)
    expect(outcomeOf(invalid)).toBe('400 invalid_include')
    expect(outcomeOf(await server.call('/conversations/cnv_0000000000000000'))).toBe('404 conversation_not_found')
    expect(outcomeOf(await server.call('/conversations/7'))).toBe('400 invalid_id_format')
  })

  test('is renamed by who is in it, or an admin, a dm too', async () => {
    const channel = await makeConversation(server, { title: 'Old', participants: [member.userId] })
    const rename = (id: string, person: Person) =>
      server.call(`/conversations/${id}`, { body: { title: 'New' }, ...as(person) })
    expect((await rename(channel.id, member)).body).toMatchObject({ title: 'New' })
    expect(outcomeOf(await rename(channel.id, await server.addPerson('member')))).toBe('403 not_authorized')
    expect(outcomeOf(await rename(channel.id, admin))).toBe('200')
    const dm = await makeDm(server, (await server.createAgent()).id)
    expect((await rename(dm.id, server.owner)).body.title).toBe('New')
    const patch = await server.call(`/conversations/${dm.id}`, { method: 'PATCH', body: { title: 'New' } })
    expect(outcomeOf(patch)).toBe('404 route_not_found')
    expect(outcomeOf(await server.call(`/conversations/${dm.id}`, { body: {} }))).toBe('400 validation_error')
    expect(outcomeOf(await rename('cnv_0000000000000000', admin))).toBe('404 conversation_not_found')
  })

  test('counts what is unread: others’ live messages since one read', async () => {
    const { id } = await makeConversation(server, { participants: [member.userId] })
    const unread = async (person: Person) => (await server.ok(`/conversations/${id}`, as(person))).unreadCount
    await say(server, id, 'one')
    await say(server, id, 'two')
    await say(server, id, 'mine', member.token)
    expect([await unread(member), await unread(server.owner), await unread(admin)]).toEqual([2, 1, 3])
    const { lastReadAt } = (await act(server, id, 'read', as(member))).body
    expect(await server.ok(`/conversations/${id}`, as(member))).toMatchObject({ unreadCount: 0, lastReadAt })
    const three = await say(server, id, 'three')
    expect([await unread(member), await unread(server.owner)]).toEqual([1, 1])
    await server.ok(`/messages/${three.id}/delete`, { method: 'POST', headers: keyed() })
    expect(await unread(member)).toBe(0)
    expect(outcomeOf(await act(server, 'cnv_0000000000000000', 'read'))).toBe('404 conversation_not_found')
  })
})
