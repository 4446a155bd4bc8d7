import { idFrom } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import {
  claimDelivery,
  failDelivery,
  finishDelivery,
  insertDelivery,
  listDueDeliveries,
  removeOldDeliveries,
} from '../../control-plane/github/delivery-store.ts'
import type { Happening } from '../../control-plane/github/events.ts'
import { listTasksOfPull, listWorkspacesOfRepo } from '../../control-plane/github/task-store.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { insertAutomation } from '../../control-plane/resources/automations/store.ts'
import {
  findOnlyWorkspace,
  insertBinding,
  isBound,
  listBindings,
  listBoundWorkspaces,
  removeBinding,
} from '../../control-plane/resources/repos/binding-store.ts'
import { DeliveryWorker } from '../../control-plane/github/delivery-worker.ts'
import { silentLog } from '../../control-plane/process/log.ts'
import type { WakeContext } from '../../control-plane/run/wakes/wake.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { automationRow } from './automations-rows.ts'
import { at, seedAgent, seedWorkspace } from './seed.ts'

const happening: Happening = { kind: 'green', repo: 'acme/web', sha: 'a'.repeat(40), numbers: [1], hasPassed: true }
const merged: Happening = {
  kind: 'merged',
  repo: 'acme/web',
  number: 1,
  url: 'https://github.com/acme/web/pull/1',
  title: 'Work',
  branch: 'work',
  base: 'main',
  keys: [],
  headSha: 'a'.repeat(40),
  isFromOutside: false,
  defaultBranch: 'main',
  mergeSha: null,
}
const pull = {
  remote: 'github.com/acme/web',
  repo: 'acme/web',
  url: 'https://github.com/acme/web/pull/1',
  branch: 'work',
  keys: ['ABC-1'],
}

onBoth('a delivery is stored once, claimed once, and done or tried again', async ({ root }) => {
  expect(await insertDelivery(root, { id: 'd1', happening, at })).toBe(true)
  expect(await insertDelivery(root, { id: 'd1', happening, at: at + 5 })).toBe(false)
  await insertDelivery(root, { id: 'd2', happening, at: at + 1 })
  const [first, second] = await listDueDeliveries(root, at + 1, 10)
  expect(first).toEqual({ id: 'd1', happening, attempts: 0, dueAt: at })
  expect(await listDueDeliveries(root, at, 10)).toEqual([first])
  expect(await listDueDeliveries(root, at + 1, 1)).toEqual([first])
  expect(await claimDelivery(root, first!, at + 100)).toBe(true)
  expect(await claimDelivery(root, first!, at + 100)).toBe(false)
  expect((await listDueDeliveries(root, at + 1, 10)).map(({ id }) => id)).toEqual(['d2'])
  // Whoever claimed it is gone: it is due again.
  expect(await listDueDeliveries(root, at + 100, 10)).toMatchObject([{ id: 'd2' }, { id: 'd1', attempts: 1 }])
  await failDelivery(root, 'd1', { trouble: 'away', dueAt: at + 50 })
  expect(await listDueDeliveries(root, at + 50, 10)).toMatchObject([{ id: 'd2' }, { id: 'd1', dueAt: at + 50 }])
  await failDelivery(root, 'd1', { trouble: 'away', dueAt: null })
  expect([await finishDelivery(root, second!.id), await finishDelivery(root, second!.id)]).toEqual([true, false])
  expect(await listDueDeliveries(root, at + 1_000, 10)).toEqual([])
  expect(await root('github_deliveries').orderBy('id').select('state', 'trouble')).toEqual([
    { state: 'failed', trouble: 'away' },
    { state: 'done', trouble: null },
  ])
  expect(await insertDelivery(root, { id: 'd2', happening, at: at + 9 })).toBe(false)
  expect(await insertDelivery(root, { id: 'd1', happening, at: at + 9 })).toBe(true)
  expect(await listDueDeliveries(root, at + 9, 10)).toEqual([{ id: 'd1', happening, attempts: 0, dueAt: at + 9 }])
  expect(await removeOldDeliveries(root, at + 1)).toBe(1)
  expect(await insertDelivery(root, { id: 'd1', happening, at })).toBe(true)
})

onBoth('each failure of a delivery is told, and that it is given up at last', async ({ root }) => {
  let now = at
  const ends: string[] = []
  const world = { ...realWorld, now: () => now }
  const options = {
    root,
    world,
    log: silentLog,
    client: null,
    wakeContext: {} as WakeContext,
    get host(): string {
      throw new Error('away')
    },
  }
  const worker = new DeliveryWorker(options, (end) => void ends.push(end))
  await insertDelivery(root, { id: 'd1', happening: merged, at })
  for (let attempt = 0; attempt < 14; attempt++) {
    worker.poke()
    await worker.idle()
    now += 3_600_000
  }
  expect(ends).toEqual([...Array.from({ length: 11 }, () => 'again'), 'given_up'])
})

async function seedTask(db: Db, workspaceId: string, changes: Record<string, string> = {}) {
  const id = changes['id'] ?? `tsk_${crypto.randomUUID()}`
  await db('tasks').insert({
    id,
    workspace_id: workspaceId,
    key: id,
    title: 't',
    title_words: '',
    status: 'open',
    priority: 'normal',
    created_by_type: 'system',
    created_at: at,
    updated_at: at,
    ...changes,
  })
  return { id, workspaceId }
}
const bind = (db: Db, workspaceId: string, repository = 'acme/web') =>
  insertBinding(db, { workspaceId: idFrom(workspaceId), repository, at })

async function seedRepo(db: Db, workspaceId: string, name = 'acme/web') {
  const id = crypto.randomUUID()
  const remote = { git_remote: `github.com/${name}`, host: 'github.com', provider: 'github' }
  await db('repos').insert({ id, workspace_id: workspaceId, name, ...remote, created_at: at })
  return id
}

