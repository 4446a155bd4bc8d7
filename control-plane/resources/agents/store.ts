import { z } from 'zod'
import { harnessCommand, harnessNames, reasoningEfforts, toolPermissionModes, toolRule } from '../../../shared/runs/spec.ts'
import {
  flag,
  int,
  json,
  nullableInt,
  nullableJson,
  nullableText,
  nullableTime,
  text,
  time,
  toFlag,
  toJson,
  toNullableJson,
} from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'

export const agentStatuses = ['active', 'idle', 'running', 'terminated', 'error'] as const

const toolLists = z.object({
  allow: z.array(toolRule),
  ask: z.array(toolRule),
  deny: z.array(toolRule),
})

const row = z
  .object({
    id: text,
    uuid: text,
    workspace_id: text,
    handle: text,
    name: text,
    role: text,
    description: nullableText,
    status: z.enum(agentStatuses),
    model: nullableText,
    backup_model: nullableText,
    reasoning_effort: z.enum(reasoningEfforts).nullable(),
    sandbox_size: z.enum(['small', 'medium', 'large']).nullable(),
    harness: z.enum(harnessNames).nullable(),
    environment: z.enum(['device', 'cloud']),
    max_turns: nullableInt,
    command: nullableJson(harnessCommand),
    default_folder_id: nullableText,
    default_repo_id: nullableText,
    owner_user_id: nullableText,
    visibility: z.enum(['company', 'private']),
    reporting_to: nullableText,
    wake_on_assignment: flag,
    wake_on_hook: flag,
    tool_permission_mode: z.enum(toolPermissionModes).nullable(),
    tools: json(toolLists),
    capabilities: json(z.array(z.string())),
    agent_md: text,
    agent_md_hash: text,
    spent_monthly_cents: int,
    last_run_at: nullableTime,
    token_generation: int,
    deleted_at: nullableTime,
    version: int,
    created_at: time,
    updated_at: time,
  })
  .transform((r) => ({
    id: r.id,
    uuid: r.uuid,
    workspaceId: r.workspace_id,
    /** Without the `@`. */
    handle: r.handle,
    name: r.name,
    role: r.role,
    description: r.description,
    status: r.status,
    model: r.model,
    backupModel: r.backup_model,
    reasoningEffort: r.reasoning_effort,
    sandboxSize: r.sandbox_size,
    /** The override; null derives it from the model. */
    harness: r.harness,
    environment: r.environment,
    maxTurns: r.max_turns,
    command: r.command,
    defaultFolderId: r.default_folder_id,
    defaultRepoId: r.default_repo_id,
    ownerUserId: r.owner_user_id,
    visibility: r.visibility,
    reportingTo: r.reporting_to,
    wakeOnAssignment: r.wake_on_assignment,
    wakeOnHook: r.wake_on_hook,
    toolPermissionMode: r.tool_permission_mode,
    tools: r.tools,
    capabilities: r.capabilities,
    agentMd: r.agent_md,
    agentMdHash: r.agent_md_hash,
    spentMonthlyCents: r.spent_monthly_cents,
    lastRunAt: r.last_run_at,
    tokenGeneration: r.token_generation,
    deletedAt: r.deleted_at,
    version: r.version,
    createdAt: r.created_at,
    updatedAt: r.updated_at,
  }))
export type AgentRow = z.infer<typeof row>
const parseMaybe = (value: unknown): AgentRow | null => (value === undefined ? null : row.parse(value))

function toColumns(agent: AgentRow) {
  return {
    id: agent.id,
    uuid: agent.uuid,
    workspace_id: agent.workspaceId,
    handle: agent.handle,
    name: agent.name,
    role: agent.role,
    description: agent.description,
    status: agent.status,
    model: agent.model,
    backup_model: agent.backupModel,
    reasoning_effort: agent.reasoningEffort,
    sandbox_size: agent.sandboxSize,
    harness: agent.harness,
    environment: agent.environment,
    max_turns: agent.maxTurns,
    command: toNullableJson(agent.command),
    default_folder_id: agent.defaultFolderId,
    default_repo_id: agent.defaultRepoId,
    owner_user_id: agent.ownerUserId,
    visibility: agent.visibility,
    reporting_to: agent.reportingTo,
    wake_on_assignment: toFlag(agent.wakeOnAssignment),
    wake_on_hook: toFlag(agent.wakeOnHook),
    tool_permission_mode: agent.toolPermissionMode,
    tools: toJson(agent.tools),
    capabilities: toJson(agent.capabilities),
    agent_md: agent.agentMd,
    agent_md_hash: agent.agentMdHash,
    spent_monthly_cents: agent.spentMonthlyCents,
    last_run_at: agent.lastRunAt,
    token_generation: agent.tokenGeneration,
    deleted_at: agent.deletedAt,
    created_at: agent.createdAt,
    updated_at: agent.updatedAt,
  }
}

/** Throws the database's unique violation when the handle is taken. */
export async function insertAgent(db: Db, agent: AgentRow): Promise<void> {
  await db('agents').insert({ ...toColumns(agent), version: 1 })
}

