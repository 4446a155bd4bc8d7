import { z } from 'zod'
import { toolPermissionModes, toolRule } from '../runs/spec.ts'
import { agentMdText, agentParams, agentWarning, ownAgentPositional, platformChange, runtimeFields } from './agents.ts'
import { agentId, timestamp, uuid } from './ids.ts'
import { defineRoute } from './route.ts'
import { fileFlag } from './command.ts'

export const capabilities = ['manage_agents', 'manage_projects', 'manage_runs', 'manage_secrets'] as const

const triggers = {
  wakeOnAssignment: z.boolean().describe('Wake when a task is assigned to it.'),
  wakeOnHook: z.boolean().describe('Wake on a webhook.'),
}
const rules = z.array(toolRule).max(500)
const tools = {
  allow: rules.describe('Tools that run without asking.'),
  ask: rules.describe('Tools a person is asked for.'),
  deny: rules.describe('Tools that never run.'),
  defaultMode: z.enum(toolPermissionModes).nullable().describe('For all other tools; null inherits.'),
}
const capabilityList = z.array(z.enum(capabilities)).max(capabilities.length)

export const agentConfig = z
  .object({
    runtime: z.object({ ...runtimeFields, triggers: z.object(triggers) }),
    permissions: z.object({ tools: z.object(tools), capabilities: capabilityList }),
  })
  .meta({ id: 'AgentConfig' })
export type AgentConfig = z.infer<typeof agentConfig>

/** Present keys are written, null inherits, and absent keys stay as they are. */
export const agentConfigPatch = z
  .object({
    runtime: z.object({ ...runtimeFields, triggers: z.object(triggers).partial() }).partial(),
    permissions: z
      .object({
        tools: z.object(tools).partial(),
        capabilities: capabilityList.describe('What the agent may manage.'),
      })
      .partial(),
  })
  .partial()
  .meta({ id: 'AgentConfigPatch' })
export type AgentConfigPatch = z.infer<typeof agentConfigPatch>

/** The lists of permission rules, by what they do to a call. */
export type PermissionList = 'allow' | 'ask' | 'deny'
const ruleAdditions = z
  .object({
    allow: rules.nullable().describe('Rules to add to the allow list; null empties it.'),
    ask: rules.nullable().describe('Rules to add to the ask list; null empties it.'),
    deny: rules.nullable().describe('Rules to add to the deny list; null empties it.'),
  })
  .partial()
export type RuleAdditions = z.infer<typeof ruleAdditions>
const ruleRemovals = z
  .object({
    allow: rules.describe('Rules to take from the allow list.'),
    ask: rules.describe('Rules to take from the ask list.'),
    deny: rules.describe('Rules to take from the deny list.'),
  })
  .partial()
export type RuleRemovals = z.infer<typeof ruleRemovals>

const agentMdHash = z.string().max(128)

export const agentSettings = z
  .object({
    config: agentConfig,
    agentMd: z.string(),
    agentMdHash: agentMdHash.describe('SHA-256 (hex) of agentMd; send it back when you save AGENT.md.'),
    slug: z.string().describe('The handle without the @.'),
  })
  .meta({ id: 'AgentSettings' })

export const configRevision = z
  .object({
    id: uuid,
    agentId,
    beforeConfig: z.record(z.string(), z.unknown()),
    afterConfig: z.record(z.string(), z.unknown()),
    changedKeys: z.array(z.string()),
    changeDescription: z.string(),
    source: z.enum(['patch', 'rollback']),
    createdAt: timestamp,
  })
  .meta({ id: 'ConfigRevision' })
export type ConfigRevision = z.infer<typeof configRevision>

export const agentIdentity = z
  .object({
    agentMd: z.string(),
    agentMdHash,
    rules: z.array(z.string()).describe('Rules every run of the agent reads.'),
  })
  .meta({ id: 'AgentIdentity' })

const configFlag = (path: string) => ({ target: `body.config.${path}` }) as const
/** Rules are added one by one; what replaces a whole list says so by its name. */
const listFlags = <List extends PermissionList>(list: List) => ({
  [list]: {
    target: `body.addRules.${list}`,
    kind: 'string',
    description: `Rule to add to the ${list} list; \`none\` empties it.`,
  } as const,
  [`remove-${list}`]: {
    target: `body.removeRules.${list}`,
    kind: 'string',
    description: `Rule to take from the ${list} list.`,
  } as const,
  [`replace-${list}`]: {
    ...configFlag(`permissions.tools.${list}`),
    kind: 'string',
    description: `Rule of a new ${list} list, instead of all that it has.`,
  } as const,
})
const configCommand = configFlag('runtime.command')

