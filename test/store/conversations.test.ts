import {
  idFrom,
  type ActorRef,
  type AutomationId,
  type ConversationId,
  type PersonRef,
  type TaskId,
  type WorkspaceUuid,
} from '../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { expect } from 'vitest'
import { dialectOfDb, databaseTroubleOf } from '../../control-plane/db/dialect.ts'
import type { Db } from '../../control-plane/db/open.ts'
import {
  countUnread,
  insertParticipants,
  isParticipant,
  listParticipants,
  listReads,
  mostUnread,
  recordRead,
  removeParticipant,
} from '../../control-plane/resources/conversations/participant-store.ts'
import {
  claimConversation,
  findConversation,
  findConversationOfTask,
  findDm,
  insertConversation,
  listConversations,
  listConversationsByIds,
  recordPost,
  recordRemoval,
  removeConversation,
  replaceConversation,
  replacePreview,
  type NewConversation,
} from '../../control-plane/resources/conversations/store.ts'
import {
  findLastMessage,
  findMessage,
  findReplyOfRun,
  findSentMessage,
  findThreadStart,
  insertMessage,
  listEdits,
  listLastAuthors,
  listMessages,
  maxThreadSteps,
  removeMessage,
  replaceBody,
  replaceTurnRun,
  type MessageRow,
} from '../../control-plane/resources/conversations/message-store.ts'
import { listRunsOfConversation } from '../../control-plane/resources/runs/list-store.ts'
import { listRemoved, removeSomeOfConversation } from '../../control-plane/sweeps/removal-store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedAgent, seedRun, seedWorkspace, wroteSecond } from './seed.ts'

const [ada, ben] = [idFrom<PersonRef>('usr_Ada0000000000000'), idFrom<PersonRef>('usr_Ben0000000000000')]
const [bot, other] = ['agt_Bot0000000000000', 'agt_Other00000000000']

async function seedConversation(db: Db, workspaceId: WorkspaceUuid, changes: Partial<NewConversation> = {}) {
  const conversation: NewConversation = {
    id: realWorld.id('cnv_'),
    workspaceId,
    kind: 'channel',
    title: null,
    taskId: null,
    dmUser: null,
    dmAgent: null,
    createdByType: 'user',
    createdByRef: ada,
    createdAt: at,
    ...changes,
  }
  expect(await insertConversation(db, conversation)).toBe(true)
  return conversation.id
}

async function post(db: Db, conversationId: ConversationId, changes: Partial<MessageRow> = {}): Promise<MessageRow> {
  const id = realWorld.id('msg_')
  const when = changes.createdAt ?? at
  const body = changes.body ?? 'text'
  const seq = await recordPost(db, { conversationId, messageId: id, preview: body, at: when })
  const message: MessageRow = {
    id,
    conversationId,
    seq: seq!,
    authorType: 'user',
    authorRef: ada,
    body,
    source: 'in_app',
    externalRef: null,
    automationId: null,
    mentions: [],
    parentMessageId: null,
    attachmentIds: [],
    replyOfRun: null,
    turnRun: null,
    sendKey: null,
    editedAt: null,
    deletedAt: null,
    createdAt: when,
    updatedAt: when,
    ...changes,
  }
  await insertMessage(db, message)
  return message
}

onBoth('the start of a thread is found from any message of it', async ({ root }) => {
  const id = await seedConversation(root, await seedWorkspace(root))
  const start = await post(root, id)
  const reply = await post(root, id, { parentMessageId: start.id })
  const last = await post(root, id, { parentMessageId: reply.id })
  for (const message of [start, reply, last]) expect(await findThreadStart(root, message.id)).toBe(start.id)
  expect(await findThreadStart(root, idFrom('msg_0'))).toBeNull()
})