onBoth('a pull request is about tasks by key, branch or address, but not of another repository', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const other = await seedWorkspace(root)
  for (const bound of [workspaceId, other]) await bind(root, bound)
  const [repoId, otherRepo] = [await seedRepo(root, workspaceId), await seedRepo(root, workspaceId, 'acme/api')]
  const pullRequest = (number: number) => JSON.stringify({ number, url: `https://github.com/acme/web/pull/${number}` })
  const meant = [
    await seedTask(root, workspaceId, { key: 'ABC-1' }),
    await seedTask(root, workspaceId, { branch_name: 'work' }),
    await seedTask(root, workspaceId, { branch_name: 'work', repo_id: repoId }),
    await seedTask(root, workspaceId, { pull_request: pullRequest(1) }),
  ]
  await seedTask(root, workspaceId, { key: 'ABC-2', branch_name: 'work2', pull_request: pullRequest(12) })
  await seedTask(root, workspaceId, { branch_name: 'work', repo_id: otherRepo })
  // The same key where the repository is not known.
  await seedTask(root, other, { key: 'ABC-1', branch_name: 'work' })
  const found = await listTasksOfPull(root, pull)
  expect(found.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual(meant.toSorted((a, b) => (a.id < b.id ? -1 : 1)))
  expect(await listTasksOfPull(root, { ...pull, remote: 'github.com/x/y', repo: 'x/y' })).toEqual([])
})

onBoth(
  'no workspace keeps a pull request from the tasks of another one, nor a branch from the task it names',
  async ({ root }) => {
    const [theirs, workspaceId] = [await seedWorkspace(root), await seedWorkspace(root)]
    for (const bound of [theirs, workspaceId]) {
      await bind(root, bound)
      await seedRepo(root, bound)
      for (let count = 0; count < 3; count++)
        await seedTask(root, bound, { id: `tsk_0${bound}${count}`, branch_name: 'work' })
    }
    const named = await seedTask(root, workspaceId, { id: 'tsk_z', key: 'ABC-1' })
    const found = await listTasksOfPull(root, pull, 2)
    expect(found).toContainEqual(named)
    expect(found.map((task) => task.workspaceId).toSorted()).toEqual(
      [theirs, theirs, workspaceId, workspaceId].toSorted(),
    )
  },
)

onBoth('a workspace knows a repository by its repos, projects or automations', async ({ root }) => {
  const alone = await seedWorkspace(root)
  // The only one of its server knows all.
  expect(await listWorkspacesOfRepo(root, pull)).toEqual([alone])
  const [byRepo, byProject, byAutomation, near] = [
    await seedWorkspace(root),
    await seedWorkspace(root),
    await seedWorkspace(root),
    await seedWorkspace(root),
  ]
  expect(await listWorkspacesOfRepo(root, pull)).toEqual([])
  await seedRepo(root, byRepo)
  const addProject = (workspaceId: string, repoUrl: string, deletedAt: number | null = null) =>
    root('projects').insert({
      id: crypto.randomUUID(),
      workspace_id: workspaceId,
      name: 'p',
      description: '',
      status: 'active',
      visibility: 'company',
      repo_url: repoUrl,
      deleted_at: deletedAt,
      created_at: at,
      updated_at: at,
    })
  await addProject(byProject, 'git@github.com:Acme/Web.git')
  await addProject(near, 'https://github.com/acme/web2')
  await addProject(near, 'https://gitlab.com/acme/web')
  await addProject(near, 'https://github.com/acme/web', at)
  const agent = await seedAgent(root, byAutomation)
  await insertAutomation(
    root,
    automationRow(agent, { triggerType: 'github', event: 'pull_request.merged', repo: 'acme/web' }),
  )
  // A word of theirs binds nothing.
  expect(await listWorkspacesOfRepo(root, pull)).toEqual([])
  for (const each of [byRepo, byProject, byAutomation, near]) await bind(root, each)
  const known = await listWorkspacesOfRepo(root, pull)
  expect(known.toSorted()).toEqual([byRepo, byProject, byAutomation].toSorted())
})

onBoth(
  'a workspace reaches the repositories that are bound to it; the only one there is reaches all',
  async ({ root }) => {
    expect(await findOnlyWorkspace(root)).toBeNull()
    const first = await seedWorkspace(root, 'first')
    expect(await findOnlyWorkspace(root)).toBe(first)
    expect(await listBoundWorkspaces(root, 'any/thing')).toEqual([first])
    const second = await seedWorkspace(root, 'second')
    expect(await findOnlyWorkspace(root)).toBeNull()
    expect(await isBound(root, first, 'acme/web')).toBe(false)
    await bind(root, first, 'acme/*')
    await bind(root, second)
    await bind(root, second)
    expect((await listBoundWorkspaces(root, 'Acme/Web')).toSorted()).toEqual([first, second].toSorted())
    expect(await listBoundWorkspaces(root, 'acme/api')).toEqual([first])
    expect(await listBoundWorkspaces(root, 'acme2/web')).toEqual([])
    expect(await listBindings(root)).toEqual([
      { workspaceId: first, workspace: 'first', repository: 'acme/*' },
      { workspaceId: second, workspace: 'second', repository: 'acme/web' },
    ])
    expect(await removeBinding(root, { workspaceId: second, repository: 'acme/web' })).toBe(true)
    expect(await removeBinding(root, { workspaceId: second, repository: 'acme/web' })).toBe(false)
    expect(await isBound(root, second, 'acme/web')).toBe(false)
    await bind(root, second, '*')
    expect(await isBound(root, second, 'who/ever')).toBe(true)
  },
)
