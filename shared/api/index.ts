import { agentConfigRoutes } from './agent-config.ts'
import { agentHistoryRoutes } from './agent-history.ts'
import { agentLifecycleRoutes } from './agent-lifecycle.ts'
import { agentRunRoutes } from './agent-runs.ts'
import { agentUpkeepRoutes } from './agent-upkeep.ts'
import { agentRoutes } from './agents.ts'
import { approvalRoutes } from './approvals.ts'
import { automationRoutes } from './automations.ts'
import { costRoutes } from './costs.ts'
import { connectionRoutes } from './connections.ts'
import { conversationRoutes } from './conversations.ts'
import { messageRoutes } from './messages.ts'
import { taskCommentRoutes } from './task-comments.ts'
import { deviceRoutes } from './devices.ts'
import { fileRelationRoutes } from './file-relations.ts'
import { fileRoutes } from './files.ts'
import { folderRoutes } from './folders.ts'
import { learningRoutes } from './learnings.ts'
import { mcpServerRoutes } from './mcp-servers.ts'
import { memberRoutes } from './members.ts'
import { openapiRoutes } from './openapi.ts'
import { pluginRoutes } from './plugins.ts'
import { projectGrantRoutes } from './project-grants.ts'
import { projectRoutes } from './projects.ts'
import { pullRequestRoutes } from './pull-requests.ts'
import { repoRoutes } from './repos.ts'
import { questionRoutes } from './questions.ts'
import type { AnyRoute } from './route.ts'
import { runEventRoutes } from './run-events.ts'
import { runRecordRoutes } from './run-records.ts'
import { runWhyRoutes } from './run-why.ts'
import { runRoutes } from './runs.ts'
import { skillRepoRoutes } from './skill-repos.ts'
import { skillShareRoutes } from './skill-shares.ts'
import { skillRoutes } from './skills.ts'
import { taskHistoryRoutes } from './task-history.ts'
import { taskLinkRoutes } from './task-links.ts'
import { taskRoutes } from './tasks.ts'
import { taskWhyRoutes } from './task-why.ts'
import { sandboxRoutes } from './sandboxes.ts'
import { secretRoutes } from './secrets.ts'
import { mailRoutes } from './mail.ts'
import { webhookRoutes } from './webhooks.ts'
import { wikiIngestRoutes } from './wiki-ingest.ts'
import { wikiRoutes } from './wiki.ts'
import { workflowRoutes } from './workflows.ts'
import { workspaceActionRoutes } from './workspace-actions.ts'
import { workspaceRoutes } from './workspaces.ts'

/** The routes by the file that describes them. `implement` takes one group, or several spread together. */
export const groups = {
  agents: agentRoutes,
  agentConfig: agentConfigRoutes,
  agentLifecycle: agentLifecycleRoutes,
  agentHistory: agentHistoryRoutes,
  agentUpkeep: agentUpkeepRoutes,
  agentRuns: agentRunRoutes,
  runs: runRoutes,
  runEvents: runEventRoutes,
  runRecords: runRecordRoutes,
  runWhy: runWhyRoutes,
  costs: costRoutes,
  devices: deviceRoutes,
  folders: folderRoutes,
  workspaces: workspaceRoutes,
  workspaceActions: workspaceActionRoutes,
  members: memberRoutes,
  projects: projectRoutes,
  projectGrants: projectGrantRoutes,
  tasks: taskRoutes,
  taskLinks: taskLinkRoutes,
  taskHistory: taskHistoryRoutes,
  taskWhy: taskWhyRoutes,
  repos: repoRoutes,
  automations: automationRoutes,
  workflows: workflowRoutes,
  pullRequests: pullRequestRoutes,
  approvals: approvalRoutes,
  questions: questionRoutes,
  secrets: secretRoutes,
  conversations: conversationRoutes,
  messages: messageRoutes,
  taskComments: taskCommentRoutes,
  files: fileRoutes,
  fileRelations: fileRelationRoutes,
  wiki: wikiRoutes,
  learnings: learningRoutes,
  wikiIngest: wikiIngestRoutes,
  skills: skillRoutes,
  skillRepos: skillRepoRoutes,
  skillShares: skillShareRoutes,
  connections: connectionRoutes,
  mcpServers: mcpServerRoutes,
  plugins: pluginRoutes,
  sandboxes: sandboxRoutes,
  mail: mailRoutes,
  webhooks: webhookRoutes,
  openapi: openapiRoutes,
} as const

export const contract: readonly AnyRoute[] = Object.values(groups).flatMap(
  (group) => Object.values(group) as AnyRoute[],
)