onBoth('the walk to the start of a thread ends after a bounded number of replies', async ({ root }) => {
  const id = await seedConversation(root, await seedWorkspace(root))
  const start = await post(root, id)
  const replies: MessageRow[] = []
  for (let seq = 2; seq <= maxThreadSteps + 2; seq++) {
    const reply = { ...start, id: realWorld.id('msg_'), seq, parentMessageId: (replies.at(-1) ?? start).id }
    await insertMessage(root, reply)
    replies.push(reply)
  }
  expect(await findThreadStart(root, replies.at(-2)!.id)).toBe(start.id)
  expect(await findThreadStart(root, replies.at(-1)!.id)).toBeNull()
})

onBoth('a conversation comes back as it was stored, and is replaced only as it was read', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const id = await seedConversation(root, workspaceId, { title: 'Größe 测试' })
  const stored = await findConversation(root, id)
  expect(stored).toMatchObject({ id, workspaceId, kind: 'channel', title: 'Größe 测试', messageCount: 0, version: 1 })
  expect(await claimConversation(root, id)).toEqual(stored)
  expect(await listConversationsByIds(root, workspaceId, [id, 'cnv_0'])).toEqual([stored])
  expect(await listConversationsByIds(root, await seedWorkspace(root), [id])).toEqual([])
  expect(await listConversationsByIds(root, workspaceId, [])).toEqual([])
  const changed = {
    ...stored!,
    title: null,
    archivedAt: at + 1,
    modelId: 'm',
    harness: 'claude' as const,
    reasoningEffort: 'high' as const,
    speed: 'fast' as const,
    runtimeChangedAt: at + 2,
    updatedAt: at + 2,
  }
  await replaceConversation(root, stored!, changed)
  expect(await findConversation(root, id)).toEqual({ ...changed, version: 2 })
  await expect(replaceConversation(root, stored!, changed)).rejects.toMatchObject(wroteSecond)
  expect(await findConversation(root, idFrom('cnv_0'))).toBeNull()
})

onBoth('a task has one conversation, and an agent one dm with a person', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const ofTask = await seedConversation(root, workspaceId, { kind: 'dm', taskId: idFrom<TaskId>('tsk_1') })
  const dm = await seedConversation(root, workspaceId, { kind: 'dm', dmUser: ada, dmAgent: bot })
  const again = async (changes: Partial<NewConversation>) => {
    const row = { id: realWorld.id('cnv_'), workspaceId, kind: 'dm' as const, title: null, taskId: null }
    const made = { dmUser: null, dmAgent: null, createdByType: 'user' as const, createdByRef: ada, createdAt: at }
    return insertConversation(root, { ...row, ...made, ...changes })
  }
  expect(await again({ taskId: idFrom<TaskId>('tsk_1') })).toBe(false)
  expect(await again({ dmUser: ada, dmAgent: bot })).toBe(false)
  expect(await again({ dmUser: ben, dmAgent: bot })).toBe(true)
  expect(await again({})).toBe(true)
  expect(await again({})).toBe(true)
  expect((await findConversationOfTask(root, idFrom('tsk_1')))?.id).toBe(ofTask)
  expect(await findConversationOfTask(root, idFrom('tsk_2'))).toBeNull()
  expect((await findDm(root, { workspaceId, personRef: ada, agentRef: bot }))?.id).toBe(dm)
  expect(await findDm(root, { workspaceId, personRef: ada, agentRef: other })).toBeNull()
})

onBoth('participants join once, leave, and are listed by conversation', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [one, two] = [await seedConversation(root, workspaceId), await seedConversation(root, workspaceId)]
  const both = [
    { type: 'user' as const, id: ada },
    { type: 'agent' as const, id: idFrom<ActorRef>(bot) },
  ]
  await insertParticipants(root, one, { participants: both, at })
  await insertParticipants(root, one, { participants: both, at: at + 5 })
  await insertParticipants(root, one, { participants: [{ type: 'agent', id: idFrom(other) }], at: at + 1 })
  await insertParticipants(root, two, { participants: [], at })
  expect(await listParticipants(root, [one, two])).toEqual(
    new Map([
      [one, [...both, { type: 'agent', id: other }]],
      [two, []],
    ]),
  )
  expect(await listParticipants(root, [])).toEqual(new Map())
  expect(await isParticipant(root, one, { type: 'agent', id: idFrom(bot) })).toBe(true)
  expect(await isParticipant(root, two, { type: 'agent', id: idFrom(bot) })).toBe(false)
  expect(await removeParticipant(root, one, { type: 'agent', id: idFrom(bot) })).toBe(true)
  expect(await removeParticipant(root, one, { type: 'agent', id: idFrom(bot) })).toBe(false)
})

