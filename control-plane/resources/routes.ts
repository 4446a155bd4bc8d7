import { contract } from '../../shared/api/index.ts'
import { pullRequestHandlers } from '../github/pull-request-handlers.ts'
import type { ImplementedRoute } from '../http/implement.ts'
import { implementOpenApi } from '../http/openapi.ts'
import { authHandlers } from '../sign-in/token-handlers.ts'
import { agentConfigHandlers } from './agents/config-handlers.ts'
import { agentHandlers } from './agents/handlers.ts'
import { agentHistoryHandlers } from './agents/history-handlers.ts'
import { agentLifecycleHandlers } from './agents/lifecycle-handlers.ts'
import { agentRunHandlers } from './agents/run-handlers.ts'
import { agentUpkeepHandlers } from './agents/upkeep-handlers.ts'
import { automationHandlers } from './automations/handlers.ts'
import { approvalHandlers } from './approvals/handlers.ts'
import { conversationHandlers } from './conversations/handlers.ts'
import { messageHandlers } from './messages/handlers.ts'
import { taskCommentHandlers } from './task-comments/handlers.ts'
import type { ResourceDependencies } from './dependencies.ts'
import { deviceAdminHandlers } from './devices/admin-handlers.ts'
import { deviceHandlers } from './devices/handlers.ts'
import { deviceInternalHandlers } from './devices/internal-handlers.ts'
import { folderHandlers } from './folders/handlers.ts'
import { memberHandlers } from './members/handlers.ts'
import { projectGrantHandlers } from './projects/grant-handlers.ts'
import { projectHandlers } from './projects/handlers.ts'
import { questionHandlers } from './questions/handlers.ts'
import { secretHandlers } from './secrets/handlers.ts'
import { repoHandlers } from './repos/handlers.ts'
import { runEventHandlers } from './runs/event-handlers.ts'
import { runHandlers } from './runs/handlers.ts'
import { runRecordHandlers } from './runs/record-handlers.ts'
import { unassignTasks } from './tasks/assign.ts'
import { taskHandlers } from './tasks/handlers.ts'
import { taskHistoryHandlers } from './tasks/history-handlers.ts'
import { taskLinkHandlers } from './tasks/link-handlers.ts'
import { workspaceActionHandlers } from './workspaces/action-handlers.ts'
import { workspaceHandlers } from './workspaces/handlers.ts'

/** Every route of the contract with its handler, and the internal ones of devices and login tokens. */
export function implementResources(deps: ResourceDependencies): ImplementedRoute[] {
  const routes: ImplementedRoute[] = [
    ...agentHandlers(deps),
    ...agentConfigHandlers(),
    ...agentLifecycleHandlers(deps, unassignTasks),
    ...agentHistoryHandlers(),
    ...agentUpkeepHandlers(deps),
    ...agentRunHandlers(deps),
    ...runHandlers(deps),
    ...runEventHandlers(deps),
    ...runRecordHandlers(deps),
    ...deviceHandlers(deps),
    ...deviceAdminHandlers(deps),
    ...deviceInternalHandlers(deps),
    ...folderHandlers(deps),
    ...workspaceHandlers(),
    ...workspaceActionHandlers(deps),
    ...memberHandlers(deps),
    ...projectHandlers(),
    ...projectGrantHandlers(),
    ...taskHandlers(deps),
    ...taskLinkHandlers(deps),
    ...taskHistoryHandlers(),
    ...repoHandlers(),
    ...automationHandlers(deps),
    ...pullRequestHandlers(deps),
    ...conversationHandlers(deps),
    ...messageHandlers(deps),
    ...taskCommentHandlers(deps),
    ...authHandlers(),
    ...approvalHandlers(deps, () => routes),
    ...questionHandlers(deps),
    ...secretHandlers(deps),
    // The document's server is where it was read from.
    ...implementOpenApi(contract, '/'),
  ]
  return routes
}
