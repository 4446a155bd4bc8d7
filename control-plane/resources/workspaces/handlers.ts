import { fail } from '../../../shared/api/errors.ts'
import { toTimestamp } from '../../../shared/api/ids.ts'
import { workspaceRoutes, type UserWorkspace, type Workspace } from '../../../shared/api/workspaces.ts'
import { sandboxSizes } from '../../../shared/api/agents.ts'
import { reasoningEfforts } from '../../../shared/runs/spec.ts'
import { implement, type ImplementedRoute } from '../../http/implement.ts'
import { wholeList } from '../whole-list.ts'
import { findWorkspace, listMemberships, type Membership, type WorkspaceRow } from './store.ts'

export function workspaceHandlers(): ImplementedRoute[] {
  return implement(workspaceRoutes, {
    async current({ db, caller }) {
      const workspace = await findWorkspace(db, caller.workspaceId)
      return workspace === null ? fail('resource_not_found') : presentWorkspace(workspace)
    },

    async userList({ db, caller }) {
      return wholeList((await listMemberships(db, caller.userId)).map(presentMembership))
    },
  })
}

function presentWorkspace(workspace: WorkspaceRow): Workspace {
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
    sandboxSize: sandboxSizes.find((size) => size === workspace.sandboxSize) ?? null,
    oomResume: workspace.oomResume,
    createdAt: toTimestamp(workspace.createdAt),
    updatedAt: toTimestamp(workspace.updatedAt),
  }
}

function presentMembership({ workspace, companyName, role }: Membership): UserWorkspace {
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