onBoth('lists page both ways, and filter by task, participant, title, archive and viewer', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const ids = [
    await seedConversation(root, workspaceId, { title: '100% Plans', createdAt: at + 1 }),
    await seedConversation(root, workspaceId, { kind: 'dm', taskId: idFrom<TaskId>('tsk_1'), createdAt: at + 2 }),
    await seedConversation(root, workspaceId, { kind: 'dm', dmUser: ben, dmAgent: bot, createdAt: at + 3 }),
    await seedConversation(root, workspaceId, { title: 'plan', createdAt: at + 4 }),
  ]
  await seedConversation(root, await seedWorkspace(root))
  await insertParticipants(root, ids[2]!, { participants: [{ type: 'user', id: ben }], at })
  await insertParticipants(root, ids[0]!, { participants: [{ type: 'agent', id: idFrom(bot) }], at })
  const before = await findConversation(root, ids[3]!)
  await replaceConversation(root, before!, { ...before!, archivedAt: at })
  const listed = async (filter: Partial<Parameters<typeof listConversations>[1]>) =>
    (await listConversations(root, { workspaceId, limit: 25, visibleTo: null, withArchived: true, ...filter })).map(
      (row) => ids.indexOf(row.id),
    )
  expect(await listed({})).toEqual([3, 2, 1, 0])
  expect(await listed({ limit: 1 })).toEqual([3, 2])
  expect(await listed({ from: { direction: 'after', at: at + 3, id: ids[2]! } })).toEqual([1, 0])
  expect(await listed({ from: { direction: 'before', at: at + 2, id: ids[1]! } })).toEqual([2, 3])
  expect(await listed({ withArchived: false })).toEqual([2, 1, 0])
  expect(await listed({ task: 'none' })).toEqual([3, 2, 0])
  expect(await listed({ task: { id: idFrom('tsk_1') } })).toEqual([1])
  expect(await listed({ participantRef: idFrom(bot) })).toEqual([0])
  expect(await listed({ q: 'PLAN' })).toEqual([3, 0])
  expect(await listed({ q: '0%' })).toEqual([0])
  expect(await listed({ visibleTo: { type: 'user', id: ada, personUuid: idFrom('a') } })).toEqual([3, 1, 0])
  expect(await listed({ visibleTo: { type: 'user', id: ben, personUuid: idFrom('b') } })).toEqual([3, 2, 1, 0])
  expect(await listed({ visibleTo: { type: 'agent', id: idFrom(bot) } })).toEqual([0])
})

onBoth('conversations are listed by their last activity, along an index', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const ids: string[] = []
  for (let each = 0; each < 4; each++) ids.push(await seedConversation(root, workspaceId, { createdAt: at + each }))
  await post(root, idFrom(ids[1]!), { createdAt: at + 9 })
  await post(root, idFrom(ids[0]!), { createdAt: at + 2 })
  const list = async (db: Db, from?: { at: number; id: string; direction: 'after' | 'before' }) =>
    (
      await listConversations(db, {
        workspaceId,
        limit: 25,
        visibleTo: null,
        withArchived: false,
        ...(from && { from }),
      })
    ).map((row) => ids.indexOf(row.id))
  const [higher, lower] = ids[0]! > ids[2]! ? [0, 2] : [2, 0]
  expect(await list(root)).toEqual([1, 3, higher, lower])
  const from = { at: at + 2, id: ids[higher]! }
  for (const direction of ['after', 'before'] as const) {
    expect(await list(root, { ...from, direction })).toEqual(direction === 'after' ? [lower] : [3, 1])
    const plan = await planOf(root, (db) => list(db, { ...from, direction }))
    // The place itself is sought, on SQLite and on PostgreSQL: a late page costs no more than an early one.
    expect(plan).toMatch(/conversations_by_activity.*(<expr>[<>]|Index Cond.*ROW)/)
    expect(plan).not.toMatch(/sort|temp b-tree/i)
  }
})

