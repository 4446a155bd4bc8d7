import {
  idFrom,
  type ActorRef,
  type AgentRef,
  type PersonUuid,
  type ProjectUuid,
  type RepoUuid,
  type TaskId,
} from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import { dialectOfDb, databaseTroubleOf } from '../../control-plane/db/dialect.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { findLastActivity, insertActivity, listActivity } from '../../control-plane/resources/tasks/activity-store.ts'
import {
  countLevels,
  countTasks,
  listAncestors,
  listDuplicateCandidates,
  listTasks,
} from '../../control-plane/resources/tasks/list-store.ts'
import {
  claimDueStart,
  claimTaskKey,
  findTask,
  findTaskById,
  hasOpenSubtask,
  insertTask,
  listDueStarts,
  countSubtasks,
  listUnfinishedOf,
  removeAssignee,
  listSubtasks,
  listTasksByIds,
  listBriefByReferences,
  listTasksByReferences,
  lockClosing,
  lockTaskGraph,
  replacePullRequest,
  replaceTask,
  tasks,
  type TaskRow,
} from '../../control-plane/resources/tasks/store.ts'
import { insertWatcher, listWatchers } from '../../control-plane/resources/tasks/own/watcher-store.ts'
import { insertGrant, insertProject } from '../../control-plane/resources/projects/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedAgent, seedTask, seedWorkspace, taskRow, wroteSecond } from './seed.ts'

onBoth('a task comes back as it was stored, and is replaced only from the version that was read', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const task = taskRow(workspaceId, {
    key: 'ABC-7',
    projectId: idFrom<ProjectUuid>(realWorld.uuid()),
    parentTaskId: idFrom<TaskId>('tsk_parent0000000000'),
    goalId: 'goal_1',
    workflowRef: 'wf_0000000000000000',
    title: 'Größe 测试',
    description: 'd\n"q"',
    status: 'in_review',
    assigneeAgentRef: idFrom<AgentRef>('agt_0000000000000000'),
    priority: 'urgent',
    dueAt: at + 1,
    startAt: at + 2,
    wakeAt: at + 2,
    branchName: 'feature/x',
    repoId: idFrom<RepoUuid>(realWorld.uuid()),
    baseBranch: 'main',
    pullRequest: { number: 3, url: 'https://github.com/a/b/pull/3' },
    environment: 'cloud',
    harness: 'codex',
    modelId: 'gpt-5',
    reasoningEffort: 'high',
    sandboxSize: 'large',
    createdByType: 'agent',
    createdByRef: idFrom<ActorRef>('agt_1'),
    startedAt: at + 3,
    completedAt: at + 4,
    cancelledAt: at + 5,
    archivedAt: at + 6,
  })
  await insertTask(root, task)
  expect(await findTaskById(root, task.id)).toEqual(task)
  expect(await tasks.find(root, { id: task.id })).toEqual(task)
  for (const reference of [task.id, 'ABC-7', 'abc-7'])
    expect(await findTask(root, workspaceId, reference)).toEqual(task)
  expect(await findTask(root, await seedWorkspace(root), task.id)).toBeNull()
  expect(await findTaskById(root, idFrom('tsk_0000000000000000'))).toBeNull()
  const changed: TaskRow = { ...task, title: 'Other', status: 'done', assigneeAgentRef: null, updatedAt: at + 9 }
  await replaceTask(root, task, changed)
  await expect(replaceTask(root, task, { ...task })).rejects.toMatchObject(wroteSecond)
  await root.transaction(async (tx) => {
    expect(await findTaskById(tx, task.id, true)).toEqual({ ...changed, version: 2 })
  })
  await replacePullRequest(root, task.id, { pullRequest: { number: 4, url: 'https://x.example/4' }, at: at + 10 })
  expect(await findTaskById(root, task.id)).toMatchObject({
    pullRequest: { number: 4, url: 'https://x.example/4' },
    version: 3,
    updatedAt: at + 10,
  })
})

onBoth(
  'keys count up, also when many take one at once; a number that was rolled back is taken again',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const other = await seedWorkspace(root)
    const take = () => root.transaction((tx) => claimTaskKey(tx, workspaceId))
    const keys = await Promise.all(Array.from({ length: 30 }, take))
    expect(keys.map((taken) => Number(taken!.key.slice(4))).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 30 }, (_, n) => n + 1),
    )
    const undone = root.transaction(async (tx) => {
      expect(await claimTaskKey(tx, workspaceId)).toEqual({ key: 'ABC-31' })
      throw new Error('undone')
    })
    await expect(undone).rejects.toThrow('undone')
    expect(await take()).toEqual({ key: 'ABC-31' })
    expect(await claimTaskKey(root, other)).toEqual({ key: 'ABC-1' })
    expect(await claimTaskKey(root, realWorld.uuid())).toBeNull()
    await insertTask(root, taskRow(workspaceId, { key: 'ABC-31' }))
    expect(await insertTask(root, taskRow(workspaceId, { key: 'ABC-31' })).catch(databaseTroubleOf)).toBe('duplicate')
    await insertTask(root, taskRow(other, { key: 'ABC-31' }))
  },
)

