import type { Reply, TestServer } from '../../../kit/server.ts'
import type { Stage } from '../../contract/stage.ts'
import { contract } from '../../../../shared/api/index.ts'
import { on } from './recipe.ts'
import type { CodeRecipe, Place, Recipe } from './resource-facts.ts'

// Tasks as facts of several resources make them.

export const unknownTask = 'tsk_0000000000000000'

export async function makeTask(
  { server, token }: { server: TestServer; token?: string },
  body: Record<string, unknown> = {},
  // oxlint-disable-next-line typescript/no-explicit-any
): Promise<any> {
  const headers = { 'idempotency-key': crypto.randomUUID() }
  const sent = { title: `Task ${server.world.uuid()}`, ...body }
  return server.ok('/tasks', { headers, body: sent, ...(token === undefined ? {} : { token }) })
}

/** The parameter of `/tasks/{id}`. */
export const ofTask = (task: { id: string }) => ({ 'tasks.id': task.id })

export const aTask: Recipe = async (stage) => ({ params: ofTask(await makeTask(stage)) })
export const aTaskWith =
  (body: unknown): Recipe =>
  async (stage) => ({ ...(await aTask(stage)), body })

/** Below a new task. */
export const atTask = async (stage: Stage, path: string, body?: unknown): Promise<Place> => ({
  path: `/tasks/${(await makeTask(stage)).id}${path}`,
  body,
})

export async function strangersTask(stage: Stage): Promise<string> {
  const { token } = await stage.stranger()
  return (await makeTask({ server: stage.server, token }, { title: 'Theirs' })).id as string
}

/** Gives a task to the run of the stage's own device for as long as the request takes. */
export async function withBusyTask(stage: Stage, send: (taskId: string) => Promise<Reply>): Promise<Reply> {
  const { id } = await makeTask(stage)
  const run = () => stage.server.database.root('runs').where({ id: stage.live.runId })
  await run().update({ task_id: id })
  const reply = await send(id)
  await run().update({ task_id: null })
  return reply
}

/** Asks for a task that is not there, with a body that would do. */
export const missing = (route: string, path: string, body?: unknown): CodeRecipe =>
  on(route, '404 task_not_found', ({ server }) => {
    const method = contract.find(({ id }) => id === route)!.method
    const headers = { 'idempotency-key': crypto.randomUUID() }
    return server.call(`/tasks/${unknownTask}${path}`, { method, headers, ...(body === undefined ? {} : { body }) })
  })
