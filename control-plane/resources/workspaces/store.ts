import type { CompanyUuid, DeviceRef, PersonUuid, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { sandboxSizes } from '../../../shared/api/agents.ts'
import { flag, int, json, nullableInt, nullableJson, nullableText, text, time } from '../../db/columns.ts'
import { companyUuid, deviceRef, workspaceRef, workspaceUuid } from '../../db/id-columns.ts'
import { lockRows } from '../../db/dialect.ts'
import type { Askable, Db, Tx } from '../../db/open.ts'
import { cellOf } from '../../db/reads.ts'
import { table, type RowOf } from '../../db/table.ts'
import { insertSlug } from './slug-store.ts'

export const idleCompaction = z.object({
  enabled: z.boolean(),
  afterMinutes: z.number().int().min(1).max(59),
  minTokens: z.number().int().nonnegative(),
})
export const idleCompactionDefault: z.infer<typeof idleCompaction> = {
  enabled: false,
  afterMinutes: 55,
  minTokens: 100_000,
}

const workspaces = table('workspaces', {
  id: workspaceUuid,
  publicId: workspaceRef,
  companyId: companyUuid,
  name: text,
  slug: text,
  description: nullableText,
  status: z.enum(['active', 'archived']),
  issuePrefix: text,
  issueCounter: int,
  contextMd: nullableText,
  defaultModel: nullableText,
  defaultReasoningEffort: nullableText,
  defaultMaxTurns: nullableInt,
  backupModel: nullableText,
  mcpServers: nullableJson(z.record(z.string(), z.unknown())),
  agentsPaused: flag,
  idleCompaction: json(idleCompaction),
  sandboxSize: z.enum(sandboxSizes).nullable(),
  oomResume: flag,
  /** Hosts that sandboxes reach beside what their runs need. */
  sandboxEgress: json(z.array(z.string())),
  /** Runs of the cloud may be made, where the server has an engine. */
  cloudEnabled: flag,
  /** The operator locked its company (`svc-server company lock`): no run is made or goes on. */
  isBillingLocked: flag,
  toolPermissionDefault: z.enum(['strict', 'ask', 'full']).nullable(),
  /** Durable id of the device that runs without a folder prefer. */
  defaultDevice: deviceRef.nullable(),
  monthlyBudgetCents: nullableInt,
  version: int,
  createdAt: time,
  updatedAt: time,
})
export type WorkspaceRow = RowOf<typeof workspaces>

type NewFields = 'id' | 'publicId' | 'companyId' | 'name' | 'slug' | 'issuePrefix'
type NewWorkspace = Pick<WorkspaceRow, NewFields> & { at: number }

export async function insertCompany(db: Db, company: { id: string; name: string; at: number }): Promise<void> {
  const { at, ...fields } = company
  await db('companies').insert({ ...fields, created_at: at, updated_at: at })
}

/** Throws the database's unique violation when the slug is or was another workspace's. */
export async function insertWorkspace(db: Db, workspace: NewWorkspace): Promise<void> {
  const { at, ...fields } = workspace
  await insertSlug(db, { slug: workspace.slug, workspaceId: workspace.id, at })
  await workspaces.insert(db, {
    ...fields,
    status: 'active',
    idleCompaction: idleCompactionDefault,
    sandboxEgress: [],
    cloudEnabled: true,
    createdAt: at,
    updatedAt: at,
  })
}

const byId = workspaces.query('where id = ? and removed_at is null')
const byIdLocked = workspaces.query('where id = ? and removed_at is null locked')

/** Finds a workspace; with `lock` nobody else can change it until the transaction ends. */
export async function findWorkspace(db: Askable, id: WorkspaceUuid, lock = false): Promise<WorkspaceRow | null> {
  return (lock ? byIdLocked : byId).first(db, [id])
}

/**
 * Writes the fields that admins change, not its counter and its default device, which others write meanwhile. Returns
 * false when somebody else changed it since it was read.
 */
export async function replaceWorkspace(db: Db, before: WorkspaceRow, after: WorkspaceRow): Promise<void> {
  await workspaces.replace(db, before, after)
}

/**
 * Makes the workspace gone for everybody: no query finds it any more, nothing starts in it, and its tokens are nobody's.
 * Its rows go later (removal-store.ts). Fails with `transient_conflict` when somebody else changed it since it was read.
 */
export async function markRemoved(db: Db, before: WorkspaceRow, at: number): Promise<void> {
  await workspaces.replace(db, before, { status: 'archived', agentsPaused: true, updatedAt: at }, { removed_at: at })
}

/** Locks a removed workspace until the transaction ends. Returns its company; null: it is gone, or somebody else has it. */
export async function claimRemoved(tx: Tx, id: string): Promise<string | null> {
  return cellOf(lockRows(tx('workspaces').where({ id }).whereNotNull('removed_at'), true), 'company_id', text)
}

/** Returns whether the company has a workspace. */
export async function hasWorkspace(db: Db, companyId: CompanyUuid): Promise<boolean> {
  return (await db('workspaces').where({ company_id: companyId }).whereNull('removed_at').first('id')) !== undefined
}

export async function listWorkspacesOfCompany(db: Db, companyId: CompanyUuid): Promise<WorkspaceRow[]> {
  return workspaces.list(workspaces.from(db).where({ company_id: companyId }).whereNull('removed_at').orderBy('id'))
}

export async function findWorkspaceBySlug(db: Db, slug: string): Promise<WorkspaceRow | null> {
  return workspaces.first(workspaces.from(db).where({ slug }).whereNull('removed_at'))
}

/** Lists workspaces, oldest first. */
export async function listAllWorkspaces(db: Db, limit: number): Promise<WorkspaceRow[]> {
  return workspaces.list(workspaces.from(db).whereNull('removed_at').orderBy(['created_at', 'id']).limit(limit))
}

/** Sets the workspace's only default device. Returns false when it is that already. */
export async function replaceDefaultDevice(
  db: Db,
  workspaceId: WorkspaceUuid,
  device: DeviceRef,
  at: number,
): Promise<boolean> {
  const changed = await db('workspaces')
    .where({ id: workspaceId })
    .where((other) => void other.whereNull('default_device').orWhereNot({ default_device: device }))
    .update({ default_device: device, updated_at: at })
  return changed === 1
}

export async function clearDefaultDevice(db: Db, workspaceId: WorkspaceUuid, device: DeviceRef): Promise<void> {
  await db('workspaces').where({ id: workspaceId, default_device: device }).update({ default_device: null })
}

/** Called when a person loses the right to have one: their device is the default one no longer. */
export async function clearDefaultDeviceOf(
  db: Db,
  of: { workspaceId: WorkspaceUuid; personUuid: PersonUuid },
): Promise<void> {
  await db('workspaces')
    .where({ id: of.workspaceId })
    .whereIn('default_device', db('devices').where({ user_id: of.personUuid }).select('public_id'))
    .update({ default_device: null })
}

const membership = z.object({ companyName: text, role: z.enum(['owner', 'admin', 'member']) })
export type Membership = z.infer<typeof membership> & { workspace: WorkspaceRow }

/** Lists the workspaces of a person, first joined first. */
export async function listMemberships(db: Db, personUuid: PersonUuid): Promise<Membership[]> {
  const rows: unknown[] = await db('members')
    .join('workspaces', 'workspaces.id', 'members.workspace_id')
    .join('companies', 'companies.id', 'workspaces.company_id')
    .where({ user_id: personUuid })
    .whereNull('workspaces.removed_at')
    .orderBy(['members.created_at', 'workspaces.id'])
    .select(workspaces.fields('workspaces'), 'members.role', 'companies.name as companyName')
  return rows.map((value) => ({ ...membership.parse(value), workspace: workspaces.read(value) }))
}

const compacting = workspaces.query(`where status = 'active' and idle_compaction like '%"enabled":true%' order by id`)

/** Lists the workspaces that have idle sessions made smaller. */
export const listCompactingWorkspaces = (db: Db): Promise<WorkspaceRow[]> => compacting.list(db, [])
