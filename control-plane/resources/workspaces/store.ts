import { z } from 'zod'
import {
  flag,
  int,
  json,
  nullableInt,
  nullableJson,
  nullableText,
  text,
  time,
  toFlag,
  toJson,
  toNullableJson,
} from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { columnsOf, query } from '../../db/statement.ts'
import { replaceVersioned } from '../../db/versioned.ts'
import { insertSlug } from './slug-store.ts'

export const idleCompaction = z.object({
  enabled: z.boolean(),
  afterMinutes: z.number().int().min(1).max(59),
  minTokens: z.number().int().nonnegative(),
})
/** Document 1, "Workspace": off, 55 minutes, 100,000 tokens. */
export const idleCompactionDefault: z.infer<typeof idleCompaction> = {
  enabled: false,
  afterMinutes: 55,
  minTokens: 100_000,
}

const row = z
  .object({
    id: text,
    public_id: text,
    company_id: text,
    name: text,
    slug: text,
    description: nullableText,
    status: z.enum(['active', 'archived']),
    issue_prefix: text,
    issue_counter: int,
    context_md: nullableText,
    default_model: nullableText,
    default_reasoning_effort: nullableText,
    default_max_turns: nullableInt,
    backup_model: nullableText,
    mcp_servers: nullableJson(z.record(z.string(), z.unknown())),
    agents_paused: flag,
    idle_compaction: json(idleCompaction),
    sandbox_size: nullableText,
    oom_resume: flag,
    tool_permission_default: z.enum(['strict', 'ask', 'full']).nullable(),
    default_device: nullableText,
    monthly_budget_cents: nullableInt,
    version: int,
    created_at: time,
    updated_at: time,
  })
  .transform((r) => ({
    id: r.id,
    publicId: r.public_id,
    companyId: r.company_id,
    name: r.name,
    slug: r.slug,
    description: r.description,
    status: r.status,
    issuePrefix: r.issue_prefix,
    issueCounter: r.issue_counter,
    contextMd: r.context_md,
    defaultModel: r.default_model,
    defaultReasoningEffort: r.default_reasoning_effort,
    defaultMaxTurns: r.default_max_turns,
    backupModel: r.backup_model,
    mcpServers: r.mcp_servers,
    agentsPaused: r.agents_paused,
    idleCompaction: r.idle_compaction,
    sandboxSize: r.sandbox_size,
    oomResume: r.oom_resume,
    toolPermissionDefault: r.tool_permission_default,
    /** Durable id of the device that runs without a folder go to first. */
    defaultDevice: r.default_device,
    monthlyBudgetCents: r.monthly_budget_cents,
    version: r.version,
    createdAt: r.created_at,
    updatedAt: r.updated_at,
  }))
export type WorkspaceRow = z.infer<typeof row>

export interface NewWorkspace {
  id: string
  publicId: string
  companyId: string
  name: string
  slug: string
  issuePrefix: string
  at: number
}

export async function insertCompany(db: Db, company: { id: string; name: string; at: number }): Promise<void> {
  await db('companies').insert({
    id: company.id,
    name: company.name,
    created_at: company.at,
    updated_at: company.at,
  })
}

/** Throws the database's unique violation when the slug is or was another workspace's. */
export async function insertWorkspace(db: Db, workspace: NewWorkspace): Promise<void> {
  await insertSlug(db, { slug: workspace.slug, workspaceId: workspace.id, at: workspace.at })
  await db('workspaces').insert({
    id: workspace.id,
    public_id: workspace.publicId,
    company_id: workspace.companyId,
    name: workspace.name,
    slug: workspace.slug,
    status: 'active',
    issue_prefix: workspace.issuePrefix,
    idle_compaction: JSON.stringify(idleCompactionDefault),
    created_at: workspace.at,
    updated_at: workspace.at,
  })
}

/** With `lock`, nobody else changes it until the transaction ends. */
const byId = query(`select ${columnsOf(row)} from workspaces where id = ?`, row)
const byIdLocked = query(`select ${columnsOf(row)} from workspaces where id = ? locked`, row)

export async function findWorkspace(db: Db, id: string, lock = false): Promise<WorkspaceRow | null> {
  return (lock ? byIdLocked : byId).first(db, [id])
}

/**
 * Writes what its admins decide (not its counter and its default device, which others write); false when somebody else
 * changed it since it was read.
 */
export async function replaceWorkspace(db: Db, before: WorkspaceRow, after: WorkspaceRow): Promise<boolean> {
  return replaceVersioned(
    db,
    { table: 'workspaces', before },
    {
      name: after.name,
      slug: after.slug,
      description: after.description,
      status: after.status,
      context_md: after.contextMd,
      default_model: after.defaultModel,
      default_reasoning_effort: after.defaultReasoningEffort,
      default_max_turns: after.defaultMaxTurns,
      backup_model: after.backupModel,
      mcp_servers: toNullableJson(after.mcpServers),
      agents_paused: toFlag(after.agentsPaused),
      idle_compaction: toJson(after.idleCompaction),
      sandbox_size: after.sandboxSize,
      oom_resume: toFlag(after.oomResume),
      tool_permission_default: after.toolPermissionDefault,
      monthly_budget_cents: after.monthlyBudgetCents,
      updated_at: after.updatedAt,
    },
  )
}

export async function findWorkspaceBySlug(db: Db, slug: string): Promise<WorkspaceRow | null> {
  const found: unknown = await db('workspaces').where({ slug }).first()
  return found === undefined ? null : row.parse(found)
}

/** First made first. */
export async function listAllWorkspaces(db: Db, limit: number): Promise<WorkspaceRow[]> {
  const rows: unknown[] = await db('workspaces')
    .orderBy([{ column: 'created_at' }, { column: 'id' }])
    .limit(limit)
  return rows.map((value) => row.parse(value))
}

/** One default device per workspace; setting another replaces it. */
export async function replaceDefaultDevice(db: Db, workspaceId: string, device: string | null, at: number) {
  await db('workspaces').where({ id: workspaceId }).update({ default_device: device, updated_at: at })
}

export async function clearDefaultDevice(db: Db, workspaceId: string, device: string): Promise<void> {
  await db('workspaces').where({ id: workspaceId, default_device: device }).update({ default_device: null })
}

export interface Membership {
  workspace: WorkspaceRow
  companyName: string
  role: 'owner' | 'admin' | 'member'
}

/** Workspaces a person belongs to, first joined first. */
export async function listMemberships(db: Db, userId: string): Promise<Membership[]> {
  const rows: Record<string, unknown>[] = await db('members')
    .join('workspaces', 'workspaces.id', 'members.workspace_id')
    .join('companies', 'companies.id', 'workspaces.company_id')
    .where({ user_id: userId })
    .orderBy([{ column: 'members.created_at' }, { column: 'workspaces.id' }])
    .select('workspaces.*', 'members.role as member_role', 'companies.name as company_name')
  return rows.map((value) => ({
    workspace: row.parse(value),
    companyName: z.string().parse(value.company_name),
    role: z.enum(['owner', 'admin', 'member']).parse(value.member_role),
  }))
}
