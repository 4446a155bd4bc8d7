import fc from 'fast-check'
import type { Reply } from '../../kit/server.ts'
import type { Stage } from '../contract/stage.ts'
import { inPool, manyIds, on, plain, postKeyed, thing } from './kit/recipe.ts'
import type { CodeRecipe, Placed, ResourceFacts } from './kit/resource-facts.ts'
import {
  aTask,
  aTaskWith,
  atTask,
  makeTask,
  missing,
  strangersTask,
  unknownTask as unknown,
  withBusyTask,
} from './kit/tasks.ts'

const create = (stage: Stage, body: Record<string, unknown>) =>
  postKeyed(stage, '/tasks', { title: 'Refused', ...body })
const batch = (stage: Stage, item: Record<string, unknown>) =>
  postKeyed(stage, '/tasks/batch', { tasks: [{ title: 'Refused', ...item }] })

const hiddenProject = (stage: Stage) => stage.project({ visibility: 'private' })

/** Ids of four tasks, each below the one before. */
async function chain(stage: Stage): Promise<string[]> {
  const ids: string[] = []
  for (let level = 0; level < 4; level++)
    ids.push((await makeTask(stage, level === 0 ? {} : { parentTaskId: ids[level - 1] })).id)
  return ids
}

/** Lets the workspace hand out the number of its last task once more. */
async function withLaggingCounter(stage: Stage, send: () => Promise<Reply>): Promise<Reply> {
  await makeTask(stage)
  const rows = () => stage.server.database.root('workspaces').where({ id: stage.owner.workspaceId })
  await rows().decrement('issue_counter', 1)
  const reply = await send()
  await rows().increment('issue_counter', 1)
  return reply
}

/** Refusals of a new task, alone or within a batch. */
const ofNewTasks: readonly [string, (stage: Stage) => Promise<Record<string, unknown>>][] = [
  ['409 task_duplicate', async (stage) => ({ title: (await makeTask(stage)).title })],
  ['404 assignee_not_found', async () => ({ assignee: '@nobody' })],
  [
    '403 assignee_lacks_access',
    async (stage) => ({ assignee: await stage.agent(), projectId: await hiddenProject(stage) }),
  ],
  ['404 parent_task_not_found', async () => ({ parentTaskId: unknown })],
  ['400 parent_task_depth_exceeded', async (stage) => ({ parentTaskId: (await chain(stage))[3] })],
  ['400 base_branch_without_repo', async () => ({ baseBranch: 'main' })],
  ['400 model_not_found', async () => ({ modelId: 'no-such-model' })],
  ['400 reasoning_effort_unsupported', async () => ({ modelId: 'gpt-5', reasoningEffort: 'max' })],
  ['422 harness_model_unsupported', async () => ({ modelId: 'gpt-5', harness: 'claude' })],
  ['404 repo_not_found', async () => ({ repoId: crypto.randomUUID() })],
  ['404 dependency_task_not_found', async () => ({ dependsOn: [unknown] })],
  ['400 cross_company_dependency', async (stage) => ({ dependsOn: [await strangersTask(stage)] })],
]

const updated = async (stage: Stage, body: unknown, before: Record<string, unknown> = {}) =>
  postKeyed(stage, `/tasks/${(await makeTask(stage, before)).id}`, body)