onBoth('lists page in both directions and filter', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const projectId = idFrom<ProjectUuid>(realWorld.uuid())
  const rows = [
    taskRow(workspaceId, { title: 'One%hundred', createdAt: at + 1, priority: 'low' }),
    taskRow(workspaceId, { description: 'Sells Shoes', status: 'done', createdAt: at + 2 }),
    taskRow(workspaceId, { assigneeAgentRef: idFrom<AgentRef>('agt_1'), key: 'SHOE-3', createdAt: at + 3, projectId }),
    taskRow(workspaceId, { archivedAt: at, createdAt: at + 4 }),
  ]
  rows.push(taskRow(workspaceId, { parentTaskId: rows[0]!.id, createdAt: at + 5 }))
  for (const row of rows) await insertTask(root, row)
  await insertTask(root, taskRow(await seedWorkspace(root)))
  const listed = async (filter: Partial<Parameters<typeof listTasks>[1]>) =>
    (await listTasks(root, { workspaceId, limit: 25, ...filter })).map((row) => rows.findIndex((r) => r.id === row.id))
  expect(await listed({})).toEqual([4, 2, 1, 0])
  expect(await listed({ withArchived: true })).toEqual([4, 3, 2, 1, 0])
  expect(await listed({ limit: 1 })).toEqual([4, 2])
  const from = (n: number, direction: 'after' | 'before') => ({
    from: { createdAt: rows[n]!.createdAt, id: rows[n]!.id, direction },
  })
  expect(await listed(from(2, 'after'))).toEqual([1, 0])
  expect(await listed(from(1, 'before'))).toEqual([2, 4])
  expect(await listed({ statuses: ['done'] })).toEqual([1])
  expect(await listed({ priorities: ['low', 'urgent'] })).toEqual([0])
  expect(await listed({ assigneeAgentRef: idFrom<AgentRef>('agt_1') })).toEqual([2])
  expect(await listed({ assigneeAgentRef: null })).toEqual([4, 1, 0])
  expect(await listed({ projectId })).toEqual([2])
  expect(await listed({ projectId: null })).toEqual([4, 1, 0])
  expect(await listed({ parentTaskId: rows[0]!.id })).toEqual([4])
  expect(await listed({ parentTaskId: null })).toEqual([2, 1, 0])
  expect(await listed({ q: 'e%H' })).toEqual([0])
  expect(await listed({ q: 'shoe' })).toEqual([2, 1])
  expect(await listed({ q: 'nothing' })).toEqual([])
})

onBoth('tasks of a private project are listed for whom it is, and an agent sees its own', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [lead, granted, assigned, stranger] = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const agent = await seedAgent(root, workspaceId)
      return { agentRef: agent.id, agentUuid: agent.uuid }
    }),
  )
  const id = idFrom<ProjectUuid>(realWorld.uuid())
  const owner = { personUuid: realWorld.uuid<PersonUuid>() }
  await insertProject(root, {
    id,
    workspaceId,
    name: 'Hidden',
    description: '',
    status: 'active',
    prefix: null,
    leadAgentUuid: lead!.agentUuid,
    ownerUuid: owner.personUuid,
    visibility: 'private',
    repoUrl: null,
    deletedAt: null,
    version: 1,
    createdAt: at,
    updatedAt: at,
  })
  await insertGrant(root, { projectId: id, agentRef: granted!.agentRef, createdAt: at })
  const hidden = await seedTask(root, workspaceId, { projectId: id, assigneeAgentRef: assigned!.agentRef })
  const open = await seedTask(root, workspaceId)
  const seen = async (visibleTo: Parameters<typeof listTasks>[1]['visibleTo']) =>
    (await listTasks(root, { workspaceId, limit: 5, visibleTo: visibleTo ?? null })).map((task) => task.id).toSorted()
  const both = [hidden.id, open.id].toSorted()
  await seedTask(root, workspaceId, { archivedAt: at })
  for (const viewer of [null, owner, lead!, granted!, assigned!]) {
    expect(await seen(viewer)).toEqual(both)
    expect(await countTasks(root, workspaceId, viewer)).toBe(2)
  }
  expect(await countTasks(root, workspaceId, stranger!)).toBe(1)
  for (const viewer of [stranger!, { personUuid: realWorld.uuid<PersonUuid>() }])
    expect(await seen(viewer)).toEqual([open.id])
})

