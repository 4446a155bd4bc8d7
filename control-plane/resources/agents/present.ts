import type { Agent } from '../../../shared/api/agents.ts'
import type { AgentHistoryEntry } from '../../../shared/api/agent-history.ts'
import type { ConfigRevision } from '../../../shared/api/agent-config.ts'
import { toTimestamp } from '../../../shared/api/ids.ts'
import { type ModelCatalog, chooseHarness } from '../../catalog/catalog.ts'
import { spentNow, toCents } from '../../catalog/price.ts'
import { configOf } from './rules.ts'
import type { HistoryRow } from './own/history-store.ts'
import { isRevertible } from './own/revision-rules.ts'
import type { RevisionRow } from './own/revision-store.ts'
import type { AgentRow, ListedAgent } from './store.ts'

/** Returns `@handle`, or the `agt_` id when the name has no handle. */
export function handleText(agent: Pick<AgentRow, 'id' | 'handle'>): string {
  return agent.handle === agent.id ? agent.id : `@${agent.handle}`
}

/** Facts beside the row that an agent is shown with. */
export interface AgentView {
  workspace: { defaultModel: string | null }
  catalog: ModelCatalog
  now: number
}

export function presentAgent(agent: ListedAgent, view: AgentView): Agent {
  const spent = spentNow({ month: agent.spentMonth, nanoUsd: agent.spentNanoUsd }, view.now)
  return {
    object: 'agent',
    id: agent.id,
    handle: handleText(agent),
    name: agent.name,
    role: agent.role,
    description: agent.description,
    status: agent.status,
    model: agent.model,
    backupModel: agent.backupModel,
    harness: chooseHarness(agent.harness, agent.model ?? view.workspace.defaultModel, view.catalog),
    environment: agent.environment,
    workspaceId: agent.workspaceId,
    defaultFolderId: agent.defaultFolderId,
    defaultRepoId: agent.defaultRepoId,
    ownerUserId: agent.ownerUuid,
    visibility: agent.visibility,
    reportingTo: agent.reportingToUuid,
    wakeOnAssignment: agent.wakeOnAssignment,
    wakeOnHook: agent.wakeOnHook,
    toolPermissionMode: agent.toolPermissionMode,
    spentMonthlyCents: toCents(spent),
    lastRunAt: toTimestamp(agent.lastRunAt),
    deletedAt: toTimestamp(agent.deletedAt),
    createdAt: toTimestamp(agent.createdAt),
    updatedAt: toTimestamp(agent.updatedAt),
  }
}

export function presentSettings(agent: AgentRow) {
  return { config: configOf(agent), agentMd: agent.agentMd, agentMdHash: agent.agentMdHash, slug: agent.handle }
}

export function presentIdentity(agent: AgentRow, rules: string[]) {
  return { agentMd: agent.agentMd, agentMdHash: agent.agentMdHash, rules }
}

export function presentRevision(revision: RevisionRow): ConfigRevision {
  const { changedByRef: _, agentRef, ...shown } = revision
  return { ...shown, agentId: agentRef, createdAt: toTimestamp(revision.createdAt) }
}

export function presentHistory(entry: HistoryRow): AgentHistoryEntry {
  return {
    object: 'agent_history_entry',
    id: entry.id,
    agentId: entry.agentRef,
    kind: entry.kind,
    changedKeys: entry.changedKeys,
    description: entry.description,
    changedBy: entry.changedByRef,
    isRevertible: isRevertible(entry.kind),
    revisionId: isRevertible(entry.kind) ? entry.id : null,
    revertedEntryId: entry.reverts,
    createdAt: toTimestamp(entry.createdAt),
  }
}