const codes: readonly CodeRecipe[] = [
  ...ofNewTasks.flatMap(([outcome, body]) => [
    on('tasks.create', outcome, async (stage) => create(stage, await body(stage))),
    on('tasks.batch', outcome, async (stage) => batch(stage, await body(stage))),
  ]),
  on('tasks.create', '409 task_key_contention', (stage) =>
    withLaggingCounter(stage, () => create(stage, { title: crypto.randomUUID() })),
  ),
  on('tasks.batch', '409 task_key_contention', (stage) =>
    withLaggingCounter(stage, () => batch(stage, { title: crypto.randomUUID() })),
  ),
  on('tasks.batch', '400 invalid_batch', (stage) =>
    postKeyed(stage, '/tasks/batch', { defaults: { assignee: '@nobody' }, tasks: [{ title: 'x' }] }),
  ),
  on('tasks.batch', '400 dependency_cycle', (stage) => batch(stage, { dependsOn: [0] })),
  on('tasks.list', '400 too_many_ids', (stage) => manyIds(stage, '/tasks', unknown)),
  on('tasks.list', '400 ids_exclusive', ({ server }) => server.call(`/tasks?ids=${unknown}&q=x`)),
  on('tasks.update', '409 task_branch_immutable', (stage) => updated(stage, { branchName: 'b' }, { branchName: 'a' })),
  on('tasks.update', '400 base_branch_without_repo', (stage) => updated(stage, { baseBranch: 'main' })),
  on('tasks.update', '400 model_not_found', (stage) => updated(stage, { modelId: 'no-such-model' })),
  on('tasks.update', '400 reasoning_effort_unsupported', (stage) =>
    updated(stage, { reasoningEffort: 'max' }, { modelId: 'gpt-5' }),
  ),
  on('tasks.update', '422 harness_model_unsupported', (stage) =>
    updated(stage, { harness: 'claude' }, { modelId: 'gpt-5' }),
  ),
  on('tasks.update', '404 repo_not_found', (stage) => updated(stage, { repoId: crypto.randomUUID() })),
  on('tasks.transition', '409 invalid_task_transition', async (stage) =>
    postKeyed(stage, `/tasks/${(await makeTask(stage)).id}/transition`, { status: 'in_review' }),
  ),
  on('tasks.transition', '400 reopen_reason_required', async (stage) => {
    const { id } = await makeTask(stage)
    await postKeyed(stage, `/tasks/${id}/transition`, { status: 'done' })
    return postKeyed(stage, `/tasks/${id}/transition`, { status: 'open' })
  }),
  on('tasks.transition', '400 empty_comment', async (stage) =>
    postKeyed(stage, `/tasks/${(await makeTask(stage)).id}/transition`, { status: 'done', comment: ' ' }),
  ),
  on('tasks.transition', '400 secret_in_message', async (stage) => {
    const comment = `ghp_${'a1B2c3D4e5F6g7H8i9'.repeat(2)}`
    return postKeyed(stage, `/tasks/${(await makeTask(stage)).id}/transition`, { status: 'done', comment })
  }),
  on('tasks.assign', '409 task_archived', async (stage) => {
    const { id } = await makeTask(stage)
    await postKeyed(stage, `/tasks/${id}/archive`)
    return postKeyed(stage, `/tasks/${id}/assign`, { assignee: await stage.agent() })
  }),
  on('tasks.assign', '409 task_has_active_run', (stage) =>
    withBusyTask(stage, async (id) => postKeyed(stage, `/tasks/${id}/assign`, { assignee: await stage.agent() })),
  ),
  on('tasks.assign', '404 assignee_not_found', async (stage) =>
    postKeyed(stage, `/tasks/${(await makeTask(stage)).id}/assign`, { assignee: '@nobody' }),
  ),
  on('tasks.assign', '403 assignee_lacks_access', async (stage) => {
    const { id } = await makeTask(stage, { projectId: await hiddenProject(stage) })
    return postKeyed(stage, `/tasks/${id}/assign`, { assignee: await stage.agent() })
  }),
  on('tasks.move', '404 parent_task_not_found', async (stage) =>
    postKeyed(stage, `/tasks/${(await makeTask(stage)).id}/move`, { parentTaskId: unknown }),
  ),
  on('tasks.move', '400 parent_task_cycle', async (stage) => {
    const { id } = await makeTask(stage)
    return postKeyed(stage, `/tasks/${id}/move`, { parentTaskId: id })
  }),
  on('tasks.move', '400 parent_task_depth_exceeded', async (stage) => {
    const parentTaskId = (await chain(stage))[3]
    return postKeyed(stage, `/tasks/${(await makeTask(stage)).id}/move`, { parentTaskId })
  }),
  missing('tasks.get', ''),
  missing('tasks.update', '', { title: 'x' }),
  missing('tasks.transition', '/transition', { status: 'done' }),
  missing('tasks.assign', '/assign', { assignee: null }),
  missing('tasks.move', '/move', { parentTaskId: null }),
  missing('tasks.archive', '/archive'),
  missing('tasks.unarchive', '/unarchive'),
  missing('tasks.read', '/read'),
]