onBoth('tasks are read by ids, references, parent and assignee', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const repoId = idFrom<RepoUuid>(realWorld.uuid())
  const parent = await seedTask(root, workspaceId, { key: 'ABC-1', createdAt: at })
  const child = await seedTask(root, workspaceId, {
    key: 'ABC-2',
    parentTaskId: parent.id,
    assigneeAgentRef: idFrom<AgentRef>('agt_1'),
    branchName: 'b',
    repoId,
    createdAt: at + 1,
  })
  const done = await seedTask(root, workspaceId, {
    key: 'ABC-3',
    parentTaskId: parent.id,
    assigneeAgentRef: idFrom<AgentRef>('agt_1'),
    status: 'done',
    branchName: 'b',
    createdAt: at + 2,
  })
  const ids = (rows: readonly { id: string }[]) => rows.map((row) => row.id)
  const elsewhere = await seedWorkspace(root)
  expect(ids(await listTasksByIds(root, workspaceId, [child.id, child.id]))).toEqual([child.id])
  expect(await listTasksByIds(root, elsewhere, [child.id])).toEqual([])
  expect(ids(await listTasksByReferences(root, workspaceId, ['abc-1', done.id, 'x'])).toSorted()).toEqual(
    [parent.id, done.id].toSorted(),
  )
  expect(await listTasksByReferences(root, workspaceId, [])).toEqual([])
  const brief = await listBriefByReferences(root, workspaceId, ['abc-1', done.id, 'x'])
  expect(ids(brief).toSorted()).toEqual(
    ids(await listTasksByReferences(root, workspaceId, ['abc-1', done.id])).toSorted(),
  )
  expect(brief[0]).not.toHaveProperty('description')
  expect(await listBriefByReferences(root, workspaceId, [])).toEqual([])
  const subtasks = await listSubtasks(root, parent.id)
  expect(ids(subtasks)).toEqual([child.id, done.id])
  // The descriptions of thousands would not fit into memory.
  expect(subtasks[0]).not.toHaveProperty('description')
  expect(await countSubtasks(root, parent.id)).toBe(2)
  const { id, key, title } = child
  expect(await listUnfinishedOf(root, idFrom('agt_1'), 2)).toEqual([{ id, key, title }])
  expect(await listUnfinishedOf(root, idFrom('agt_1'), 0)).toEqual([])
  await removeAssignee(root, [id], at + 3)
  expect(await listUnfinishedOf(root, idFrom('agt_1'), 2)).toEqual([])
  const free = { ...child, assigneeAgentRef: null, version: child.version + 1, updatedAt: at + 3 }
  expect(await findTaskById(root, child.id)).toEqual(free)
  expect(await hasOpenSubtask(root, parent.id)).toBe(true)
  await replaceTask(root, free, { ...free, archivedAt: at })
  expect(await hasOpenSubtask(root, parent.id)).toBe(false)
})

onBoth('the tree is measured upwards and downwards', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const chain: TaskRow[] = []
  for (let level = 0; level < 4; level++)
    chain.push(await seedTask(root, workspaceId, { parentTaskId: chain.at(-1)?.id ?? null }))
  expect(await listAncestors(root, chain[3]!.id)).toEqual([chain[2]!.id, chain[1]!.id, chain[0]!.id])
  expect(await listAncestors(root, chain[0]!.id)).toEqual([])
  expect(await countLevels(root, chain[0]!.id)).toBe(4)
  expect(await countLevels(root, chain[3]!.id)).toBe(1)
})

onBoth('what may be the same work is open, live, and of the same project and parent', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const projectId = realWorld.uuid<ProjectUuid>()
  const same = await seedTask(root, workspaceId, { title: 'Fix the tests', createdAt: at + 1 })
  const newer = await seedTask(root, workspaceId, { title: 'Other', status: 'in_review', createdAt: at + 2 })
  await seedTask(root, workspaceId, { status: 'done' })
  await seedTask(root, workspaceId, { archivedAt: at })
  const ofProject = await seedTask(root, workspaceId, { projectId })
  await seedTask(root, workspaceId, { parentTaskId: same.id })
  const candidates = (of: { projectId: ProjectUuid | null }) =>
    listDuplicateCandidates(root, { workspaceId, parentTaskId: null, ...of })
  expect(await candidates({ projectId: null })).toEqual([
    { id: newer.id, titleWords: 'other' },
    { id: same.id, titleWords: 'fix test' },
  ])
  expect((await candidates({ projectId })).map(({ id }) => id)).toEqual([ofProject.id])
})

