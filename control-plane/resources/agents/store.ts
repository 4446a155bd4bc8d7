import type { ActorRef, AgentRef, AgentUuid, PersonUuid, RunId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { onlyVisibleAgents } from './visibility.ts'
import { countOf } from '../../db/reads.ts'
import { z } from 'zod'
import { harnessNames } from '../../../shared/runs/harnesses.ts'
import {
  commandProtocols,
  harnessCommand,
  reasoningEfforts,
  toolPermissionModes,
  toolRule,
} from '../../../shared/runs/spec.ts'
import { skillFolders } from '../../../shared/runs/skills.ts'
import { flag, int, json, nullableInt, nullableJson, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import { agentRef, agentUuid, folderRef, personUuid, repoUuid, workspaceUuid } from '../../db/id-columns.ts'
import { newestFirst, type OlderPage } from '../../db/id-page.ts'
import { onlyContaining, onlyLive } from '../../db/list-filters.ts'
import type { Askable, Db } from '../../db/open.ts'
import { command } from '../../db/statement.ts'
import { table, type RowOf } from '../../db/table.ts'

export const agentStatuses = ['active', 'idle', 'running', 'terminated', 'error'] as const

const toolLists = z.object({
  allow: z.array(toolRule),
  ask: z.array(toolRule),
  deny: z.array(toolRule),
})

export const agents = table(
  'agents',
  {
    id: agentRef,
    uuid: agentUuid,
    workspaceId: workspaceUuid,
    /** The handle without its `@`. */
    handle: text,
    name: text,
    role: text,
    description: nullableText,
    status: z.enum(agentStatuses),
    model: nullableText,
    backupModel: nullableText,
    reasoningEffort: z.enum(reasoningEfforts).nullable(),
    sandboxSize: z.enum(['small', 'medium', 'large']).nullable(),
    /** The override; null: derived from the model. */
    harness: z.enum(harnessNames).nullable(),
    fallbackHarness: z.enum(harnessNames).nullable(),
    environment: z.enum(['device', 'cloud']),
    maxTurns: nullableInt,
    command: nullableJson(harnessCommand),
    protocol: z.enum(commandProtocols).nullable(),
    skillFolders: nullableJson(skillFolders),
    defaultFolderId: folderRef.nullable(),
    defaultRepoId: repoUuid.nullable(),
    ownerUuid: personUuid.nullable(),
    visibility: z.enum(['company', 'private']),
    reportingToUuid: agentUuid.nullable(),
    wakeOnAssignment: flag,
    wakeOnHook: flag,
    toolPermissionMode: z.enum(toolPermissionModes).nullable(),
    tools: json(toolLists),
    capabilities: json(z.array(z.string())),
    agentMd: text,
    agentMdHash: text,
    /** UUID of the person who wrote it last; null: not known. */
    agentMdByUuid: personUuid.nullable(),
    /**
     * The cost of its runs in `spentMonth` (`2026-03`), in billionths of a dollar; a sum of another month no longer
     * counts.
     */
    spentNanoUsd: int,
    spentMonth: nullableText,
    monthlyBudgetCents: nullableInt,
    /** The time at which it was given to its present owner, who has not agreed yet; null: the owner agreed. */
    transferredAt: nullableTime,
    /** Harness sessions of runs made before this time are not continued. */
    sessionsResetAt: nullableTime,
    lastRunAt: nullableTime,
    tokenGeneration: int,
    deletedAt: nullableTime,
    version: int,
    createdAt: time,
    updatedAt: time,
  },
  { columns: { ownerUuid: 'owner_user_id', reportingToUuid: 'reporting_to', agentMdByUuid: 'agent_md_by_user_id' } },
)
export type AgentRow = RowOf<typeof agents>

const { agentMd: _, ...listedColumns } = agents.columns
const listedAgents = table('agents', listedColumns, { columns: agents.named })
/** An agent without its AGENT.md, as lists read it: a hundred of them would take a hundred megabytes. */
export type ListedAgent = RowOf<typeof listedAgents>

/** Throws the database's unique violation when the handle is taken. */
export async function insertAgent(db: Db, agent: AgentRow): Promise<void> {
  await agents.insert(db, { ...agent, version: 1 })
}

/**
 * Writes the whole row but what endings of runs write. Fails with `transient_conflict` when
 * somebody else changed it since it was read.
 */
export async function replaceAgent(db: Db, before: AgentRow, after: AgentRow): Promise<void> {
  if (after === before) return
  const { spentMonth: _month, spentNanoUsd: _spent, lastRunAt: _ran, ...changes } = after
  await agents.replace(db, before, changes)
}

const byId = agents.query('where id = ?')
const byIds = listedAgents.query('where id in ?')

export async function findAgent(db: Askable, id: AgentRef): Promise<AgentRow | null> {
  return byId.first(db, [id])
}

export async function listAgentsByIds(db: Db, ids: readonly AgentRef[]): Promise<ListedAgent[]> {
  return ids.length === 0 ? [] : byIds.list(db, [ids])
}

const byReferences = listedAgents.query(
  'where workspace_id = ? and (id in ? or uuid in ? or handle in ? or name in ?) order by created_at, id',
)

/** Lists all agents that one of these references may name, deleted ones included. */
export async function listAgentsByReferences(db: Db, workspaceId: WorkspaceUuid, references: readonly string[]) {
  if (references.length === 0) return []
  const uuids = references.map((reference) => reference.toLowerCase())
  const handles = references.map((reference) => reference.replace(/^@/, ''))
  return byReferences.list(db, [workspaceId, references, uuids, handles, references])
}

/**
 * The one of `agents` (oldest first) that a reference names: by id or UUID, else a live one by handle, then by name.
 */
export function matchReference(agents: readonly ListedAgent[], reference: string): ListedAgent | null {
  const uuid = reference.toLowerCase()
  const exact = agents.find((agent) => agent.id === reference || agent.uuid === uuid)
  if (exact) return exact
  const handle = reference.replace(/^@/, '')
  const named = agents.filter(
    (agent) => agent.handle === handle || (agent.name === reference && !reference.startsWith('@')),
  )
  const rank = (agent: ListedAgent) => (agent.deletedAt === null ? 0 : 2) + (agent.handle === handle ? 0 : 1)
  return named.toSorted((a, b) => rank(a) - rank(b))[0] ?? null
}

/** Finds an agent by id, UUID, `@handle`, handle or name within a workspace; live ones win over deleted ones. */
export async function findAgentByReference(
  db: Db,
  workspaceId: WorkspaceUuid,
  reference: string,
): Promise<AgentRow | null> {
  const found = matchReference(await listAgentsByReferences(db, workspaceId, [reference]), reference)
  return found === null ? null : findAgent(db, found.id)
}

export interface AgentFilter extends OlderPage {
  workspaceId: WorkspaceUuid
  /** Live agents with one of these statuses; left out: all live agents. */
  statuses?: readonly string[]
  /** Deleted agents, too. */
  withDeleted?: boolean
  role?: string
  /** Matched case-insensitively against name, handle and description. */
  q?: string
  /** The viewer: private agents are listed only if this person owns them or this agent is one. Left out: all are. */
  visibleTo?: { personUuid: PersonUuid | null; agentRef: ActorRef | null }
}

/** Lists agents newest first; returns one row more than `limit`. */
export async function listAgents(db: Db, filter: AgentFilter): Promise<ListedAgent[]> {
  const query = listedAgents.from(db).where({ workspace_id: filter.workspaceId })
  onlyLive(query, filter)
  if (filter.role !== undefined) void query.where({ role: filter.role })
  onlyContaining(query, ['name', 'handle', 'description'], filter.q)
  if (filter.visibleTo !== undefined) void query.where((any) => onlyVisibleAgents(any, filter.visibleTo!))
  return listedAgents.list(newestFirst(query, filter))
}

/** Counts the live agents that this viewer sees. */
export async function countAgents(
  db: Db,
  workspaceId: WorkspaceUuid,
  viewer: { seesAll: boolean; personUuid: PersonUuid | null; agentRef: ActorRef | null },
): Promise<number> {
  const query = db('agents').where({ workspace_id: workspaceId }).whereNull('deleted_at')
  if (!viewer.seesAll) void query.where((any) => onlyVisibleAgents(any, viewer))
  return countOf(query)
}

/** Handles in use that begin like this one, for finding a free suffix. */
export async function listHandlesLike(db: Db, workspaceId: WorkspaceUuid, handle: string): Promise<string[]> {
  return db('agents')
    .where({ workspace_id: workspaceId })
    .where((any) => void any.where({ handle }).orWhere('handle', 'like', `${handle}-%`))
    .pluck('handle')
}

/** The chain of managers from an agent upwards, nearest first; stops at a loop. */
export async function listManagers(
  db: Db,
  workspaceId: WorkspaceUuid,
  reportingToUuid: AgentUuid | null,
): Promise<ListedAgent[]> {
  const chain: ListedAgent[] = []
  let next = reportingToUuid
  while (next !== null && chain.length < 100 && !chain.some((agent) => agent.uuid === next)) {
    const found = await listedAgents.find(db, { workspaceId, uuid: next })
    if (found === null) break
    chain.push(found)
    next = found.reportingToUuid
  }
  return chain
}

const ranLast = command(
  'update agents set last_run_at = ? where id = ? and exists (select 1 from runs where id = ? and ended_at = ?)',
)

/** Notes when the agent's last run ended, if this one ended at `endedAt`. */
export async function recordLastRun(
  db: Db,
  { id, agentRef, endedAt }: { id: RunId; agentRef: AgentRef; endedAt: number },
  at: number,
): Promise<void> {
  await ranLast(db, [at, agentRef, id, endedAt])
}

const allRanLast = command('update agents set last_run_at = ? where id in ?')

/** Notes that runs of these agents have ended now. */
export async function recordLastRuns(db: Db, agentRefs: readonly AgentRef[], at: number): Promise<void> {
  await allRanLast(db, [at, [...new Set(agentRefs)].toSorted()])
}