export const taskFacts: ResourceFacts = {
  requests: {
    'tasks.list': plain,
    'tasks.create': async () => ({ body: { title: `Task ${crypto.randomUUID()}` } }),
    'tasks.batch': async () => ({ body: { tasks: [{ title: `Task ${crypto.randomUUID()}` }] } }),
    'tasks.get': aTask,
    'tasks.update': aTaskWith({ priority: 'high' }),
    'tasks.transition': aTaskWith({ status: 'in_progress' }),
    'tasks.assign': async (stage) => ({
      ...(await aTask(stage)),
      body: { assignee: { type: 'agent', id: await stage.agent() } },
    }),
    'tasks.move': aTaskWith({ parentTaskId: null }),
    'tasks.archive': aTask,
    'tasks.unarchive': aTask,
    'tasks.read': aTask,
  },
  codes,
  notOnRoute: { 'dependency_cycle tasks.create': 'nothing can wait for a task that is being made' },

  unknownIds: { 'tasks.id': unknown, taskId: unknown },
  // With those of `task-links.ts`, which are below it.
  things: async ({ server, person: { token } }) => {
    const blocker = await makeTask({ server, token })
    const task = await makeTask({ server, token }, { checklist: ['Test it'], dependsOn: [blocker.key] })
    return { 'tasks.id': task.id, taskId: task.id, itemId: task.checklist[0].id, dependencyId: blocker.id }
  },
  places: [
    ['tasks.list', 'GET', (_, ids) => ({ path: `/tasks?ids=${ids['tasks.id']}` })],
    ['tasks.list', 'GET', (_, ids) => ({ path: `/tasks?startingAfter=${ids['tasks.id']}` })],
    ['tasks.list', 'GET', (_, ids) => ({ path: `/tasks?projectId=${ids['projectId']}` })],
    ['tasks.list', 'GET', (_, ids) => ({ path: `/tasks?assignee=${ids['agentId']}` })],
    ['tasks.list', 'GET', (_, ids) => ({ path: `/tasks?parentTaskId=${ids['taskId']}` })],
    ...(
      [
        ['assignee', 'agentId'],
        ['assignee', 'userId'],
        ['projectId', 'projectId'],
        ['parentTaskId', 'taskId'],
        ['repoId', 'repoId'],
      ] as const
    ).map(([key, name]): Placed => [
      'tasks.create',
      'POST',
      (_, ids) => ({ path: '/tasks', body: { title: crypto.randomUUID(), [key]: ids[name] } }),
    ]),
    ['tasks.update', 'POST', (stage, ids) => atTask(stage, '', { projectId: ids['projectId'] })],
    ['tasks.update', 'POST', (stage, ids) => atTask(stage, '', { repoId: ids['repoId'] })],
    ['tasks.assign', 'POST', (stage, ids) => atTask(stage, '/assign', { assignee: ids['agentId'] })],
    [
      'tasks.assign',
      'POST',
      (stage, ids) => atTask(stage, '/assign', { assignee: { type: 'user', id: ids['userId'] } }),
    ],
    ['tasks.move', 'POST', (stage, ids) => atTask(stage, '/move', { parentTaskId: ids['taskId'] })],
  ],

  named: {
    assignee: thing('agentId'),
    parentTaskId: fc.oneof(thing('taskId'), thing('dependencyId'), fc.constant(null)),
    dependsOn: fc.constantFrom([inPool('taskId')], [inPool('dependencyId'), inPool('taskId')]),
    startingAfter: thing('tasks.id'),
  },
  hostile: {
    assignee: thing('agentId'),
    status: fc.constantFrom('open', 'done', 'in_progress'),
    force: fc.constant(true),
  },
}