/** How the database walks to the rows of a read. Few rows are always sorted: PostgreSQL is told that sorting is dear. */
async function planOf(root: Db, read: (db: Db) => Promise<unknown>): Promise<string> {
  return root.transaction(async (tx) => {
    const asked: { sql: string; bindings: readonly Knex.RawBinding[] }[] = []
    tx.on('query', ({ sql, bindings }) => asked.push({ sql, bindings }))
    await read(tx)
    const isPostgres = dialectOfDb(tx) === 'postgres'
    if (isPostgres) for (const way of ['sort', 'seqscan', 'bitmapscan']) await tx.raw(`set local enable_${way} = off`)
    const { sql, bindings } = asked[0]!
    const plan = await tx.raw(`explain ${isPostgres ? '' : 'query plan '}${sql.replaceAll(/\$\d+/g, '?')}`, bindings)
    return JSON.stringify(isPostgres ? plan.rows : plan)
  })
}

onBoth('posts number messages and keep the count and the last one', async ({ root }) => {
  const id = await seedConversation(root, await seedWorkspace(root))
  const first = await post(root, id, {
    body: 'one "q"\n测试',
    source: 'slack',
    externalRef: 'C1/2',
    automationId: idFrom<AutomationId>('aut_1'),
    mentions: [{ type: 'agent', id: idFrom(bot) }],
    attachmentIds: [idFrom('file_1')],
  })
  const second = await post(root, id, { authorType: 'system', authorRef: null, body: 'two', createdAt: at + 1 })
  expect([first.seq, second.seq]).toEqual([1, 2])
  expect(await findMessage(root, first.id)).toEqual(first)
  expect(await findMessage(root, idFrom('msg_0'))).toBeNull()
  const last = { lastMessageId: second.id, lastMessagePreview: 'two', lastActivityAt: at + 1 }
  expect(await findConversation(root, id)).toMatchObject({ ...last, messageCount: 2, messageSeq: 2 })
  await replacePreview(root, { conversationId: id, messageId: first.id, preview: 'not the last' })
  await replacePreview(root, { conversationId: id, messageId: second.id, preview: '2' })
  expect(await findConversation(root, id)).toMatchObject({ lastMessagePreview: '2' })
  expect(await removeMessage(root, second.id, at + 2)).toBe(true)
  expect(await removeMessage(root, second.id, at + 3)).toBe(false)
  expect((await findLastMessage(root, id))?.id).toBe(first.id)
  await recordRemoval(root, { conversationId: id, last: { messageId: first.id, preview: 'one' }, at: at + 2 })
  expect(await findConversation(root, id)).toMatchObject({ lastMessageId: first.id, messageCount: 1, messageSeq: 2 })
  await recordRemoval(root, { conversationId: id, last: null, at: at + 2 })
  expect(await findConversation(root, id)).toMatchObject({ lastMessageId: null, lastMessagePreview: null })
  expect(
    await recordPost(root, { conversationId: idFrom('cnv_0'), messageId: idFrom('msg_0'), preview: '', at }),
  ).toBeNull()
})

