import { idFrom, type WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { loginTokenPrefix } from '../../../shared/lib/places.ts'
import { hashToken } from '../../../control-plane/http/token-hash.ts'
import { mintRunToken } from '../../../control-plane/http/run-token.ts'
import type { World } from '../../../shared/lib/world.ts'

export const runTokenKey = new TextEncoder().encode('a key of the tests, thirty-two bytes long')

/** Two workspaces; an owner (in both), an admin and a member of the first; an agent with a live run. */
export interface Seed {
  workspaceId: string
  otherWorkspaceId: string
  ownerId: string
  ownerToken: string
  adminToken: string
  memberToken: string
  sessionCookie: string
  agentId: string
  runId: string
  agentToken: string
}

export async function seed(db: Knex, world: World): Promise<Seed> {
  const now = world.now()
  const workspaceId = world.uuid()
  const otherWorkspaceId = world.uuid()
  const companyId = world.uuid()
  await db('companies').insert({ id: companyId, name: 'Acme', created_at: now, updated_at: now })
  for (const [index, id] of [workspaceId, otherWorkspaceId].entries()) {
    await db('workspaces').insert({
      id,
      public_id: world.id('ws_'),
      company_id: companyId,
      name: `Workspace ${index}`,
      slug: `w${index}`,
      status: 'active',
      issue_prefix: 'ACM',
      idle_compaction: '{}',
      created_at: now,
      updated_at: now,
    })
  }
  const people = { db, world, workspaceId }
  const owner = await addPerson(people, 'owner')
  const admin = await addPerson(people, 'admin')
  const member = await addPerson(people, 'member')
  await db('members').insert({
    workspace_id: otherWorkspaceId,
    user_id: owner.id,
    role: 'member',
    created_at: now + 60_000,
  })
  const sessionCookie = world.id('ses_')
  await db('dashboard_sessions').insert({
    id: world.uuid(),
    user_id: owner.id,
    token_hash: hashToken(sessionCookie),
    created_at: now,
    expires_at: now + 3_600_000,
  })
  const agent = await addAgentWithRun(people)
  return {
    workspaceId,
    otherWorkspaceId,
    ownerId: owner.id,
    ownerToken: owner.token,
    adminToken: admin.token,
    memberToken: member.token,
    sessionCookie,
    ...agent,
  }
}

interface Place {
  db: Knex
  world: World
  workspaceId: string
}

async function addPerson({ db, world, workspaceId }: Place, role: string): Promise<{ id: string; token: string }> {
  const id = world.uuid()
  const token = world.id(loginTokenPrefix)
  const now = world.now()
  await db('users').insert({
    id,
    public_id: world.id('usr_'),
    name: role,
    email: `${role}@example.com`,
    created_at: now,
  })
  await db('members').insert({ workspace_id: workspaceId, user_id: id, role, created_at: now })
  await db('login_tokens').insert({
    id: world.uuid(),
    user_id: id,
    workspace_id: workspaceId,
    token_hash: hashToken(token),
    name: 'test',
    created_at: now,
  })
  return { id, token }
}

async function addAgentWithRun({ db, world, workspaceId }: Place) {
  const agentId = world.id('agt_')
  const runId = world.id('run_')
  const now = world.now()
  await db('agents').insert({
    id: agentId,
    uuid: world.uuid(),
    workspace_id: workspaceId,
    handle: '@builder',
    name: 'Builder',
    role: 'agent',
    status: 'active',
    environment: 'device',
    visibility: 'company',
    wake_on_assignment: 1,
    wake_on_hook: 1,
    tools: '{}',
    capabilities: '[]',
    agent_md: '',
    agent_md_hash: '',
    created_at: now,
    updated_at: now,
  })
  await db('runs').insert({
    id: runId,
    workspace_id: workspaceId,
    agent_id: agentId,
    status: 'running',
    trigger_source: 'manual',
    harness: 'command',
    environment_type: 'device',
    fence: 1,
    created_at: now,
  })
  const subject = {
    runId,
    fence: 1,
    agentRef: agentId,
    workspaceId: idFrom<WorkspaceUuid>(workspaceId),
    tokenGeneration: 1,
  }
  return { agentId, runId, agentToken: mintRunToken(runTokenKey, subject, now) }
}
