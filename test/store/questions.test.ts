import {
  idFrom,
  type ConversationId,
  type MessageId,
  type PersonRef,
  type PersonUuid,
  type TaskId,
  type WorkflowRunId,
} from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import { answerFromReply } from '../../control-plane/resources/questions/steps/answer.ts'
import {
  findQuestion,
  findQuestionByMessage,
  insertQuestion,
  listAnswerers,
  listOpenQuestions,
  listOverdueQuestions,
  listQuestions,
  resolveQuestion,
  setQuestionMessage,
} from '../../control-plane/resources/questions/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { questionRow } from './hold-rows.ts'
import { findUser } from '../../control-plane/resources/members/store.ts'
import { at, seedAgent, seedPerson, seedRun, seedWorkspace } from './seed.ts'

const id = <Prefix extends string>(prefix: Prefix) => realWorld.id(prefix)

onBoth(
  'a question comes back as it was stored, is answered once, and found by its message while it is open',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const stored = questionRow(workspaceId, {
      taskId: id('tsk_'),
      answerMode: 'single_select',
      options: [{ key: 'a', label: 'A' }],
      secretRequest: { name: 'n', provider: 'p', envVarName: 'E', reason: 'r' },
    })
    await insertQuestion(root, stored)
    const before = (await findQuestion(root, workspaceId, stored.id))!
    const open = { status: 'open', answer: null, answeredByRef: null, answeredAt: null, version: 1, updatedAt: at }
    expect(before).toEqual({ ...stored, ...open, messageId: null })
    expect(await findQuestion(root, await seedWorkspace(root), stored.id)).toBeNull()
    await setQuestionMessage(root, {
      questionId: stored.id,
      messageId: idFrom('msg_1'),
      conversationId: idFrom('cnv_1'),
    })
    expect(await findQuestionByMessage(root, idFrom('msg_1'))).toMatchObject({ id: stored.id, conversationId: 'cnv_1' })
    expect(await listOpenQuestions(root, 'run_id', [stored.runId])).toHaveLength(1)
    expect(await listOpenQuestions(root, 'agent_id', [stored.agentRef])).toHaveLength(1)
    const resolution = { answer: { text: null, selected: ['a'] }, by: idFrom<PersonRef>('usr_1'), at: at + 1 }
    expect(await resolveQuestion(root, before, resolution)).toBe(true)
    expect(await resolveQuestion(root, before, resolution)).toBe(false)
    expect(await findQuestion(root, workspaceId, stored.id)).toMatchObject({
      status: 'resolved',
      answer: { text: null, selected: ['a'] },
      answeredByRef: 'usr_1',
      answeredAt: at + 1,
    })
    expect(await findQuestionByMessage(root, idFrom('msg_1'))).toBeNull()
    expect(await listOpenQuestions(root, 'task_id', [stored.taskId!])).toEqual([])
  },
)

onBoth('the people are known who answered what a workflow asked', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [one, two] = [await seedPerson(root, workspaceId), await seedPerson(root, workspaceId)]
  const publicIdOf = async (uuid: PersonUuid) => (await findUser(root, uuid))!.publicId
  const workflowRunId = id('flr_')
  const asked = (of: WorkflowRunId | null) => questionRow(workspaceId, { workflowRunId: of, workflowCall: 1 })
  const [first, second, third, open, other] = [workflowRunId, workflowRunId, workflowRunId, workflowRunId, null].map(
    asked,
  )
  for (const row of [first, second, third, open, other]) await insertQuestion(root, row!)
  for (const [row, by] of [
    [first, one],
    [second, one],
    [third, two],
    [other, await seedPerson(root, workspaceId)],
  ] as const) {
    const stored = (await findQuestion(root, workspaceId, row!.id))!
    await resolveQuestion(root, stored, { answer: { text: 'yes', selected: null }, by: await publicIdOf(by), at })
  }
  expect((await listAnswerers(root, workflowRunId)).toSorted()).toEqual([one, two].toSorted())
})

