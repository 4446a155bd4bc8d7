import { z } from 'zod'
import { agentConfigPatch, agentSettings, configRevision } from './agent-config.ts'
import { agentMdText, agentParams, agentPositional, ownAgentPositional, platformChange } from './agents.ts'
import { agentId, agentRef, timestamp, uuid } from './ids.ts'
import { listOf, pageParams } from './paging.ts'
import { defineRoute } from './route.ts'

/**
 * `rule`: permission rules alone; `skill`: its skill folders alone; `config`: other settings or AGENT.md, also together with
 * those; `sessions`: its sessions were reset.
 */
export const historyKinds = ['config', 'skill', 'rule', 'sessions'] as const
export type HistoryKind = (typeof historyKinds)[number]

export const agentHistoryEntry = z
  .object({
    object: z.literal('agent_history_entry'),
    id: uuid,
    agentId,
    kind: z.enum(historyKinds),
    changedKeys: z.array(z.string()),
    description: z.string(),
    changedBy: z.string().nullable().describe('`usr_` or `agt_` id.'),
    isRevertible: z.boolean().describe('Whether this kind of change can be undone.'),
    revisionId: uuid.nullable().describe('The revision with the values; null of a `sessions` entry.'),
    revertedEntryId: uuid.nullable().describe('The entry that this one undid.'),
    createdAt: timestamp,
  })
  .meta({ id: 'AgentHistoryEntry' })
export type AgentHistoryEntry = z.infer<typeof agentHistoryEntry>

/** The settings in a revision, as far as this version knows them. */
export const revisedConfig = agentConfigPatch.extend({ agentMd: agentMdText.optional() })
export type RevisedConfig = z.infer<typeof revisedConfig>

const revisionParams = agentParams.extend({ revisionId: uuid.describe('UUID of a revision.') })
const revisionPositionals = [agentPositional, { name: 'revision', target: 'params.revisionId' }] as const
const exampleId = '5b0c7d0e-6a7e-4b52-9a8e-2f9d1c3e4a6b'
const writeErrors = ['agent_self_only', 'folder_requires_device_environment'] as const

export const agentHistoryRoutes = {
  revisionsList: defineRoute({
    id: 'agents.revisions.list',
    endpoint: 'GET /agents/{agentId}/revisions',
    summary: "List the revisions of an agent's settings, newest first",
    params: agentParams,
    query: z.object(pageParams),
    reply: listOf(configRevision),
    errors: ['agent_self_only'],
    cli: {
      command: 'agent revision list',
      positionals: [ownAgentPositional],
      example: 'svc agent revision list @builder',
    },
  }),

  revisionsGet: defineRoute({
    id: 'agents.revisions.get',
    endpoint: 'GET /agents/{agentId}/revisions/{revisionId}',
    summary: "Read one revision of an agent's settings",
    params: revisionParams,
    reply: configRevision,
    errors: ['agent_self_only'],
    cli: {
      command: 'agent revision get',
      positionals: revisionPositionals,
      example: `svc agent revision get @builder ${exampleId}`,
    },
  }),

  revisionsRollback: defineRoute({
    id: 'agents.revisions.rollback',
    endpoint: 'POST /agents/{agentId}/revisions/{revisionId}/rollback',
    summary: "Set an agent's settings and AGENT.md as they were after this revision",
    description:
      'Stores a new revision. An agent rolls back only itself, and waits for approval (202) when more changes than it may change by itself.',
    params: revisionParams,
    reply: agentSettings.extend({ revision: configRevision }),
    otherReplies: { 202: platformChange },
    errors: [...writeErrors, 'platform_change_requires_run'],
    plainErrors: ['plain.revision_matches'],
    cli: {
      command: 'agent revision rollback',
      positionals: revisionPositionals,
      example: `svc agent revision rollback @builder ${exampleId}`,
    },
  }),

  historyList: defineRoute({
    id: 'agents.history.list',
    endpoint: 'GET /agents/{agentId}/history',
    summary: 'List what was changed about an agent, newest first',
    params: agentParams,
    query: z.object({
      kind: z.array(z.enum(historyKinds)).optional().describe('Only changes of these kinds.'),
      ...pageParams,
    }),
    reply: listOf(agentHistoryEntry),
    errors: ['agent_self_only'],
    cli: {
      command: 'agent history',
      positionals: [ownAgentPositional],
      example: 'svc agent history @builder --kind config',
    },
  }),

  historyRevert: defineRoute({
    id: 'agents.history.revert',
    endpoint: 'POST /agents/{agentId}/history/{entryId}/revert',
    summary: 'Undo one change of an agent; what was changed since in other settings stays',
    description:
      'Undoing is a change of its own. A person may write `me` for the agent: then it is the one the entry is about. An agent undoes only changes of its own settings, and only of those it may change by itself.',
    params: z.object({ agentId: agentRef, entryId: uuid.describe('UUID of a history entry.') }),
    reply: agentSettings.extend({
      entry: agentHistoryEntry.nullable().describe('null when there was nothing to undo.'),
    }),
    errors: [...writeErrors, 'agent_config_human_only', 'config_revert_unsupported'],
    cli: {
      command: 'agent revert',
      positionals: [{ name: 'entryId', target: 'params.entryId' }],
      flags: { agent: { target: 'params.agentId', default: 'me', description: "The agent. Default: the entry's." } },
      example: `svc agent revert ${exampleId}`,
    },
  }),
} as const
