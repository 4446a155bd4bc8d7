import { agentConfigFacts } from './agent-config.ts'
import { agentHistoryFacts } from './agent-history.ts'
import { agentLifecycleFacts } from './agent-lifecycle.ts'
import { agentRunFacts } from './agent-runs.ts'
import { agentUpkeepFacts } from './agent-upkeep.ts'
import { agentFacts } from './agents.ts'
import { approvalFacts } from './approvals.ts'
import { automationFacts } from './automations.ts'
import { costFacts } from './costs.ts'
import { connectionFacts } from './connections.ts'
import { conversationFacts } from './conversations.ts'
import { deviceFacts } from './devices.ts'
import { fileRelationFacts } from './file-relations.ts'
import { fileFacts } from './files.ts'
import { folderFacts } from './folders.ts'
import { learningFacts } from './learnings.ts'
import { mcpServerFacts } from './mcp-servers.ts'
import { memberFacts } from './members.ts'
import { messageFacts } from './messages.ts'
import { openapiFacts } from './openapi.ts'
import { pluginFacts } from './plugins.ts'
import { projectGrantFacts } from './project-grants.ts'
import { projectFacts } from './projects.ts'
import { pullRequestFacts } from './pull-requests.ts'
import { questionFacts } from './questions.ts'
import { repoFacts } from './repos.ts'
import { runEventFacts } from './run-events.ts'
import { runRecordFacts } from './run-records.ts'
import { runWhyFacts } from './run-why.ts'
import { runFacts } from './runs.ts'
import { sandboxFacts } from './sandboxes.ts'
import { secretFacts } from './secrets.ts'
import { skillShareFacts } from './skill-shares.ts'
import { skillRepoFacts } from './skill-repos.ts'
import { skillFacts } from './skills.ts'
import { taskCommentFacts } from './task-comments.ts'
import { taskHistoryFacts } from './task-history.ts'
import { taskLinkFacts } from './task-links.ts'
import { taskWhyFacts } from './task-why.ts'
import { taskFacts } from './tasks.ts'
import { mailFacts } from './mail.ts'
import { webhookFacts } from './webhooks.ts'
import { wikiIngestFacts } from './wiki-ingest.ts'
import { wikiFacts } from './wiki.ts'
import { workflowFacts } from './workflows.ts'
import { workspaceActionFacts } from './workspace-actions.ts'
import { workspaceFacts } from './workspaces.ts'
import type { groups } from '../../../shared/api/index.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

/** The facts of each group of routes, in the order of the contract. */
export const allFacts: Readonly<Record<keyof typeof groups, ResourceFacts>> = {
  agents: agentFacts,
  agentConfig: agentConfigFacts,
  agentLifecycle: agentLifecycleFacts,
  agentHistory: agentHistoryFacts,
  agentUpkeep: agentUpkeepFacts,
  agentRuns: agentRunFacts,
  runs: runFacts,
  runEvents: runEventFacts,
  runRecords: runRecordFacts,
  runWhy: runWhyFacts,
  costs: costFacts,
  devices: deviceFacts,
  folders: folderFacts,
  workspaces: workspaceFacts,
  workspaceActions: workspaceActionFacts,
  members: memberFacts,
  projects: projectFacts,
  projectGrants: projectGrantFacts,
  tasks: taskFacts,
  taskLinks: taskLinkFacts,
  taskHistory: taskHistoryFacts,
  taskWhy: taskWhyFacts,
  repos: repoFacts,
  automations: automationFacts,
  workflows: workflowFacts,
  pullRequests: pullRequestFacts,
  approvals: approvalFacts,
  questions: questionFacts,
  secrets: secretFacts,
  conversations: conversationFacts,
  messages: messageFacts,
  taskComments: taskCommentFacts,
  files: fileFacts,
  fileRelations: fileRelationFacts,
  wiki: wikiFacts,
  learnings: learningFacts,
  wikiIngest: wikiIngestFacts,
  skills: skillFacts,
  skillRepos: skillRepoFacts,
  skillShares: skillShareFacts,
  connections: connectionFacts,
  mcpServers: mcpServerFacts,
  plugins: pluginFacts,
  sandboxes: sandboxFacts,
  mail: mailFacts,
  webhooks: webhookFacts,
  openapi: openapiFacts,
}
