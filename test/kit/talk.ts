import { FakeDevice, type FakeRun } from './fake-device.ts'
import { startWithPeople } from './people.ts'
import type { Person, Reply, TestServer } from './server.ts'

/** Conversations as tests make and use them. */
export const keyed = () => ({ 'idempotency-key': crypto.randomUUID() })

// Tests look into answers of all shapes.
// oxlint-disable-next-line typescript/no-explicit-any
type Any = any

/** A server with people, and a device of the owner on which runs of all agents start. */
export async function startTalk() {
  const { server, admin, member } = await startWithPeople()
  const device = await FakeDevice.connect(server)
  const stop = async () => {
    await device.disconnect()
    await server.stop()
  }
  return { server, admin, member, device, stop }
}

export async function makeConversation(server: TestServer, body: object = {}, token?: string): Promise<Any> {
  return server.ok('/conversations', { body, headers: keyed(), ...(token === undefined ? {} : { token }) })
}

export async function makeDm(server: TestServer, agentId: string, token?: string): Promise<Any> {
  return makeConversation(server, { kind: 'dm', participants: [{ type: 'agent', id: agentId }] }, token)
}

export const tryPost = (server: TestServer, id: string, body: object, token?: string): Promise<Reply> =>
  server.call(`/conversations/${id}/messages`, { body, headers: keyed(), ...(token === undefined ? {} : { token }) })

export async function say(server: TestServer, id: string, body: string | object, token?: string): Promise<Any> {
  const reply = await tryPost(server, id, typeof body === 'string' ? { body } : body, token)
  if (reply.status !== 201) throw new Error(`not posted: ${reply.status} ${JSON.stringify(reply.body)}`)
  return reply.body
}

/** Does to a conversation what its route does: `archive`, `delete`, `participants`. */
export const act = (
  server: TestServer,
  id: string,
  action: string,
  options: { token?: string; body?: object } = {},
): Promise<Reply> => server.call(`/conversations/${id}/${action}`, { method: 'POST', headers: keyed(), ...options })

/** A run of the agent that goes on until the test ends it: its token is the agent's. */
export async function liveRun(server: TestServer, device: FakeDevice, agentId: string): Promise<FakeRun> {
  await server.startRun(agentId)
  return device.take()
}

/** Returns what was asked to be woken in a conversation, oldest first: agent and source. Written with the message itself. */
export async function wakesIn(server: TestServer, conversationId: string): Promise<[string, string][]> {
  const rows: { agent_id: string; trigger_source: string }[] = await server.database
    .root('wakes')
    .where({ conversation_id: conversationId })
    .orderBy('seq')
  return rows.map((row) => [row.agent_id, row.trigger_source])
}

export const asUser = (person: Person) => ({ type: 'user', id: person.userId })