/** Writes the whole row; false when somebody else changed it since it was read. */
export async function replaceAgent(db: Db, before: AgentRow, after: AgentRow): Promise<boolean> {
  const changed = await db('agents')
    .where({ id: before.id, version: before.version })
    .update({ ...toColumns(after), version: before.version + 1 })
  return changed === 1
}

export async function findAgent(db: Db, id: string): Promise<AgentRow | null> {
  return parseMaybe(await db('agents').where({ id }).first())
}

/** By id, UUID, `@handle`, handle or name within a workspace, deleted ones last. */
export async function findAgentByReference(db: Db, workspaceId: string, reference: string): Promise<AgentRow | null> {
  const handle = reference.startsWith('@') ? reference.slice(1) : reference
  const rows: unknown[] = await db('agents')
    .where({ workspace_id: workspaceId })
    .where((any) => {
      void any.where({ id: reference }).orWhere({ uuid: reference.toLowerCase() }).orWhere({ handle })
      if (!reference.startsWith('@')) void any.orWhere({ name: reference })
    })
    .orderBy([{ column: 'created_at' }, { column: 'id' }])
    .limit(50)
  const agents = rows.map((value) => row.parse(value))
  const exact = (agent: AgentRow) => (agent.id === reference || agent.uuid === reference.toLowerCase() ? 0 : 1)
  const byHandle = (agent: AgentRow) => (agent.handle === handle ? 0 : 1)
  const gone = (agent: AgentRow) => (agent.deletedAt === null ? 0 : 1)
  agents.sort((a, b) => exact(a) - exact(b) || gone(a) - gone(b) || byHandle(a) - byHandle(b))
  return agents[0] ?? null
}

export async function listAgentsByIds(db: Db, ids: readonly string[]): Promise<AgentRow[]> {
  if (ids.length === 0) return []
  const rows: unknown[] = await db('agents').whereIn('id', [...ids])
  return rows.map((value) => row.parse(value))
}

export interface AgentFilter {
  workspaceId: string
  deleted: boolean
  status?: string
  role?: string
  /** Matched case-insensitively against name, handle and description. */
  q?: string
  /** When set, private agents are only listed if this person owns them. */
  visibleTo?: string | null
  /** The agent that asks sees itself though it is private. */
  self?: string
  before?: { createdAt: number; id: string }
  limit: number
}

/** Newest first; one row more than `limit`. */
export async function listAgents(db: Db, filter: AgentFilter): Promise<AgentRow[]> {
  const query = db('agents').where({ workspace_id: filter.workspaceId })
  void (filter.deleted ? query.whereNotNull('deleted_at') : query.whereNull('deleted_at'))
  if (filter.status !== undefined) void query.where({ status: filter.status })
  if (filter.role !== undefined) void query.where({ role: filter.role })
  if (filter.q !== undefined && filter.q !== '') {
    const like = `%${filter.q.toLowerCase().replaceAll(/[\\%_]/g, (c) => `\\${c}`)}%`
    void query.where((any) => {
      for (const column of ['name', 'handle', 'description'])
        void any.orWhereRaw(`lower(coalesce(${column}, '')) like ? escape '\\'`, [like])
    })
  }
  if (filter.visibleTo !== undefined) {
    const { visibleTo, self } = filter
    void query.where((any) => {
      void any.where({ visibility: 'company' })
      if (visibleTo !== null) void any.orWhere({ owner_user_id: visibleTo })
      if (self !== undefined) void any.orWhere({ id: self })
    })
  }
  if (filter.before) void query.whereRaw('(created_at, id) < (?, ?)', [filter.before.createdAt, filter.before.id])
  const rows: unknown[] = await query
    .orderBy([
      { column: 'created_at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
    .limit(filter.limit + 1)
  return rows.map((value) => row.parse(value))
}

/** Handles in use that begin like this one, to find a free suffix. */
export async function listHandlesLike(db: Db, workspaceId: string, handle: string): Promise<string[]> {
  const rows: { handle: string }[] = await db('agents')
    .where({ workspace_id: workspaceId })
    .where((any) => any.where({ handle }).orWhere('handle', 'like', `${handle}-%`))
    .select('handle')
  return rows.map((r) => r.handle)
}

/** The chain of managers from an agent upwards, nearest first; stops at a loop. */
export async function listManagers(db: Db, workspaceId: string, reportingTo: string | null): Promise<AgentRow[]> {
  const chain: AgentRow[] = []
  let next = reportingTo
  while (next !== null && chain.length < 100 && !chain.some((agent) => agent.uuid === next)) {
    const found = parseMaybe(await db('agents').where({ workspace_id: workspaceId, uuid: next }).first())
    if (!found) break
    chain.push(found)
    next = found.reportingTo
  }
  return chain
}

export async function recordLastRun(db: Db, agentId: string, at: number): Promise<void> {
  await db('agents').where({ id: agentId }).update({ last_run_at: at })
}