onBoth('a scheduled start is taken once', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const soon = await seedTask(root, workspaceId, { wakeAt: at + 10 })
  const sooner = await seedTask(root, workspaceId, { wakeAt: at + 5 })
  await seedTask(root, workspaceId, { wakeAt: at + 11 })
  await seedTask(root, workspaceId)
  const due = await listDueStarts(root, { now: at + 10, limit: 10 })
  expect(due.map(({ id }) => id)).toEqual([sooner.id, soon.id])
  const [first] = await listDueStarts(root, { now: at + 10, limit: 1 })
  const rest = await listDueStarts(root, { now: at + 10, limit: 10, after: first! })
  expect([first, ...rest]).toEqual(due)
  const taken = await Promise.all([claimDueStart(root, soon), claimDueStart(root, soon)])
  expect(taken.toSorted()).toEqual([false, true])
  expect(await claimDueStart(root, { ...sooner, wakeAt: at + 6 })).toBe(false)
  expect((await listDueStarts(root, { now: at + 10, limit: 10 })).map(({ id }) => id)).toEqual([sooner.id])
})

onBoth('whoever links or closes tasks has those of the workspace to itself', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  for (const lock of [(tx: Db) => lockTaskGraph(tx, workspaceId), (tx: Db) => lockClosing(tx, workspaceId)]) {
    await root('workspaces').where({ id: workspaceId }).update({ description: '0' })
    const readThenWrite = () =>
      root.transaction(async (tx) => {
        await lock(tx)
        const { description } = (await tx('workspaces').where({ id: workspaceId }).first()) as { description: string }
        await tx('workspaces')
          .where({ id: workspaceId })
          .update({ description: String(Number(description) + 1) })
      })
    await Promise.all(Array.from({ length: 6 }, readThenWrite))
    expect(await root('workspaces').where({ id: workspaceId }).first('description')).toEqual({ description: '6' })
  }
})

onBoth('who inserts a row that refers to a locked one does not wait', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const task = await seedTask(root, workspaceId)
  const watcher = {
    subjectType: 'user',
    subjectRef: idFrom<ActorRef>('usr_1'),
    addedBy: 'auto',
    origin: null,
    askedByUuid: null,
    createdAt: at,
  } as const
  await root.transaction(async (tx) => {
    await findTaskById(tx, task.id, true)
    // SQLite has one connection, and one writer.
    const other = dialectOfDb(root) === 'postgres' ? root : tx
    await insertWatcher(other, { taskId: task.id, ...watcher })
  })
  expect(await listWatchers(root, task.id)).toHaveLength(1)
})

onBoth('activity keeps its order, also within one moment', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const task = await seedTask(root, workspaceId)
  const entry = (kind: string, source: 'activity' | 'git' = 'activity') => ({
    id: realWorld.id('act_'),
    taskId: task.id,
    source,
    kind,
    actorType: 'user' as const,
    actorRef: idFrom<ActorRef>('usr_1'),
    data: { n: 1, text: '"q"' },
    createdAt: at,
  })
  const made = [entry('a'), entry('git.merged', 'git'), entry('b')]
  for (const each of made) await insertActivity(root, each)
  const kinds = async (filter: Partial<Parameters<typeof listActivity>[1]>) =>
    (await listActivity(root, { taskId: task.id, limit: 10, ...filter })).map(({ kind }) => kind)
  expect(await kinds({})).toEqual(['b', 'git.merged', 'a'])
  expect(await kinds({ source: 'git' })).toEqual(['git.merged'])
  expect(await kinds({ limit: 1 })).toEqual(['b', 'git.merged'])
  const [newest] = await listActivity(root, { taskId: task.id, limit: 10 })
  expect(newest).toEqual({ ...made[2], seq: newest!.seq })
  expect(await kinds({ beforeSeq: newest!.seq })).toEqual(['git.merged', 'a'])
  await insertActivity(root, { ...entry('a'), data: { n: 2 } })
  await insertActivity(root, entry('c'))
  expect((await findLastActivity(root, { taskId: task.id, kind: 'a' }))?.data).toEqual({ n: 2 })
  expect(await findLastActivity(root, { taskId: task.id, kind: 'git.merged' })).toBeNull()
})
