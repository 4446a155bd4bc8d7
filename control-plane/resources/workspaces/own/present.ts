import { toTimestamp } from '../../../../shared/api/ids.ts'
import type { UserWorkspace, Workspace } from '../../../../shared/api/workspaces.ts'
import { reasoningEfforts } from '../../../../shared/runs/spec.ts'
import type { Membership, WorkspaceRow } from '../store.ts'

export function presentWorkspace(workspace: WorkspaceRow): Workspace {
  return {
    id: workspace.id,
    name: workspace.name,
    slug: workspace.slug,
    description: workspace.description,
    status: workspace.status,
    issuePrefix: workspace.issuePrefix,
    issueCounter: workspace.issueCounter,
    contextMd: workspace.contextMd,
    defaultModel: workspace.defaultModel,
    defaultReasoningEffort: reasoningEfforts.find((effort) => effort === workspace.defaultReasoningEffort) ?? null,
    defaultMaxTurns: workspace.defaultMaxTurns,
    backupModel: workspace.backupModel,
    mcpServers: workspace.mcpServers,
    agentsPaused: workspace.agentsPaused,
    idleCompaction: workspace.idleCompaction,
    monthlyBudgetCents: workspace.monthlyBudgetCents,
    sandboxSize: workspace.sandboxSize,
    oomResume: workspace.oomResume,
    sandboxEgress: workspace.sandboxEgress,
    cloudEnabled: workspace.cloudEnabled,
    createdAt: toTimestamp(workspace.createdAt),
    updatedAt: toTimestamp(workspace.updatedAt),
  }
}

export function presentMembership({ workspace, companyName, role }: Membership): UserWorkspace {
  return {
    id: workspace.id,
    publicId: workspace.publicId,
    name: workspace.name,
    slug: workspace.slug,
    status: workspace.status,
    role,
    companyId: workspace.companyId,
    companyName,
  }
}