onBoth('messages are listed from either side, deleted ones only when asked for', async ({ root }) => {
  const id = await seedConversation(root, await seedWorkspace(root))
  const rows: MessageRow[] = []
  for (let n = 1; n <= 5; n++)
    rows.push(await post(root, id, { authorType: n === 3 ? 'agent' : 'user', createdAt: at + n }))
  await removeMessage(root, rows[1]!.id, at)
  const listed = async (range: Partial<Parameters<typeof listMessages>[1]>) =>
    (await listMessages(root, { conversationId: id, withDeleted: false, limit: 25, ...range })).map((row) => row.seq)
  expect(await listed({})).toEqual([1, 3, 4, 5])
  expect(await listed({ withDeleted: true, limit: 2 })).toEqual([1, 2, 3])
  expect(await listed({ place: { direction: 'after', seq: 3 } })).toEqual([4, 5])
  expect(await listed({ place: { direction: 'before', seq: 4 } })).toEqual([3, 1])
  expect(await listLastAuthors(root, id, 3)).toEqual([
    { type: 'user', at: at + 5 },
    { type: 'user', at: at + 4 },
    { type: 'agent', at: at + 3 },
  ])
  await post(root, id, { authorType: 'system', authorRef: null })
  expect(await listLastAuthors(root, id, 1)).toEqual([{ type: 'user', at: at + 5 }])
})

onBoth('an edit keeps what was said before; who was too late changes nothing', async ({ root }) => {
  const id = await seedConversation(root, await seedWorkspace(root))
  const message = await post(root, id, { body: 'a' })
  const mentions = [{ type: 'user' as const, id: ben }]
  await replaceBody(root, message, { body: 'b', mentions, at: at + 1 })
  await expect(replaceBody(root, message, { body: 'c', mentions: [], at: at + 2 })).rejects.toMatchObject(wroteSecond)
  const edited = await findMessage(root, message.id)
  expect(edited).toEqual({ ...message, body: 'b', mentions, editedAt: at + 1, updatedAt: at + 1 })
  await replaceBody(root, edited!, { body: 'c', mentions: [], at: at + 2 })
  expect(await listEdits(root, message.id, 9)).toEqual([
    { body: 'a', replacedAt: at + 1 },
    { body: 'b', replacedAt: at + 2 },
  ])
  expect(await listEdits(root, message.id, 1)).toEqual([{ body: 'b', replacedAt: at + 2 }])
  await removeMessage(root, message.id, at + 3)
  const deleted = await findMessage(root, message.id)
  await expect(replaceBody(root, deleted!, { body: 'd', mentions: [], at: at + 4 })).rejects.toMatchObject(wroteSecond)
})

onBoth('a run has one reply, and a key one message of its author', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [one, two] = [await seedConversation(root, workspaceId), await seedConversation(root, workspaceId)]
  const reply = await post(root, one, { replyOfRun: 'run_1' })
  expect((await findReplyOfRun(root, idFrom('run_1')))?.id).toBe(reply.id)
  expect(await findReplyOfRun(root, idFrom('run_2'))).toBeNull()
  expect(await post(root, two, { replyOfRun: 'run_1' }).catch(databaseTroubleOf)).toBe('duplicate')
  const sent = await post(root, one, { sendKey: 'k' })
  await post(root, two, { sendKey: 'k' })
  await post(root, one, { sendKey: 'k', authorRef: ben })
  expect(await post(root, one, { sendKey: 'k' }).catch(databaseTroubleOf)).toBe('duplicate')
  const key = { conversationId: one, authorRef: ada, key: 'k' }
  expect((await findSentMessage(root, key))?.id).toBe(sent.id)
  expect(await findSentMessage(root, { ...key, key: 'other' })).toBeNull()
  await replaceTurnRun(root, sent.id, idFrom('run_3'))
  expect((await findMessage(root, sent.id))?.turnRun).toBe('run_3')
})

