import type {
  AgentRef,
  AutomationId,
  PersonUuid,
  RunId,
  WorkflowRunId,
  WorkspaceUuid,
} from '../../../shared/lib/ids.ts'
import { onlyVisibleAgents } from '../agents/visibility.ts'
import type { Knex } from 'knex'
import { z } from 'zod'
import { environments } from '../../../shared/api/agents.ts'
import {
  automationStatuses,
  concurrencyPolicies,
  githubEvents,
  triggerTypes,
} from '../../../shared/api/automation-fields.ts'
import { int, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import {
  actorRef,
  agentRef,
  automationId,
  personUuid,
  projectUuid,
  runId,
  workflowRunId,
  workspaceUuid,
} from '../../db/id-columns.ts'
import { lockRows } from '../../db/dialect.ts'
import { newestFirst, type OlderPage } from '../../db/id-page.ts'
import { onlyContaining } from '../../db/list-filters.ts'
import { cellOf } from '../../db/reads.ts'
import type { Db } from '../../db/open.ts'
import { inKeptWorkspace } from '../../db/removed.ts'
import { table, type RowOf } from '../../db/table.ts'
import type { Viewer } from '../agents/rules.ts'

const automations = table(
  'automations',
  {
    id: automationId,
    workspaceId: workspaceUuid,
    projectId: projectUuid.nullable(),
    name: text,
    description: nullableText,
    status: z.enum(automationStatuses),
    triggerType: z.enum(triggerTypes),
    cron: nullableText,
    timezone: nullableText,
    event: z.enum(githubEvents).nullable(),
    repo: nullableText,
    /** SHA-256 of the secret in the webhook's URL. */
    tokenHash: nullableText,
    prompt: text,
    workflow: nullableText,
    agentRef,
    modelId: nullableText,
    environment: z.enum(environments).nullable(),
    concurrencyPolicy: z.enum(concurrencyPolicies),
    createdByType: z.enum(['user', 'agent', 'system']),
    createdByRef: actorRef.nullable(),
    /**
     * UUID of the person who last changed what it starts: its trigger, prompt, agent, model or environment; null:
     * unknown.
     */
    causedByUuid: personUuid.nullable(),
    lastRunId: runId.nullable(),
    /** The workflow run of the last fire, if that started one. */
    lastWorkflowRunId: workflowRunId.nullable(),
    lastFiredAt: nullableTime,
    /** The next instant of the schedule, whatever the status: fires of a paused automation are recorded, too. */
    nextFireAt: nullableTime,
    callsSince: nullableTime,
    calls: int,
    archivedAt: nullableTime,
    version: int,
    createdAt: time,
    updatedAt: time,
  },
  { columns: { agentRef: 'agent_id', createdByRef: 'created_by_id', causedByUuid: 'caused_by_user_id' } },
)
export type AutomationRow = RowOf<typeof automations>

export async function insertAutomation(db: Db, automation: AutomationRow): Promise<void> {
  await automations.insert(db, { ...automation, calls: 0, version: 1 })
}

/**
 * Writes the fields that people change, not those that fires write meanwhile (`recordRun`, `recordCall`). Fails with
 * `transient_conflict` when somebody else changed it, or its schedule fired, since it was read.
 */
export async function replaceAutomation(db: Db, before: AutomationRow, after: AutomationRow): Promise<void> {
  await automations.replace(db, before, after)
}

export async function findAutomation(
  db: Db,
  workspaceId: WorkspaceUuid,
  id: AutomationId,
): Promise<AutomationRow | null> {
  return automations.find(db, { workspaceId, id })
}

/** Locks it until the transaction ends, so that its fires follow one another. */
export async function lockAutomation(db: Db, id: AutomationId): Promise<AutomationRow | null> {
  return automations.first(lockRows(automations.from(db).where({ id })))
}

/** The workspace of the automation with this secret in its URL. */
export async function findWorkspaceOfToken(db: Db, tokenHash: string): Promise<string | null> {
  return cellOf(
    db('automations').where({ token_hash: tokenHash }).whereRaw(inKeptWorkspace('automations')),
    'workspace_id',
    text,
  )
}

/** Locks the automation with this secret in its URL. */
export async function lockAutomationByToken(db: Db, tokenHash: string): Promise<AutomationRow | null> {
  return automations.first(
    lockRows(automations.from(db).where({ token_hash: tokenHash }).whereRaw(inKeptWorkspace('automations'))),
  )
}

const dues = table(
  'automations',
  { id: automationId, workspaceId: workspaceUuid, at: time },
  { columns: { at: 'next_fire_at' } },
)
export type DueAutomation = RowOf<typeof dues>

/** Lists due schedules, those due longest first; `after` is the last one of the previous page. */
export async function listDue(
  db: Db,
  filter: { now: number; after?: { at: number; id: AutomationId }; limit: number },
): Promise<DueAutomation[]> {
  const query = dues.from(db).where('next_fire_at', '<=', filter.now).whereRaw(inKeptWorkspace('automations'))
  if (filter.after) void query.whereRaw('(next_fire_at, id) > (?, ?)', [filter.after.at, filter.after.id])
  return dues.list(query.orderBy(['next_fire_at', 'id']).limit(filter.limit))
}

/**
 * Returns the automation if it is still due at `at`, locked until the transaction ends; null when another replica has
 * locked it or was first.
 */
export async function claimDue(db: Db, due: { id: AutomationId; at: number }): Promise<AutomationRow | null> {
  return automations.first(lockRows(automations.from(db).where({ id: due.id, next_fire_at: due.at }), true))
}

/** Pauses active automations for which this person is responsible. Returns their number. */
export async function pauseAutomationsOf(
  db: Db,
  of: { personUuid: PersonUuid; workspaceId?: WorkspaceUuid },
  at: number,
): Promise<number> {
  return db('automations')
    .where({
      status: 'active',
      caused_by_user_id: of.personUuid,
      ...(of.workspaceId !== undefined && { workspace_id: of.workspaceId }),
    })
    .update({ status: 'paused', updated_at: at, version: db.raw('version + 1') })
}

/** Sets the next instant of a schedule. */
export async function replaceNextFire(db: Db, id: AutomationId, at: number | null): Promise<void> {
  await db('automations')
    .where({ id })
    .update({ next_fire_at: at, version: db.raw('version + 1') })
}

export async function recordRun(db: Db, id: AutomationId, run: { id: RunId; at: number }): Promise<void> {
  await automations.update(db, { id }, { lastRunId: run.id, lastWorkflowRunId: null, lastFiredAt: run.at })
}

export async function recordWorkflowRun(
  db: Db,
  id: AutomationId,
  run: { id: WorkflowRunId; at: number },
): Promise<void> {
  await automations.update(db, { id }, { lastRunId: null, lastWorkflowRunId: run.id, lastFiredAt: run.at })
}

/** Counts a call of the webhook in the window that began at `since`. */
export async function recordCall(db: Db, id: AutomationId, count: { since: number; calls: number }): Promise<void> {
  await db('automations').where({ id }).update({ calls_since: count.since, calls: count.calls })
}

export type Listening = Pick<AutomationRow, 'id' | 'workspaceId'>

/**
 * Lists automations of these workspaces, of any status, that wait for this event of this repository: of each workspace the
 * oldest `perWorkspace`, so that those of one never keep another's from an event.
 */
export async function listListening(
  db: Db,
  on: { repo: string; event: string; workspaceIds: readonly WorkspaceUuid[]; perWorkspace: number },
): Promise<Listening[]> {
  const { repo, event } = on
  const listening = db('automations')
    .where({ trigger_type: 'github', repo, event })
    .whereIn('workspace_id', [...on.workspaceIds])
    .select(
      'id',
      'workspace_id',
      db.raw('row_number() over (partition by workspace_id order by created_at, id) as place'),
    )
  const first = db.from(listening.as('listening')).where('place', '<=', on.perWorkspace).orderBy('id')
  return first.select({ id: 'id', workspaceId: 'workspace_id' })
}

export interface AutomationFilter extends OlderPage {
  workspaceId: WorkspaceUuid
  statuses?: readonly string[]
  agentRef?: AgentRef
  /** Matched case-insensitively against name and description. */
  q?: string
  viewer: Viewer
}

/** Lists automations newest first; returns one row more than `limit`. */
export async function listAutomations(db: Db, filter: AutomationFilter): Promise<AutomationRow[]> {
  const query = automations.from(db).where({ workspace_id: filter.workspaceId })
  if (filter.statuses) void query.whereIn('status', [...filter.statuses])
  if (filter.agentRef !== undefined) void query.where({ agent_id: filter.agentRef })
  onlyContaining(query, ['name', 'description'], filter.q)
  onlyOfVisibleAgents(query, filter.viewer)
  return automations.list(newestFirst(query, filter))
}

/** People who see its agent see an automation. */
function onlyOfVisibleAgents(query: Knex.QueryBuilder, viewer: Viewer): void {
  if (viewer.seesAll) return
  void query.whereIn('agent_id', (agents) => onlyVisibleAgents(agents.from('agents').select('id'), viewer))
}
