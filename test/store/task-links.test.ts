import {
  idFrom,
  type ActorRef,
  type AgentRef,
  type PersonUuid,
  type RepoUuid,
  type TaskId,
} from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import {
  countChecklistItems,
  findChecklistItem,
  insertChecklistItems,
  listChecklists,
  replaceChecklistItem,
  shiftPositions,
  type ChecklistRow,
} from '../../control-plane/resources/tasks/own/checklist-store.ts'
import {
  findDependency,
  countBlockedBy,
  countBlocking,
  insertDependencies,
  isWaitingFor,
  listDependencies,
  removeDependency,
  replaceDependency,
} from '../../control-plane/resources/tasks/own/dependency-store.ts'
import { hasOpenBlocker, listBlockedTasks, replaceTask } from '../../control-plane/resources/tasks/store.ts'
import {
  claimUnassignment,
  insertUnassignment,
  isBeingUnassigned,
  listUnassignments,
  removeUnassignment,
} from '../../control-plane/resources/tasks/unassignment-store.ts'
import {
  countWatchers,
  findWatcher,
  insertWatcher,
  listWatchers,
  removeWatcher,
  replaceReadMark,
  replaceWatcher,
} from '../../control-plane/resources/tasks/own/watcher-store.ts'
import {
  countRepos,
  findRepo,
  insertRepo,
  listRepos,
  removeRepo,
  repoOfRemote,
} from '../../control-plane/resources/repos/store.ts'
import { readRemote } from '../../control-plane/resources/repos/rules.ts'
import { databaseTroubleOf } from '../../control-plane/db/dialect.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedTask, seedWorkspace } from './seed.ts'

const item = (taskId: string, changes: Partial<ChecklistRow> = {}): ChecklistRow => ({
  id: realWorld.id('chk_'),
  taskId: idFrom(taskId),
  text: 'Item',
  done: false,
  position: 0,
  completedAt: null,
  completedByType: null,
  completedByRef: null,
  archivedAt: null,
  createdAt: at,
  updatedAt: at,
  ...changes,
})

onBoth('a deleted agent that is still on tasks is marked until it is off all of them', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [first, second] = ['agt_1', 'agt_2']
    .map((one) => idFrom<AgentRef>(one))
    .map((agentRef, n) => ({ agentRef, workspaceId, createdAt: at + n }))
  for (const each of [second!, first!]) await insertUnassignment(root, each)
  expect(await listUnassignments(root, 5)).toEqual(['agt_1', 'agt_2'])
  expect(await listUnassignments(root, 1)).toEqual(['agt_1'])
  expect(await root.transaction((tx) => claimUnassignment(tx, idFrom('agt_2')))).toEqual(second)
  await removeUnassignment(root, idFrom('agt_1'))
  expect([await isBeingUnassigned(root, idFrom('agt_1')), await isBeingUnassigned(root, idFrom('agt_2'))]).toEqual([
    false,
    true,
  ])
  expect(await claimUnassignment(root, idFrom('agt_1'))).toBeNull()
})

onBoth('checklist items keep their order and are counted without the archived ones', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [task, other] = [await seedTask(root, workspaceId), await seedTask(root, workspaceId)]
  const items = [0, 1, 2].map((position) => item(task.id, { position, text: `"${position}"` }))
  await insertChecklistItems(root, items)
  await insertChecklistItems(root, [item(task.id, { archivedAt: at }), item(other.id)])
  await insertChecklistItems(root, [])
  expect(await countChecklistItems(root, task.id)).toBe(3)
  const all = { ofEach: 9, inAll: 9 }
  const lists = await listChecklists(root, [task.id, other.id], all)
  expect(lists.get(task.id)).toEqual(items)
  expect(lists.get(other.id)).toHaveLength(1)
  expect((await listChecklists(root, [task.id], { ...all, ofEach: 2 })).get(task.id)).toEqual(items.slice(0, 2))
  const cut = await listChecklists(root, [task.id, other.id], { ...all, inAll: 3 })
  expect([cut.get(task.id), cut.get(other.id)?.length]).toEqual([items.slice(0, 2), 1])
  expect((await listChecklists(root, [], all)).size).toBe(0)
  const done: ChecklistRow = {
    ...items[1]!,
    done: true,
    completedAt: at + 1,
    completedByType: 'agent',
    completedByRef: idFrom<ActorRef>('agt_1'),
    updatedAt: at + 1,
  }
  await replaceChecklistItem(root, done)
  expect(await findChecklistItem(root, task.id, done.id)).toEqual(done)
  expect(await findChecklistItem(root, other.id, done.id)).toBeNull()
  const places = async () => {
    const shown = (await listChecklists(root, [task.id], all)).get(task.id) ?? []
    return items.map(({ id }) => shown.find((each) => each.id === id)?.position)
  }
  await shiftPositions(root, { taskId: task.id, from: 2, to: 0 })
  expect(await places()).toEqual([1, 2, 2])
  await shiftPositions(root, { taskId: task.id, from: 0, to: 1 })
  expect(await places()).toEqual([0, 2, 2])
  await shiftPositions(root, { taskId: task.id, from: 1, to: 1 })
  expect(await places()).toEqual([0, 2, 2])
})

