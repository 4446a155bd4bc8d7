import { loginTokenPrefix } from '../../../shared/lib/places.ts'
import type { CommandContext, Flow } from '../../context/context.ts'
import { fieldAt, listAt, textAt } from '../../replies/fields.ts'
import type { Client } from '../../calls/client.ts'

/** `whoami`: shows the caller as the server sees it. */
export const whoami: Flow = async (context) => {
  const client = await context.connect()
  const { body: workspace } = await client.call({ method: 'GET', path: '/api/v1/workspaces' })
  const shown = { server: client.caller.server, workspace: pick(workspace, ['id', 'slug', 'name']) }
  const caller = isAgent(client) ? await agentOf(context, client) : await personOf(client, workspace)
  await context.out.result({ ...caller, ...shown }, { look: 'whoami' })
}

/** A login token may also come by SVC_TOKEN, as that of a run does. */
const isAgent = ({ caller }: Client): boolean => caller.source === 'run' && !caller.token.startsWith(loginTokenPrefix)

async function agentOf({ env }: CommandContext, client: Client) {
  const { body } = await client.call({ method: 'GET', path: '/api/v1/agents/me' })
  return { kind: 'agent', agent: pick(body, ['id', 'handle', 'name']), runId: env.runId }
}

async function personOf(client: Client, workspace: unknown) {
  const { status, body } = await client.send({ method: 'GET', path: '/api/auth/me' })
  if (status === 200) return { kind: 'person', person: pick(body, personKeys), role: textAt(body, 'role') }
  return personByRole(client, workspace)
}

const personKeys = ['userId', 'name', 'email']

/** An older server has no route for "me": the person is the only member with the caller's role, or unknown. */
async function personByRole(client: Client, workspace: unknown) {
  const { body: own } = await client.call({ method: 'GET', path: '/api/v1/user/workspaces' })
  const mine = listAt(own, 'data').find((item) => fieldAt(item, 'id') === fieldAt(workspace, 'id'))
  const role = textAt(mine, 'role')
  const { body: members } = await client.call({ method: 'GET', path: '/api/v1/members' })
  const candidates = listAt(members, 'data').filter((member) => textAt(member, 'role') === role)
  const person = candidates.length === 1 ? pick(candidates[0], personKeys) : null
  return { kind: 'person', person, role }
}

function pick(value: unknown, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(keys.map((key) => [key, fieldAt(value, key) ?? null]))
}
