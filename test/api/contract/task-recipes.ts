import type { CallOptions, Reply } from '../../kit/server.ts'
import { on, type CodeRecipe } from './code-recipes.ts'
import type { Stage } from './stage.ts'
import { makeTask } from './task-requests.ts'

/** A real request for each code of tasks on the routes the documents name for it. */

const unknown = 'tsk_0000000000000000'

function post(stage: Stage, path: string, body?: unknown, more: CallOptions = {}): Promise<Reply> {
  const headers = { 'idempotency-key': crypto.randomUUID() }
  return stage.server.call(path, { method: 'POST', headers, ...(body === undefined ? {} : { body }), ...more })
}
const create = (stage: Stage, body: Record<string, unknown>) => post(stage, '/tasks', { title: 'Refused', ...body })
const batch = (stage: Stage, item: Record<string, unknown>) =>
  post(stage, '/tasks/batch', { tasks: [{ title: 'Refused', ...item }] })

async function strangersTask(stage: Stage): Promise<string> {
  const headers = { 'idempotency-key': crypto.randomUUID() }
  const { token } = await stage.stranger()
  return (await stage.server.ok('/tasks', { headers, token, body: { title: 'Theirs' } })).id as string
}

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

/** Routes of one task, with a body that would do. */
const ofOneTask: readonly [string, string, unknown][] = [
  ['tasks.update', '', { title: 'x' }],
  ['tasks.transition', '/transition', { status: 'done' }],
  ['tasks.assign', '/assign', { assignee: null }],
  ['tasks.move', '/move', { parentTaskId: null }],
  ['tasks.archive', '/archive', undefined],
  ['tasks.unarchive', '/unarchive', undefined],
  ['tasks.read', '/read', undefined],
  ['tasks.checklist.add', '/checklist', { text: 'x' }],
  ['tasks.checklist.update', '/checklist/chk_1', { done: true }],
  ['tasks.dependencies.add', '/dependencies', { dependsOnTaskId: unknown }],
  ['tasks.dependencies.remove', `/dependencies/${unknown}/remove`, undefined],
  ['tasks.watchers.add', '/watchers', { type: 'user', id: 'usr_1' }],
  ['tasks.watchers.remove', '/watchers/remove', { type: 'user', id: 'usr_1' }],
]
const readsOfOneTask = ['', '/history', '/activity', '/dependencies', '/watchers'] as const
const readIds = ['tasks.get', 'tasks.history', 'tasks.activity', 'tasks.dependencies.list', 'tasks.watchers.list']

const updated = async (stage: Stage, body: unknown, before: Record<string, unknown> = {}) =>
  post(stage, `/tasks/${(await makeTask(stage, before)).id}`, body)

/** Gives a task to the run of the stage's own device for as long as the request takes. */
async function withBusyTask(stage: Stage, send: (taskId: string) => Promise<Reply>): Promise<Reply> {
  const { id } = await makeTask(stage)
  const run = () => stage.server.database.root('runs').where({ id: stage.live.runId })
  await run().update({ task_id: id })
  const reply = await send(id)
  await run().update({ task_id: null })
  return reply
}

