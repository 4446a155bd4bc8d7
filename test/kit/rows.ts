import type { Person, TestServer } from './server.ts'

// Rows that tests of the API look into or change, since no route shows them or comes to them.

type Served = Pick<TestServer, 'database'>

/** Returns what the device is told of the run. */
// oxlint-disable-next-line typescript/no-explicit-any
export async function specOf({ database }: Served, runId: string): Promise<any> {
  const row: { spec: string } = await database.root('run_details').where({ run_id: runId }).first('spec')
  return JSON.parse(row.spec)
}

export async function agentUuid({ database }: Served, agentId: string): Promise<string> {
  const row: { uuid: string } = await database.root('agents').where({ id: agentId }).first('uuid')
  return row.uuid
}

/** The agent is deleted, or is there again, without what else its route does. */
export async function setDeleted({ database }: Served, agentId: string, at: number | null): Promise<void> {
  await database.root('agents').where({ id: agentId }).update({ deleted_at: at })
}

/** The person belongs to no workspace any more; all they have is left behind. */
export async function dropMembership({ database }: Served, { uuid }: Pick<Person, 'uuid'>): Promise<void> {
  await database.root('members').where({ user_id: uuid }).delete()
}

/** The workspace's agents are paused, without what else its route does. */
export async function setPaused({ database }: Served, workspaceId: string): Promise<void> {
  await database.root('workspaces').where({ id: workspaceId }).update({ agents_paused: 1 })
}