export const agentConfigRoutes = {
  configGet: defineRoute({
    id: 'agents.config.get',
    endpoint: 'GET /agents/{agentId}/config',
    summary: "Read an agent's settings and AGENT.md",
    params: agentParams,
    reply: agentSettings,
    errors: ['agent_self_only'],
    cli: { command: 'agent config get', positionals: [ownAgentPositional], example: 'svc agent config get @builder' },
  }),

  configPut: defineRoute({
    id: 'agents.config.put',
    endpoint: 'PUT /agents/{agentId}/config',
    summary: "Change an agent's settings, its AGENT.md, or both",
    description:
      'Keys that are present are written, null inherits, absent keys stay. An agent changes only its own AGENT.md, model, backupModel, reasoningEffort, sandboxSize, harness, fallbackHarness and maxTurns; another change of its own waits for approval (202). A list of rules in `config` replaces the one that is there; `removeRules` and then `addRules` change it rule by rule, also at the same time as others do.',
    params: agentParams,
    body: z.object({
      config: agentConfigPatch.optional(),
      addRules: ruleAdditions.optional().describe('Permission rules to add; the others stay.'),
      removeRules: ruleRemovals.optional().describe('Permission rules to take away; each must be there.'),
      agentMd: agentMdText.optional(),
      agentMdHash: agentMdHash.optional().describe('Hash of the AGENT.md you read; an agent must send it.'),
    }),
    reply: agentSettings.extend({
      revision: configRevision.nullable().describe('null when nothing changed.'),
      audit: z.array(agentWarning).describe('What the agent doctor finds now.'),
    }),
    otherReplies: { 202: platformChange },
    errors: ['folder_requires_device_environment', 'agent_self_only', 'agent_md_stale', 'platform_change_requires_run'],
    cli: {
      command: 'agent config set',
      positionals: [ownAgentPositional],
      flags: {
        model: configFlag('runtime.model'),
        'backup-model': configFlag('runtime.backupModel'),
        effort: configFlag('runtime.reasoningEffort'),
        'max-turns': configFlag('runtime.maxTurns'),
        'monthly-budget-cents': configFlag('runtime.monthlyBudgetCents'),
        harness: configFlag('runtime.harness'),
        'fallback-harness': configFlag('runtime.fallbackHarness'),
        environment: configFlag('runtime.environment'),
        'sandbox-size': configFlag('runtime.sandboxSize'),
        command: { ...configCommand, kind: 'string' },
        'command-json': { ...configCommand, kind: 'json', description: 'The same as a JSON array of arguments.' },
        protocol: configFlag('runtime.protocol'),
        'skill-folder': configFlag('runtime.skillFolders'),
        'wake-on-assignment': configFlag('runtime.triggers.wakeOnAssignment'),
        'wake-on-hook': configFlag('runtime.triggers.wakeOnHook'),
        mode: configFlag('permissions.tools.defaultMode'),
        ...listFlags('allow'),
        ...listFlags('ask'),
        ...listFlags('deny'),
        capability: configFlag('permissions.capabilities'),
        'agent-md-file': fileFlag('body.agentMd', 'the AGENT.md text'),
      },
      example: 'svc agent config set @builder --model claude-opus-4-5 --max-turns 200',
    },
  }),

  identityGet: defineRoute({
    id: 'agents.identity.get',
    endpoint: 'GET /agents/{agentId}/identity',
    summary: "Read an agent's AGENT.md, its hash and its rules",
    params: agentParams,
    reply: agentIdentity,
    cli: {
      command: 'agent identity',
      positionals: [ownAgentPositional],
      print: { stdout: 'agentMd', stderr: 'agentMdHash' },
      example: 'svc agent identity > AGENT.md',
    },
  }),

  identityPutAgentMd: defineRoute({
    id: 'agents.identity.putAgentMd',
    endpoint: 'PUT /agents/{agentId}/identity/agent-md',
    summary: "Replace an agent's AGENT.md",
    params: agentParams,
    body: z.object({
      agentMd: agentMdText,
      agentMdHash: agentMdHash.optional().describe('Hash of the AGENT.md you read; an agent must send it.'),
    }),
    reply: agentIdentity,
    errors: ['agent_self_only', 'agent_md_stale'],
    cli: null,
  }),
} as const