onBoth('questions that have been waited for long enough are listed, the longest overdue first', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const waiting = (waitUntil: number | null) => questionRow(workspaceId, { waitUntil })
  const [stops, later, second, first] = [waiting(null), waiting(at + 3), waiting(at + 2), waiting(at + 1)] as const
  for (const row of [stops, later, second, first]) await insertQuestion(root, row)
  const overdue = async (limit: number) =>
    (await listOverdueQuestions(root, { now: at + 2, limit })).map(({ id }) => id)
  expect(await overdue(10)).toEqual([first.id, second.id])
  expect(await overdue(1)).toEqual([first.id])
  const row = (await findQuestion(root, workspaceId, first.id))!
  await resolveQuestion(root, row, { answer: null, by: null, at: at + 2 })
  expect(await overdue(10)).toEqual([second.id])
})

onBoth('questions are listed by each filter', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const rows = [
    questionRow(workspaceId, {
      createdAt: at + 1,
      taskId: idFrom<TaskId>('tsk_1'),
      conversationId: idFrom<ConversationId>('cnv_1'),
    }),
    questionRow(workspaceId, { createdAt: at + 2, sessionId: 'other' }),
  ]
  for (const row of rows) await insertQuestion(root, row)
  const listed = async (filter: object) =>
    (await listQuestions(root, { workspaceId, limit: 25, ...filter })).map((row) =>
      rows.findIndex((r) => r.id === row.id),
    )
  expect(await listed({})).toEqual([1, 0])
  expect(await listed({ taskId: 'tsk_1' })).toEqual([0])
  expect(await listed({ conversationId: 'cnv_1' })).toEqual([0])
  expect(await listed({ sessionId: 'other' })).toEqual([1])
  expect(await listed({ runId: rows[0]!.runId })).toEqual([0])
  expect(await listed({ agentRef: rows[1]!.agentRef })).toEqual([1])
  expect(await listed({ status: 'resolved' })).toEqual([])
})

onBoth(
  'a reply answers an open question once and asks for a wake; a secret is never given by one',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const agent = await seedAgent(root, workspaceId)
    const run = await seedRun(root, agent)
    const person = { personRef: idFrom<PersonRef>('usr_1'), name: 'Ada' }
    const say = (messageId: MessageId) =>
      answerFromReply(root, { threadStart: messageId, body: 'b', person, world: realWorld })
    const ofRun = { agentRef: agent.id, runId: run.id }
    const text = questionRow(workspaceId, {
      ...ofRun,
      answerMode: 'single_select',
      options: [{ key: 'a', label: 'A' }],
    })
    const secret = questionRow(workspaceId, { ...ofRun, answerMode: 'secret_input' })
    for (const [at_, question] of [text, secret].entries()) {
      await insertQuestion(root, question)
      const shown = {
        questionId: question.id,
        messageId: idFrom<MessageId>(`msg_${at_}`),
        conversationId: idFrom<ConversationId>('cnv_1'),
      }
      await setQuestionMessage(root, shown)
    }
    expect(await say(idFrom('msg_0'))).toBe(true)
    expect(await say(idFrom('msg_0'))).toBe(false)
    expect(await say(idFrom('msg_1'))).toBe(false)
    expect(await say(idFrom('msg_unknown'))).toBe(false)
    expect(await findQuestion(root, workspaceId, text.id)).toMatchObject({
      answer: { text: 'b', selected: null },
      answeredByRef: 'usr_1',
    })
    const wakes = (await root('wakes').where({ workspace_id: workspaceId })) as Record<string, unknown>[]
    expect(wakes).toMatchObject([{ agent_id: agent.id, trigger_source: 'approval_resolved', continues_run_id: run.id }])
    expect(wakes[0]!['prompt']).toContain('by "Ada" (usr_')
  },
)