onBoth('dependencies block while their task is open, and are followed through others', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [a, b, c, d] = [
    await seedTask(root, workspaceId),
    await seedTask(root, workspaceId),
    await seedTask(root, workspaceId),
    await seedTask(root, workspaceId),
  ]
  const link = (from: { id: TaskId }, to: { id: TaskId }, type: 'blocks' | 'related' = 'blocks', createdAt = at) => ({
    taskId: from.id,
    dependsOnTaskId: to.id,
    type,
    createdAt,
  })
  await replaceDependency(root, link(a, b))
  await insertDependencies(root, [link(b, c)])
  await insertDependencies(root, [])
  await replaceDependency(root, link(a, d, 'related', at + 1))
  expect(await findDependency(root, { taskId: a.id, dependsOnTaskId: d.id })).toEqual(link(a, d, 'related', at + 1))
  expect(await findDependency(root, { taskId: d.id, dependsOnTaskId: a.id })).toBeNull()
  expect(await isWaitingFor(root, a.id, c.id)).toBe(true)
  expect(await isWaitingFor(root, c.id, a.id)).toBe(false)
  expect(await isWaitingFor(root, a.id, d.id)).toBe(false)
  const ids = async (id: TaskId, direction: 'blockedBy' | 'blocking') =>
    (await listDependencies(root, id, direction)).map((linked) => [linked.task.id, linked.type])
  expect(await ids(a.id, 'blockedBy')).toEqual([
    [b.id, 'blocks'],
    [d.id, 'related'],
  ])
  expect(await ids(c.id, 'blocking')).toEqual([[b.id, 'blocks']])
  expect(await countBlockedBy(root, a.id)).toBe(2)
  expect(await countBlocking(root, [a.id, c.id, d.id])).toEqual(
    new Map([
      [c.id, 1],
      [d.id, 1],
    ]),
  )
  expect(await countBlocking(root, [])).toEqual(new Map())
  expect(await listBlockedTasks(root, [a.id, b.id, c.id, d.id])).toEqual(new Set([a.id, b.id]))
  expect(await listBlockedTasks(root, [])).toEqual(new Set())
  expect(await hasOpenBlocker(root, b.id)).toBe(true)
  await replaceTask(root, c, { ...c, status: 'cancelled' })
  expect(await hasOpenBlocker(root, b.id)).toBe(false)
  expect(await hasOpenBlocker(root, a.id)).toBe(true)
  await replaceDependency(root, link(a, b, 'related'))
  expect(await hasOpenBlocker(root, a.id)).toBe(false)
  expect(await removeDependency(root, link(a, b))).toBe(true)
  expect(await removeDependency(root, link(a, b))).toBe(false)
  // A loop that should not be there ends all the same.
  await replaceDependency(root, link(c, b))
  expect(await isWaitingFor(root, b.id, d.id)).toBe(false)
})

onBoth(
  'whether a task waits for another one is found in long chains and thickets, in few questions',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const tasks: { id: TaskId }[] = []
    for (let made = 0; made < 130; made++) tasks.push(await seedTask(root, workspaceId))
    const linked = (from: number, to: number) => ({
      taskId: tasks[from]!.id,
      dependsOnTaskId: tasks[to]!.id,
      type: 'blocks' as const,
      createdAt: at,
    })
    const waits = async (from: number, to: number) => {
      let asked = 0
      const count = () => void asked++
      root.on('query', count)
      const is = await isWaitingFor(root, tasks[from]!.id, tasks[to]!.id)
      root.off('query', count)
      return { is, asked }
    }
    await insertDependencies(
      root,
      tasks.slice(1).map((_, at) => linked(at, at + 1)),
    )
    expect((await waits(0, 129)).is).toBe(true)
    const back = await waits(1, 0)
    expect(back.is).toBe(false)
    expect(back.asked).toBeLessThanOrEqual(6)
    // Every one waits for all behind it: more ways than are read at once.
    for (let from = 0; from < 128; from++)
      await insertDependencies(
        root,
        tasks.slice(from + 2).map((_, at) => linked(from, from + 2 + at)),
      )
    expect((await waits(0, 129)).is).toBe(true)
    expect((await waits(129, 0)).is).toBe(false)
    expect((await waits(1, 0)).is).toBe(false)
    expect((await waits(60, 61)).is).toBe(true)
  },
)

