import { expect } from 'vitest'
import { FakeDevice } from '../../kit/fake-device.ts'
import { outcomeOf, type Person, type Reply, type TestServer } from '../../kit/server.ts'

// Shares what tests of tasks do over and over.

/** A call of a route that needs a key gets a new one. */
export function call(server: TestServer, path: string, body?: unknown, token?: string): Promise<Reply> {
  return server.call(path, {
    method: 'POST',
    ...(body === undefined ? {} : { body }),
    ...(token === undefined ? {} : { token }),
    headers: { 'idempotency-key': crypto.randomUUID() },
  })
}

// oxlint-disable-next-line typescript/no-explicit-any
export async function made(server: TestServer, path: string, body?: unknown, token?: string): Promise<any> {
  const reply = await call(server, path, body, token)
  if (reply.status >= 300) throw new Error(`${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
  return reply.body
}

/** A task with a title of its own. */
export const task = (server: TestServer, body: Record<string, unknown> = {}, token?: string) =>
  made(server, '/tasks', { title: `Task ${crypto.randomUUID()}`, ...body }, token)

export const outcome = async (reply: Promise<Reply>): Promise<string> => outcomeOf(await reply)

export const move = (server: TestServer, id: string, status: string, more: Record<string, unknown> = {}) =>
  call(server, `/tasks/${id}/transition`, { status, ...more })

/** Sources of the runs that work on a task, oldest first. */
export async function wakesOf(server: TestServer, taskId: string): Promise<string[]> {
  const { data } = await server.ok(`/runs?task=${taskId}`)
  return (data as { triggerSource: string }[]).map((run) => run.triggerSource).toReversed()
}

/** Waits until exactly these wakes became runs of the task. */
export async function expectWakes(server: TestServer, taskId: string, sources: readonly string[]): Promise<void> {
  await expect.poll(() => wakesOf(server, taskId)).toEqual(sources)
}

/** Waits until each wake that was asked for the task is a run or refused. */
export async function wakesAreAnswered(server: TestServer, taskId: string): Promise<void> {
  const waiting = () => server.database.root('wakes').where({ task_id: taskId, state: 'waiting' }).select('id')
  await expect.poll(waiting).toEqual([])
}

/** Starts the next run on the person's own device, which lets runs of that person's agents start. */
export async function worker(server: TestServer): Promise<{ person: Person; device: FakeDevice; agentId: string }> {
  const person = await server.addPerson('member')
  const device = await FakeDevice.connect(server, { token: person.token })
  const agent = await server.createAgent({}, person.token)
  return { person, device, agentId: agent.id }
}
