import type { Knex } from 'knex'
import { z } from 'zod'
import {
  harnessCommand,
  harnessNames,
  reasoningEfforts,
  toolPermissionModes,
  toolRule,
} from '../../../shared/runs/spec.ts'
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
import { newestFirst } from '../../db/id-page.ts'
import { holdsPattern, likeContaining } from '../../db/like.ts'
import type { Db } from '../../db/open.ts'
import { columnsOf, command, query } from '../../db/statement.ts'
import { replaceVersioned } from '../../db/versioned.ts'

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
    spent_month: nullableText,
    spent_nano_usd: int,
    monthly_budget_cents: nullableInt,
    transferred_at: nullableTime,
    sessions_reset_at: nullableTime,
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
    /** What its runs cost in `spentMonth` (`2026-03`), in billionths of a dollar; a sum of another month counts no more. */
    spentNanoUsd: r.spent_nano_usd,
    spentMonth: r.spent_month,
    monthlyBudgetCents: r.monthly_budget_cents,
    /** When it was given to its owner, who has not agreed yet; null: its owner has it of their own will. */
    transferredAt: r.transferred_at,
    /** Harness sessions of runs made before are not gone on with. */
    sessionsResetAt: r.sessions_reset_at,
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
    monthly_budget_cents: agent.monthlyBudgetCents,
    transferred_at: agent.transferredAt,
    sessions_reset_at: agent.sessionsResetAt,
    token_generation: agent.tokenGeneration,
    deleted_at: agent.deletedAt,
    created_at: agent.createdAt,
    updated_at: agent.updatedAt,
  }
}

/** Throws the database's unique violation when the handle is taken. */
export async function insertAgent(db: Db, agent: AgentRow): Promise<void> {
  await db('agents').insert({
    ...toColumns(agent),
    spent_month: agent.spentMonth,
    spent_nano_usd: agent.spentNanoUsd,
    last_run_at: agent.lastRunAt,
    version: 1,
  })
}

/** Writes the whole row but what endings of runs write; false when somebody else changed it since it was read. */
export async function replaceAgent(db: Db, before: AgentRow, after: AgentRow): Promise<boolean> {
  return replaceVersioned(db, { table: 'agents', before }, toColumns(after))
}

const select = `select ${columnsOf(row)} from agents`
const byId = query(`${select} where id = ?`, row)
const byIds = query(`${select} where id in ?`, row)

export async function findAgent(db: Db, id: string): Promise<AgentRow | null> {
  return byId.first(db, [id])
}

export async function listAgentsByIds(db: Db, ids: readonly string[]): Promise<AgentRow[]> {
  return ids.length === 0 ? [] : byIds.list(db, [ids])
}

const byReferences = query(
  `${select} where workspace_id = ? and (id in ? or uuid in ? or handle in ? or name in ?) order by created_at, id`,
  row,
)

/** All that one of these references may mean, deleted ones included. */
export async function listAgentsByReferences(db: Db, workspaceId: string, references: readonly string[]) {
  if (references.length === 0) return []
  const uuids = references.map((reference) => reference.toLowerCase())
  const handles = references.map((reference) => reference.replace(/^@/, ''))
  return byReferences.list(db, [workspaceId, references, uuids, handles, references])
}

/** The one of `agents` (oldest first) that a reference means: by id or UUID, else a live one by handle, then by name. */
export function matchReference(agents: readonly AgentRow[], reference: string): AgentRow | null {
  const uuid = reference.toLowerCase()
  const exact = agents.find((agent) => agent.id === reference || agent.uuid === uuid)
  if (exact) return exact
  const handle = reference.replace(/^@/, '')
  const named = agents.filter(
    (agent) => agent.handle === handle || (agent.name === reference && !reference.startsWith('@')),
  )
  const rank = (agent: AgentRow) => (agent.deletedAt === null ? 0 : 2) + (agent.handle === handle ? 0 : 1)
  return named.toSorted((a, b) => rank(a) - rank(b))[0] ?? null
}

/** By id, UUID, `@handle`, handle or name within a workspace, deleted ones last. */
export async function findAgentByReference(db: Db, workspaceId: string, reference: string): Promise<AgentRow | null> {
  return matchReference(await listAgentsByReferences(db, workspaceId, [reference]), reference)
}

export interface AgentFilter {
  workspaceId: string
  /** Live agents with one of these; left out: all live agents. */
  statuses?: readonly string[]
  /** Deleted agents too. */
  withDeleted?: boolean
  role?: string
  /** Matched case-insensitively against name, handle and description. */
  q?: string
  /** When set, private agents are listed only if this person owns them or this agent is one. */
  visibleTo?: { userId: string | null; agentId: string | null }
  before?: { createdAt: number; id: string }
  limit: number
}

/** Newest first; one row more than `limit`. */
export async function listAgents(db: Db, filter: AgentFilter): Promise<AgentRow[]> {
  const query = db('agents').where({ workspace_id: filter.workspaceId })
  void query.where((either) => {
    void either.where((live) => {
      void live.whereNull('deleted_at')
      if (filter.statuses) void live.whereIn('status', [...filter.statuses])
    })
    if (filter.withDeleted) void either.orWhereNotNull('deleted_at')
  })
  if (filter.role !== undefined) void query.where({ role: filter.role })
  if (filter.q !== undefined && filter.q !== '') {
    const like = likeContaining(filter.q)
    void query.where((any) => {
      for (const column of ['name', 'handle', 'description']) void any.orWhereRaw(holdsPattern(column), [like])
    })
  }
  if (filter.visibleTo !== undefined) void query.where((any) => onlyVisible(any, filter.visibleTo!))
  const rows: unknown[] = await newestFirst(query, filter)
  return rows.map((value) => row.parse(value))
}

/** Live agents that this viewer sees. */
export async function countAgents(
  db: Db,
  workspaceId: string,
  viewer: { seesAll: boolean; userId: string | null; agentId: string | null },
): Promise<number> {
  const query = db('agents').where({ workspace_id: workspaceId }).whereNull('deleted_at')
  if (!viewer.seesAll) void query.where((any) => onlyVisible(any, viewer))
  const counted: unknown = await query.count({ n: '*' }).first()
  return Number((counted as { n: unknown }).n)
}

function onlyVisible(any: Knex.QueryBuilder, viewer: { userId: string | null; agentId: string | null }): void {
  void any.where({ visibility: 'company' })
  if (viewer.userId !== null) void any.orWhere({ owner_user_id: viewer.userId })
  if (viewer.agentId !== null) void any.orWhere({ id: viewer.agentId })
}

/** Handles in use that begin like this one, to find a free suffix. */
export async function listHandlesLike(db: Db, workspaceId: string, handle: string): Promise<string[]> {
  const rows: { handle: string }[] = await db('agents')
    .where({ workspace_id: workspaceId })
    .where((any) => void any.where({ handle }).orWhere('handle', 'like', `${handle}-%`))
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

const ranLast = command('update agents set last_run_at = ? where id = ?')

export async function recordLastRun(db: Db, agentId: string, at: number): Promise<void> {
  await ranLast(db, [at, agentId])
}