onBoth('whether a task waits for another one is what a walk over all links says', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const tasks: { id: TaskId }[] = []
  for (let made = 0; made < 90; made++) tasks.push(await seedTask(root, workspaceId))
  const behind = new Map<number, number[]>()
  for (let from = 0; from < tasks.length; from++) {
    // Mostly the next one, and some far jumps, loops among them.
    const to = [
      ...new Set([from + 1, (from * 37 + 11) % 90, (from * 53) % 90].filter((one) => one < 90 && one !== from)),
    ]
    behind.set(from, from % 7 === 0 ? to : to.slice(0, 1))
  }
  await insertDependencies(
    root,
    [...behind].flatMap(([from, all]) =>
      all.map((to) => ({
        taskId: tasks[from]!.id,
        dependsOnTaskId: tasks[to]!.id,
        type: 'blocks' as const,
        createdAt: at,
      })),
    ),
  )
  const reachedFrom = (from: number) => {
    const reached = new Set<number>()
    const ahead = [from]
    for (let one = ahead.pop(); one !== undefined; one = ahead.pop())
      for (const to of behind.get(one) ?? []) {
        if (!reached.has(to)) ahead.push(to)
        reached.add(to)
      }
    return reached
  }
  for (const from of [0, 5, 30, 61, 88, 89])
    for (let to = 0; to < 90; to += 4)
      if (to !== from)
        expect([from, to, await isWaitingFor(root, tasks[from]!.id, tasks[to]!.id)]).toEqual([
          from,
          to,
          reachedFrom(from).has(to),
        ])
})

onBoth('watchers are kept once each, and read marks move', async ({ root }) => {
  const task = await seedTask(root, await seedWorkspace(root))
  const watcher = {
    taskId: task.id,
    subjectType: 'agent' as const,
    subjectRef: idFrom<ActorRef>('agt_1'),
    addedBy: 'auto' as const,
    origin: null,
    askedByUuid: null,
    createdAt: at,
  }
  expect(await insertWatcher(root, watcher)).toBe(true)
  expect(await insertWatcher(root, { ...watcher, origin: idFrom('tsk_1') })).toBe(false)
  expect(
    await insertWatcher(root, { ...watcher, subjectType: 'user', subjectRef: idFrom('usr_1'), createdAt: at + 1 }),
  ).toBe(true)
  expect(await findWatcher(root, watcher)).toEqual(watcher)
  expect(await findWatcher(root, { ...watcher, subjectRef: idFrom('agt_2') })).toBeNull()
  await replaceWatcher(root, {
    ...watcher,
    addedBy: 'manual',
    origin: idFrom('cnv_1'),
    askedByUuid: idFrom<PersonUuid>('u'),
  })
  expect(await countWatchers(root, task.id)).toBe((await listWatchers(root, task.id)).length)
  const kept = (await listWatchers(root, task.id)).map((row) => [row.subjectRef, row.origin, row.askedByUuid])
  expect(kept).toEqual([
    ['agt_1', 'cnv_1', 'u'],
    ['usr_1', null, null],
  ])
  expect(await removeWatcher(root, watcher)).toBe(true)
  expect(await removeWatcher(root, watcher)).toBe(false)
  const reader = { taskId: task.id, readerType: 'user' as const, readerRef: idFrom<ActorRef>('usr_1') }
  await replaceReadMark(root, reader, at)
  await replaceReadMark(root, reader, at + 1)
  const { taskId: task_id, readerType: reader_type, readerRef: reader_id } = reader
  expect(await root('task_reads')).toMatchObject([{ task_id, reader_type, reader_id, last_read_at: at + 1 }])
})

onBoth('a repo is known by its remote in any form, once in each workspace', async ({ root }) => {
  const [workspaceId, other] = [await seedWorkspace(root), await seedWorkspace(root)]
  const repo = (remote: string, id = workspaceId) => ({
    ...readRemote(remote)!,
    id: idFrom<RepoUuid>(realWorld.uuid()),
    workspaceId: id,
    cloneUrl: null,
    defaultBranch: 'main',
    createdAt: at,
  })
  const web = repo('https://github.com/Acme/Web.git')
  await insertRepo(root, web)
  expect(await insertRepo(root, repo('git@github.com:acme/web')).catch(databaseTroubleOf)).toBe('duplicate')
  await insertRepo(root, repo('git@github.com:acme/web', other))
  const app = repo('https://gitlab.com/acme/app')
  await insertRepo(root, app)
  expect(await findRepo(root, workspaceId, idFrom(web.id.toUpperCase()))).toEqual(web)
  expect(await findRepo(root, other, web.id)).toBeNull()
  expect(await listRepos(root, workspaceId, 10)).toEqual([app, web])
  expect(await countRepos(root, workspaceId)).toBe(2)
  for (const form of ['ssh://git@github.com/acme/web.git', 'GitHub.com:acme/web'])
    expect(await repoOfRemote(root, workspaceId, form)).toEqual(web)
  expect(await repoOfRemote(root, workspaceId, 'https://github.com/acme/other')).toBeNull()
  expect(await repoOfRemote(root, workspaceId, 'not a remote')).toBeNull()
  expect(await removeRepo(root, other, web.id)).toBe(false)
  expect(await removeRepo(root, workspaceId, web.id)).toBe(true)
  expect(await removeRepo(root, workspaceId, web.id)).toBe(false)
})