export const taskRecipes: readonly CodeRecipe[] = [
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
    post(stage, '/tasks/batch', { defaults: { assignee: '@nobody' }, tasks: [{ title: 'x' }] }),
  ),
  on('tasks.batch', '400 dependency_cycle', (stage) => batch(stage, { dependsOn: [0] })),
  on('tasks.list', '400 too_many_ids', ({ server }) =>
    server.call(`/tasks?ids=${Array.from({ length: 101 }, () => unknown).join(',')}`),
  ),
  on('tasks.list', '400 ids_exclusive', ({ server }) => server.call(`/tasks?ids=${unknown}&q=x`)),
  ...ofOneTask.map(([route, path, body]) =>
    on(route, '404 task_not_found', (stage) => post(stage, `/tasks/${unknown}${path}`, body)),
  ),
  ...readsOfOneTask.map((path, at) =>
    on(readIds[at]!, '404 task_not_found', ({ server }) => server.call(`/tasks/${unknown}${path}`)),
  ),
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
    post(stage, `/tasks/${(await makeTask(stage)).id}/transition`, { status: 'in_review' }),
  ),
  on('tasks.transition', '400 reopen_reason_required', async (stage) => {
    const { id } = await makeTask(stage)
    await post(stage, `/tasks/${id}/transition`, { status: 'done' })
    return post(stage, `/tasks/${id}/transition`, { status: 'open' })
  }),
  on('tasks.transition', '400 empty_comment', async (stage) =>
    post(stage, `/tasks/${(await makeTask(stage)).id}/transition`, { status: 'done', comment: ' ' }),
  ),
  on('tasks.transition', '400 secret_in_message', async (stage) => {
    const comment = `ghp_${'a1B2c3D4e5F6g7H8i9'.repeat(2)}`
    return post(stage, `/tasks/${(await makeTask(stage)).id}/transition`, { status: 'done', comment })
  }),
  on('tasks.assign', '409 task_archived', async (stage) => {
    const { id } = await makeTask(stage)
    await post(stage, `/tasks/${id}/archive`)
    return post(stage, `/tasks/${id}/assign`, { assignee: await stage.agent() })
  }),
  on('tasks.assign', '409 task_has_active_run', (stage) =>
    withBusyTask(stage, async (id) => post(stage, `/tasks/${id}/assign`, { assignee: await stage.agent() })),
  ),
  on('tasks.assign', '404 assignee_not_found', async (stage) =>
    post(stage, `/tasks/${(await makeTask(stage)).id}/assign`, { assignee: '@nobody' }),
  ),
  on('tasks.assign', '403 assignee_lacks_access', async (stage) => {
    const { id } = await makeTask(stage, { projectId: await hiddenProject(stage) })
    return post(stage, `/tasks/${id}/assign`, { assignee: await stage.agent() })
  }),
  on('tasks.move', '404 parent_task_not_found', async (stage) =>
    post(stage, `/tasks/${(await makeTask(stage)).id}/move`, { parentTaskId: unknown }),
  ),
  on('tasks.move', '400 parent_task_cycle', async (stage) => {
    const { id } = await makeTask(stage)
    return post(stage, `/tasks/${id}/move`, { parentTaskId: id })
  }),
  on('tasks.move', '400 parent_task_depth_exceeded', async (stage) => {
    const parentTaskId = (await chain(stage))[3]
    return post(stage, `/tasks/${(await makeTask(stage)).id}/move`, { parentTaskId })
  }),
  on('tasks.checklist.add', '400 invalid_checklist_item', async (stage) =>
    post(stage, `/tasks/${(await makeTask(stage)).id}/checklist`, { text: '' }),
  ),
  on('tasks.checklist.update', '400 invalid_checklist_item', async (stage) => {
    const { id, checklist } = await makeTask(stage, { checklist: ['x'] })
    return post(stage, `/tasks/${id}/checklist/${checklist[0].id}`, { text: '' })
  }),
  on('tasks.checklist.update', '404 checklist_item_not_found', async (stage) =>
    post(stage, `/tasks/${(await makeTask(stage)).id}/checklist/chk_0000000000000000`, { done: true }),
  ),
  on('tasks.dependencies.add', '400 dependency_cycle', async (stage) => {
    const { id } = await makeTask(stage)
    return post(stage, `/tasks/${id}/dependencies`, { dependsOnTaskId: id })
  }),
  on('tasks.dependencies.add', '404 dependency_task_not_found', async (stage) =>
    post(stage, `/tasks/${(await makeTask(stage)).id}/dependencies`, { dependsOnTaskId: unknown }),
  ),
  on('tasks.dependencies.add', '400 cross_company_dependency', async (stage) => {
    const { id } = await makeTask(stage)
    return post(stage, `/tasks/${id}/dependencies`, { dependsOnTaskId: await strangersTask(stage) })
  }),
  on('tasks.dependencies.remove', '404 dependency_not_found', async (stage) =>
    post(stage, `/tasks/${(await makeTask(stage)).id}/dependencies/${unknown}/remove`),
  ),
  ...['add', 'remove'].map((what) =>
    on(`tasks.watchers.${what}`, '404 watcher_not_found', async (stage) => {
      const path = `/tasks/${(await makeTask(stage)).id}/watchers${what === 'add' ? '' : '/remove'}`
      return post(stage, path, { type: 'user', id: 'usr_0000000000000000' })
    }),
  ),
]
