import type { GoodRequest } from './good-requests.ts'
import type { Stage } from './stage.ts'

/** A request of each route of tasks that must succeed (good-requests.ts). */

// oxlint-disable-next-line typescript/no-explicit-any
export async function makeTask({ server }: Pick<Stage, 'server'>, body: Record<string, unknown> = {}): Promise<any> {
  const headers = { 'idempotency-key': crypto.randomUUID() }
  return server.ok('/tasks', { headers, body: { title: `Task ${crypto.randomUUID()}`, ...body } })
}

/** The parameter of `/tasks/{id}`. */
export const ofTask = (task: { id: string }) => ({ 'tasks.id': task.id })

type Recipe = (stage: Stage) => Promise<GoodRequest>
const aTask: Recipe = async (stage) => ({ params: ofTask(await makeTask(stage)) })
const withBody =
  (body: unknown): Recipe =>
  async (stage) => ({ ...(await aTask(stage)), body })

export const taskRequests: Record<string, Recipe> = {
  'tasks.list': async () => ({}),
  'tasks.create': async () => ({ body: { title: `Task ${crypto.randomUUID()}` } }),
  'tasks.batch': async () => ({ body: { tasks: [{ title: `Task ${crypto.randomUUID()}` }] } }),
  'tasks.get': aTask,
  'tasks.update': withBody({ priority: 'high' }),
  'tasks.transition': withBody({ status: 'in_progress' }),
  'tasks.assign': async (stage) => ({
    ...(await aTask(stage)),
    body: { assignee: { type: 'agent', id: await stage.agent() } },
  }),
  'tasks.move': withBody({ parentTaskId: null }),
  'tasks.archive': aTask,
  'tasks.unarchive': aTask,
  'tasks.read': aTask,
  'tasks.history': aTask,
  'tasks.activity': aTask,
  'tasks.checklist.add': withBody({ text: 'Test it' }),
  'tasks.checklist.update': async (stage) => {
    const task = await makeTask(stage, { checklist: ['Test it'] })
    return { params: { ...ofTask(task), itemId: task.checklist[0].id }, body: { done: true } }
  },
  'tasks.dependencies.list': aTask,
  'tasks.dependencies.add': async (stage) => ({
    ...(await aTask(stage)),
    body: { dependsOnTaskId: (await makeTask(stage)).id },
  }),
  'tasks.dependencies.remove': async (stage) => {
    const blocker = await makeTask(stage)
    const task = await makeTask(stage, { dependsOn: [blocker.key] })
    return { params: { ...ofTask(task), dependencyId: blocker.id } }
  },
  'tasks.watchers.list': aTask,
  'tasks.watchers.add': async (stage) => ({
    ...(await aTask(stage)),
    body: { type: 'user', id: stage.member.userId },
  }),
  'tasks.watchers.remove': async (stage) => ({
    ...(await aTask(stage)),
    body: { type: 'user', id: stage.owner.userId },
  }),
}