onBoth('unread are live messages of others after the mark, which never goes back', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [one, two] = [await seedConversation(root, workspaceId), await seedConversation(root, workspaceId)]
  await post(root, one, { authorRef: ben })
  await post(root, one, { authorRef: ada })
  await post(root, one, { authorType: 'system', authorRef: null })
  const last = await post(root, one, { authorType: 'agent', authorRef: idFrom<ActorRef>(bot) })
  await post(root, two, { authorRef: ada })
  const unread = () => countUnread(root, ada, [one, two])
  expect(await unread()).toEqual(new Map([[one, 3]]))
  await removeMessage(root, last.id, at)
  expect(await unread()).toEqual(new Map([[one, 2]]))
  await recordRead(root, { conversationId: one, personRef: ben, seq: 4, at })
  await recordRead(root, { conversationId: one, personRef: ada, seq: 1, at: at + 1 })
  expect(await unread()).toEqual(new Map([[one, 1]]))
  await recordRead(root, { conversationId: one, personRef: ada, seq: 4, at: at + 2 })
  await recordRead(root, { conversationId: one, personRef: ada, seq: 2, at: at + 3 })
  expect(await unread()).toEqual(new Map())
  expect(await listReads(root, ada, [one, two])).toEqual(new Map([[one, { seq: 4, at: at + 2 }]]))
  expect(await listReads(root, ada, [])).toEqual(new Map())
  expect(await countUnread(root, ada, [])).toEqual(new Map())
  // More than are counted, whatever there is.
  await root.raw(`insert into messages (id, conversation_id, seq, author_type, author_id, body, source, mentions, attachment_ids, created_at, updated_at)
    with recursive n(i) as (select 1 union all select i + 1 from n where i < ${mostUnread + 50})
    select 'msg_' || i, '${two}', 100 + i, 'user', '${ben}', 'Hello.', 'in_app', '[]', '[]', ${at}, ${at} from n`)
  expect(await unread()).toEqual(new Map([[two, mostUnread]]))
})

onBoth('a removed conversation takes all that is in it along, and nothing else', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [one, two] = [await seedConversation(root, workspaceId), await seedConversation(root, workspaceId)]
  for (const id of [one, two]) {
    await insertParticipants(root, id, { participants: [{ type: 'user', id: ada }], at })
    await recordRead(root, { conversationId: id, personRef: ada, seq: 0, at })
    const message = await post(root, id)
    await replaceBody(root, message, { body: 'b', mentions: [], at })
  }
  await removeConversation(root, { id: one, workspaceId }, at)
  expect(await findConversation(root, one)).toBeNull()
  expect(await claimConversation(root, one)).toBeNull()
  expect((await listConversationsByIds(root, workspaceId, [one, two])).map(({ id }) => id)).toEqual([two])
  expect(await recordPost(root, { conversationId: one, messageId: idFrom('m'), preview: 'x', at })).toBeNull()
  expect(await listRemoved(root, 'conversations', 9)).toEqual([one])
  for (let end = 'more'; end === 'more';)
    end = await root.transaction((tx) => removeSomeOfConversation(tx, one, realWorld))
  expect(await listRemoved(root, 'conversations', 9)).toEqual([])
  expect(await listMessages(root, { conversationId: one, withDeleted: true, limit: 9 })).toEqual([])
  const [left] = await listMessages(root, { conversationId: two, withDeleted: true, limit: 9 })
  expect(await listEdits(root, left!.id, 9)).toHaveLength(1)
  expect((await listReads(root, ada, [one, two])).size).toBe(1)
})

onBoth('the runs of a conversation are listed in the order in which they were made', async ({ root }) => {
  const agent = await seedAgent(root, await seedWorkspace(root))
  const conversationId = 'cnv_a'
  const [first, second] = [
    await seedRun(root, agent, { conversationId: idFrom<ConversationId>(conversationId), createdAt: at + 1 }),
    await seedRun(root, agent, { conversationId: idFrom<ConversationId>(conversationId), createdAt: at + 2 }),
  ]
  await seedRun(root, agent, { conversationId: idFrom<ConversationId>('cnv_b') })
  await seedRun(root, agent)
  const listed = async (after: typeof first | null, limit = 9) =>
    (await listRunsOfConversation(root, { conversationId: idFrom(conversationId), after, limit })).map((run) => run.id)
  expect(await listed(null)).toEqual([first.id, second.id])
  expect(await listed(null, 1)).toEqual([first.id])
  expect(await listed(first)).toEqual([second.id])
  expect(await listed(second)).toEqual([])
})
