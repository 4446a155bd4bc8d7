import { contract } from '../shared/api/index.ts'
import { pullRequestHandlers } from './github/pull-request-handlers.ts'
import type { ImplementedRoute } from './http/implement.ts'
import { implementOpenApi } from './http/openapi.ts'
import { authHandlers } from './sign-in/token-handlers.ts'
import { agentConfigHandlers } from './resources/agents/handlers/config.ts'
import { agentHandlers } from './resources/agents/handlers/agents.ts'
import { agentHistoryHandlers } from './resources/agents/handlers/history.ts'
import { agentLifecycleHandlers } from './resources/agents/handlers/lifecycle.ts'
import { agentRunHandlers } from './resources/agent-runs/handlers/run.ts'
import { agentUpkeepHandlers } from './resources/agents/handlers/upkeep.ts'
import { automationHandlers } from './resources/automations/handlers/automations.ts'
import { approvalHandlers } from './resources/approvals/handlers/approvals.ts'
import { connectionHandlers } from './resources/connections/handlers/connections.ts'
import { conversationHandlers } from './resources/conversations/handlers/conversations.ts'
import { messageHandlers } from './resources/conversations/handlers/messages.ts'
import { taskCommentHandlers } from './resources/task-comments/handlers/task-comments.ts'
import type { ResourceDependencies } from './resources/dependencies.ts'
import { deviceAdminHandlers } from './resources/devices/handlers/admin.ts'
import { deviceHandlers } from './resources/devices/handlers/devices.ts'
import { deviceInternalHandlers } from './resources/devices/handlers/internal.ts'
import { fileHandlers } from './resources/files/handlers/files.ts'
import { fileRelationHandlers } from './resources/files/handlers/relation.ts'
import { folderHandlers } from './resources/folders/handlers/folders.ts'
import { learningHandlers } from './resources/learnings/handlers/learnings.ts'
import { mcpServerHandlers } from './resources/mcp-servers/handlers/mcp-servers.ts'
import { memberHandlers } from './resources/members/handlers/members.ts'
import { pluginHandlers } from './resources/plugins/handlers/plugins.ts'
import { projectGrantHandlers } from './resources/projects/handlers/grant.ts'
import { resolutionEffects } from './resources/resolutions/handlers/effects.ts'
import { endWorkOf } from './resources/departures/steps/end-work.ts'
import { auditAgent } from './resources/agent-doctor/steps/doctor-facts.ts'
import type { AuditAgent } from './resources/agents/audit.ts'
import { projectHandlers } from './resources/projects/handlers/projects.ts'
import { questionHandlers } from './resources/questions/handlers/questions.ts'
import { sandboxHandlers } from './resources/sandboxes/handlers/sandboxes.ts'
import { secretHandlers } from './resources/secrets/handlers/secrets.ts'
import { skillHandlers } from './resources/skills/handlers/skills.ts'
import { skillRepoHandlers } from './resources/skills/handlers/repos.ts'
import { skillShareHandlers } from './resources/skills/handlers/shares.ts'
import { repoHandlers } from './resources/repos/handlers/repos.ts'
import { runEventHandlers } from './resources/runs/handlers/event.ts'
import { costHandlers } from './resources/runs/handlers/costs.ts'
import { runHandlers } from './resources/runs/handlers/runs.ts'
import { runRecordHandlers } from './resources/runs/handlers/record.ts'
import { runWhyHandlers } from './resources/runs/handlers/why.ts'
import { unassignTasks } from './resources/tasks/steps/assign.ts'
import { taskHandlers } from './resources/tasks/handlers/tasks.ts'
import { taskHistoryHandlers } from './resources/tasks/handlers/history.ts'
import { taskLinkHandlers } from './resources/tasks/handlers/link.ts'
import { mailHandlers } from './resources/mail/handlers/mail.ts'
import { taskWhyHandlers } from './resources/tasks/handlers/why.ts'
import { webhookHandlers } from './resources/webhooks/handlers/webhooks.ts'
import { wikiIngestHandlers } from './resources/wiki/handlers/ingest.ts'
import { wikiHandlers } from './resources/wiki/handlers/wiki.ts'
import { workflowHandlers } from './resources/workflows/handlers/workflows.ts'
import { workspaceContent } from './resources/workspace-content/handlers/content.ts'
import { workspaceActionHandlers } from './resources/workspaces/handlers/action.ts'
import { workspaceHandlers } from './resources/workspaces/handlers/workspaces.ts'

/** Every route of the contract with its handler, and the internal ones for devices and login tokens. */
export function implementResources(deps: ResourceDependencies): ImplementedRoute[] {
  const audit: AuditAgent = (db, subject, now) => auditAgent(db, subject, { ...deps, now })
  const content = workspaceContent()
  const routes: ImplementedRoute[] = [
    ...agentHandlers({ ...deps, audit }),
    ...agentConfigHandlers({ ...deps, audit }),
    ...agentLifecycleHandlers({ ...deps, audit }, unassignTasks),
    ...agentHistoryHandlers(),
    ...agentUpkeepHandlers({ ...deps, audit }),
    ...agentRunHandlers(deps),
    ...runHandlers(deps),
    ...runEventHandlers(deps),
    ...runRecordHandlers(deps),
    ...runWhyHandlers(deps),
    ...costHandlers(),
    ...deviceHandlers(deps),
    ...deviceAdminHandlers(),
    ...deviceInternalHandlers(deps),
    ...folderHandlers(deps),
    ...workspaceHandlers(deps, content),
    ...workspaceActionHandlers(deps, content),
    ...memberHandlers({ endWorkOf }),
    ...projectHandlers(),
    ...projectGrantHandlers(),
    ...taskHandlers(deps),
    ...taskLinkHandlers(),
    ...taskWhyHandlers(deps),
    ...taskHistoryHandlers(),
    ...repoHandlers(),
    ...sandboxHandlers(deps),
    ...automationHandlers(deps),
    ...workflowHandlers(deps),
    ...pullRequestHandlers(deps),
    ...conversationHandlers(deps),
    ...messageHandlers(),
    ...taskCommentHandlers(deps),
    ...authHandlers(),
    ...approvalHandlers(deps, resolutionEffects, () => routes),
    ...questionHandlers(deps),
    ...secretHandlers(deps),
    ...fileHandlers(deps),
    ...fileRelationHandlers(),
    ...wikiHandlers(deps),
    ...learningHandlers(),
    ...wikiIngestHandlers(deps),
    ...skillHandlers(deps),
    ...skillRepoHandlers(deps),
    ...skillShareHandlers(deps),
    ...connectionHandlers(deps),
    ...mcpServerHandlers(deps),
    ...pluginHandlers(deps),
    ...mailHandlers(deps),
    ...webhookHandlers(deps),
    // The server named in the document is the one it was read from.
    ...implementOpenApi(contract, '/'),
  ]
  return routes
}
