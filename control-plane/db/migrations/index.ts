import type { Migration } from './migration.ts'
import { foundation } from './001-foundation.ts'
import { platformChanges } from './002-platform-changes.ts'
import { projects } from './003-projects.ts'
import { signIn } from './004-sign-in.ts'
import { agentHistory } from './005-agent-history.ts'
import { wakes } from './006-wakes.ts'
import { tasksMigration } from './007-tasks.ts'
import { conversations } from './008-conversations.ts'
import { gates } from './009-gates.ts'
import { automations } from './010-automations.ts'
import { outputSchemas } from './011-output-schemas.ts'
import { frameCompression } from './012-frame-compression.ts'
import { deviceIds } from './013-device-ids.ts'
import { trust } from './014-trust.ts'
import { sessionUse } from './015-session-use.ts'
import { quotas } from './016-quotas.ts'
import { commandProtocol } from './017-command-protocol.ts'
import { providerFailures } from './018-provider-failures.ts'
import { compactions } from './019-idle-compaction.ts'
import { workflows } from './020-workflows.ts'
import { files } from './021-files.ts'
import { wiki } from './022-wiki.ts'
import { searchMigration } from './023-search.ts'
import { learnings } from './024-learnings.ts'
import { questionWaits } from './025-question-waits.ts'
import { wikiSources } from './026-wiki-sources.ts'
import { skillFolders } from './027-skill-folders.ts'
import { conversationActivity } from './028-conversation-activity.ts'
import { waitedBranches } from './029-waited-branches.ts'
import { evidenceOfDevice } from './030-evidence-of-device.ts'
import { whoAsked } from './031-who-asked.ts'
import { hostNames } from './032-host-names.ts'
import { toldChanges } from './033-told-changes.ts'
import { narrowIndexes } from './034-narrow-indexes.ts'
import { unassignments } from './035-unassignments.ts'
import { removals } from './036-removals.ts'
import { harnessVersions } from './037-harness-versions.ts'
import { skills } from './038-skills.ts'
import { skillDescriptions } from './039-skill-descriptions.ts'
import { connections } from './040-connections.ts'
import { mcpServers } from './042-mcp-servers.ts'
import { connectionClients } from './043-connection-clients.ts'
import { plugins } from './045-plugins.ts'
import { connectedBy } from './047-connected-by.ts'
import { builtinSkills } from './048-builtin-skills.ts'
import { sandboxes } from './049-sandboxes.ts'
import { sandboxNetwork } from './050-sandbox-network.ts'
import { connectionWithdrawals } from './051-connection-withdrawals.ts'
import { sandboxRepos } from './052-sandbox-repos.ts'
import { wallsAndVolumes } from './053-walls-and-volumes.ts'
import { cloudAndBilling } from './054-cloud-and-billing.ts'
import { secretsInSandboxes } from './055-secrets-in-sandboxes.ts'
import { warmSandboxes } from './056-warm-sandboxes.ts'
import { runSpans } from './057-run-spans.ts'
import { webhooks } from './058-webhooks.ts'
import { mail } from './059-mail.ts'
import { retention } from './060-retention.ts'
import { quotaSince } from './061-quota-since.ts'
import { limitsUsed } from './062-limits-used.ts'

/** The migrations in the order of their numbers; a released one is never changed. */
export const migrations: readonly Migration[] = [
  foundation,
  platformChanges,
  projects,
  signIn,
  agentHistory,
  wakes,
  tasksMigration,
  conversations,
  gates,
  automations,
  outputSchemas,
  frameCompression,
  deviceIds,
  trust,
  sessionUse,
  quotas,
  commandProtocol,
  providerFailures,
  compactions,
  workflows,
  files,
  wiki,
  searchMigration,
  learnings,
  questionWaits,
  wikiSources,
  skillFolders,
  conversationActivity,
  waitedBranches,
  evidenceOfDevice,
  whoAsked,
  hostNames,
  toldChanges,
  narrowIndexes,
  unassignments,
  removals,
  harnessVersions,
  skills,
  skillDescriptions,
  connections,
  mcpServers,
  connectionClients,
  plugins,
  connectedBy,
  builtinSkills,
  sandboxes,
  sandboxNetwork,
  connectionWithdrawals,
  sandboxRepos,
  wallsAndVolumes,
  cloudAndBilling,
  secretsInSandboxes,
  warmSandboxes,
  runSpans,
  webhooks,
  mail,
  retention,
  quotaSince,
  limitsUsed,
]
