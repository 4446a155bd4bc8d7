import { placeOfEnvironment } from '../../../run/places/places.ts'
import type { ActorRef, AgentRef, AgentUuid, FolderRef, RepoUuid, WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { changedRow } from '../../../db/changed-row.ts'
import type { Agent } from '../../../../shared/api/agents.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { ModelCatalog } from '../../../catalog/catalog.ts'
import type { Caller } from '../../../http/callers.ts'
import { databaseTroubleOf } from '../../../db/dialect.ts'
import type { Db, Tx } from '../../../db/open.ts'
import type { World } from '../../../../shared/lib/world.ts'
import { reviewAgentBudget } from '../../approvals/steps/budget-hold.ts'
import { findFolder } from '../../folders/store.ts'
import { findRepo } from '../../repos/store.ts'
import { isWordOfOwner } from './accept.ts'
import { presentAgent } from '../present.ts'
import { insertHistory, type HistoryRow } from '../own/history-store.ts'
import { kindOfChange } from '../own/revision-rules.ts'
import { insertRevision, type RevisionRow } from '../own/revision-store.ts'
import {
  changedKeys,
  endsSessions,
  describeChange,
  freeHandle,
  isReportingCycle,
  mayUseFolder,
  ownsOrAdministersAgent,
  revisedOf,
  slugOf,
} from '../rules.ts'
import { problemOfLists } from '../permission-rules.ts'
import { decidesWhatRuns, settingsRefusalOf } from '../trust-rules.ts'
import { cancelWaiting, reconsiderWaiting } from './own/waiting-runs.ts'
import { causeOfCaller } from '../../runs/cause.ts'
import { findWorkspace, type WorkspaceRow } from '../../workspaces/store.ts'
import { listHandlesLike, listManagers, replaceAgent, type AgentRow } from '../store.ts'
import { lookUpAgent } from '../lookup.ts'

// Steps shared by all writes of an agent.

export async function workspaceOf(db: Db, caller: Caller): Promise<WorkspaceRow> {
  return (await findWorkspace(db, caller.workspaceId)) ?? fail('resource_not_found', { param: 'workspaceId' })
}

/** The agent as the caller reads it. */
export async function shownAgent(
  agent: AgentRow,
  { db, caller, world, catalog }: { db: Db; caller: Caller; world: World; catalog: ModelCatalog },
): Promise<Agent> {
  return presentAgent(agent, { workspace: await workspaceOf(db, caller), catalog, now: world.now() })
}

/** A free handle made from the name, or the agent's id when the name has no usable letter. */
export async function chooseHandle(
  db: Db,
  agent: { workspaceId: WorkspaceUuid; id: AgentRef; name: string },
): Promise<string> {
  const slug = slugOf(agent.name)
  if (slug === '') return agent.id
  return freeHandle(slug, new Set(await listHandlesLike(db, agent.workspaceId, slug)))
}

/** UUID of the new manager. Fails when it does not exist or reports to the agent. */
export async function checkManager(
  db: Db,
  caller: Caller,
  change: { agentUuid: AgentUuid; reference: string | null },
): Promise<AgentUuid | null> {
  if (change.reference === null) return null
  const manager = await managerOf(db, caller, change.reference)
  const above = await listManagers(db, caller.workspaceId, manager.uuid)
  if (isReportingCycle(change.agentUuid, above)) fail('reporting_cycle', { param: 'reportingTo' })
  return manager.uuid
}

async function managerOf(db: Db, caller: Caller, reference: string): Promise<AgentRow> {
  const manager = await lookUpAgent(db, caller, reference)
  return manager === null || manager.deletedAt !== null ? fail('resource_not_found', { param: 'reportingTo' }) : manager
}

/**
 * The body of a write that waits for approval, with the manager by its id: `me`, a handle and a name could mean another agent, or
 * none, to the person who approves it later.
 */
export async function withManagerById<T extends { reportingTo?: string | null | undefined }>(
  db: Db,
  caller: Caller,
  body: T,
): Promise<T> {
  if (body.reportingTo == null) return body
  return { ...body, reportingTo: (await managerOf(db, caller, body.reportingTo)).id }
}

/** Fails when the folder does not exist, is not the caller's to give, or the agent runs in the cloud. */
export async function checkFolder(
  db: Db,
  caller: Caller,
  change: { agent: AgentRow; folderId: FolderRef | null; workspace: WorkspaceRow },
): Promise<void> {
  const param = 'defaultFolderId'
  const { agent, folderId } = change
  if (!ownsOrAdministersAgent(agent, caller)) fail('default_folder_forbidden', { param })
  if (folderId === null) return
  if (!placeOfEnvironment(agent.environment).hasFolders) fail('folder_requires_device_environment', { param })
  const folder = await findFolder(db, agent.workspaceId, folderId)
  if (folder === null) return fail('resource_not_found', { param, message: 'There is no such folder.' })
  const { defaultDevice } = change.workspace
  if (!mayUseFolder({ folder, agent, caller, defaultDevice }))
    fail('default_folder_forbidden', { param, message: 'This folder is on a device of somebody else.' })
}

export async function checkDefaultRepo(
  db: Db,
  caller: Caller,
  { agent, repoId }: { agent: AgentRow; repoId: RepoUuid | null },
): Promise<void> {
  const param = 'defaultRepoId'
  if (!ownsOrAdministersAgent(agent, caller)) fail('default_repo_forbidden', { param })
  if (repoId !== null && (await findRepo(db, agent.workspaceId, repoId)) === null) fail('repo_not_found', { param })
}

/** Checks whether the caller may write these settings, and whether they fit together. */
function checkSettings({ before, after, caller }: AgentWrite, keys: readonly string[]): void {
  const refusal = settingsRefusalOf({ before, after, keys }, caller)
  if (refusal !== null) fail('http_exception', refusal)
  if (!placeOfEnvironment(after.environment).hasFolders && after.defaultFolderId !== null)
    fail('folder_requires_device_environment', {
      param: 'config.runtime.environment',
      message: 'The agent has a default folder; clear it before the agent moves to the cloud.',
    })
}

/** Refuses rules that nobody can read: whoever wrote one believes that it holds. */
export function checkRules(before: AgentRow, after: AgentRow): void {
  const problem = problemOfLists(before.tools, after.tools)
  if (problem !== null) fail('validation_error', problem)
}

/** The id under which a change is recorded. */
export const authorRefOf = (caller: Caller): ActorRef =>
  caller.kind === 'person' ? (caller.onBehalfOf ?? caller.personRef) : caller.agentRef

export interface AgentWrite {
  before: AgentRow
  after: AgentRow
  caller: Caller
  world: World
  /** Source of its revision; default `patch`. */
  source?: 'patch' | 'rollback'
  /** Default: a list of the changed settings. */
  description?: string
  /** The history entry that this write undoes. */
  reverts?: string
}

/**
 * Stores the changed agent. If its settings or AGENT.md changed, also stores a revision and an entry in its history.
 * Every write of an existing agent passes here, so this is the place that checks whether the caller may change these
 * settings, whichever way the change came (route, rollback, revert, approval, automation). Fails with `http_exception`
 * (403), `handle_taken`, or `transient_conflict` when somebody else wrote in between.
 */
export async function storeAgent(
  db: Tx,
  write: AgentWrite,
): Promise<{ agent: AgentRow; revision: RevisionRow | null; entry: HistoryRow | null }> {
  const { before, caller, world } = write
  const now = world.now()
  // Giving the agent on is no agreement to own it.
  const isAccepted = isWordOfOwner(before, caller) && write.after.ownerUuid === before.ownerUuid
  const keys = changedKeys(before, write.after)
  const changes = {
    ...write.after,
    ...(isAccepted && { transferredAt: null }),
    ...(endsSessions(write.after, keys) && { sessionsResetAt: now }),
    ...(keys.includes('agentMd') && { agentMdByUuid: await causeOfCaller(db, caller) }),
  }
  const after = changedRow(before, changes, now)
  if (keys.length > 0) checkSettings(write, keys)
  checkRules(before, write.after)
  await refusingTakenHandle(() => replaceAgent(db, before, after))
  if (isAccepted) {
    // An owner who agrees by setting another program has not agreed to the runs that were meant for the old one.
    if (decidesWhatRuns({ before, after, keys }))
      await cancelWaiting(db, after, { reason: 'The new owner of the agent changed what it runs.', world })
    else await reconsiderWaiting(db, after, now)
  }
  if (keys.includes('runtime.monthlyBudgetCents') || before.deletedAt !== after.deletedAt)
    await reviewAgentBudget(db, after, world)
  if (keys.length === 0) return { agent: after, revision: null, entry: null }
  const revision: RevisionRow = {
    id: world.uuid(),
    agentRef: after.id,
    beforeConfig: revisedOf(before),
    afterConfig: revisedOf(after),
    changedKeys: keys,
    changeDescription: write.description ?? describeChange(keys),
    source: write.source ?? 'patch',
    changedByRef: authorRefOf(caller),
    createdAt: now,
  }
  const { id, agentRef, changedByRef, changeDescription: description } = revision
  const entry: HistoryRow = {
    id,
    agentRef,
    kind: kindOfChange(keys),
    changedKeys: keys,
    description,
    changedByRef,
    reverts: write.reverts ?? null,
    createdAt: now,
  }
  await insertRevision(db, revision)
  await insertHistory(db, entry)
  return { agent: after, revision, entry }
}

/** A handle was free when it was looked up, so a taken one means that another write came in between. */
export async function refusingTakenHandle(write: () => Promise<void>): Promise<void> {
  try {
    await write()
  } catch (error) {
    if (databaseTroubleOf(error) === 'duplicate') fail('handle_taken', { param: 'name', cause: error })
    throw error
  }
}
