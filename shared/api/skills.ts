import { z } from 'zod'
import { platformChange } from './agents.ts'
import { agentRef } from './ids.ts'
import { limitParam, listOf, pageParams } from './paging.ts'
import { defineRoute, mebibyte, orPlatformChange } from './route.ts'
import {
  bundleInput,
  sentSourceTypes,
  skill,
  skillContent,
  skillKeys,
  skillOverride,
  skillRef,
  skillSourceTypes,
  skillSummary,
} from './skill-fields.ts'

// Skills: bundles of files led by SKILL.md, which the runs of agents have that they are on for.

export const skillParams = z.object({ skillId: skillRef })
export const skillPositionals = [{ name: 'skill', target: 'params.skillId' }] as const
export const exampleSkill = 'release-notes'
const positionals = skillPositionals
const bundled = { bodyLimit: 24 * mebibyte } as const
export const skillLookupErrors = ['skill_not_found', 'ambiguous_skill_ref'] as const
const bundleErrors = ['invalid_skill_bundle', 'skill_bundle_storage_failed'] as const
const changed = { 202: platformChange } as const
const agentOfSkill = z.object({ skillId: skillRef, agentId: agentRef })

const bundleFlags = {
  bundle: null,
  file: {
    repeatable: true,
    description: 'A file of the skill, as path:content; may be given several times.',
  },
  dir: { description: 'Instead: the folder whose files are those of the skill.' },
} as const
const agentFlag = {
  target: 'params.agentId',
  required: false,
  default: 'me',
  description: 'The agent: `agt_` id, @handle or name. Default: the calling agent.',
} as const

export const skillRoutes = {
  list: defineRoute({
    id: 'skills.list',
    endpoint: 'GET /skills',
    summary: 'List the skills of your workspace, newest install first',
    query: z.object({
      sort: z
        .enum(['-installedAt', 'installedAt'])
        .default('-installedAt')
        .describe('`installedAt`: the oldest install first.'),
      sourceType: z
        .enum([...skillSourceTypes, 'repo'])
        .optional()
        .describe('Where they are from; `repo`: those that were added from a git repository.'),
      plugin: z.string().min(1).max(200).optional().describe('Only those of this plugin: its id or name.'),
      enabledByDefault: z.boolean().optional().describe('Only those that are on, or off, for the workspace.'),
      q: z.string().max(200).optional().describe('Text in slug, name or description.'),
      ...pageParams,
    }),
    reply: listOf(skillSummary),
    cli: { command: 'skill list', example: 'svc skill list --q release' },
  }),

  create: defineRoute({
    id: 'skills.create',
    endpoint: 'POST /skills',
    summary: 'Add a skill; one that an agent adds is on for that agent alone',
    ...bundled,
    body: z
      .object({
        slug: skillKeys.slug,
        name: skillKeys.name,
        description: skillKeys.description.nullable().optional().describe('Default: what SKILL.md says.'),
        enabledByDefault: skillKeys.enabledByDefault
          .optional()
          .describe(
            'Whether agents without an override of their own have it. Default: true; false when an agent adds it.',
          ),
        source: z
          .object({
            type: z.enum(sentSourceTypes).default('imported').describe('Where it is from.'),
            label: z.string().max(200).nullable().optional().describe('The same in words.'),
          })
          .optional(),
        bundle: bundleInput,
      })
      .meta({ id: 'SkillCreate' }),
    reply: skill,
    status: 201,
    errors: [...bundleErrors, 'duplicate_skill_slug', 'agent_skill_default_forbidden'],
    cli: {
      command: 'skill create',
      flags: {
        ...bundleFlags,
        'source-type': { target: 'body.source.type', required: true },
        'source-label': { target: 'body.source.label' },
        source: null,
      },
      flow: true,
      example:
        'svc skill create --slug release-notes --name "Release notes" --source-type imported --file "SKILL.md:Write one line for each change."',
    },
  }),

  get: defineRoute({
    id: 'skills.get',
    endpoint: 'GET /skills/{skillId}',
    summary: 'Read one skill: its files without their contents, its source, its latest share link',
    params: skillParams,
    query: z.object({
      expand: z
        .array(z.enum(['plugin']))
        .optional()
        .describe('What to add: its plugin, which is given anyway.'),
    }),
    reply: skill,
    errors: skillLookupErrors,
    cli: { command: 'skill get', positionals, example: `svc skill get ${exampleSkill}` },
  }),

  update: defineRoute({
    id: 'skills.update',
    endpoint: 'PATCH /skills/{skillId}',
    summary: 'Change name or description of a skill, or whether it is on for the workspace',
    callers: orPlatformChange,
    params: skillParams,
    body: z
      .object({
        name: skillKeys.name,
        description: skillKeys.description.nullable(),
        enabledByDefault: skillKeys.enabledByDefault,
      })
      .partial()
      .meta({ id: 'SkillUpdate' }),
    reply: skill,
    otherReplies: changed,
    errors: [...skillLookupErrors, 'platform_change_requires_run', 'skill_replace_forbidden', 'skill_plugin_disabled'],
    cli: {
      command: 'skill update',
      positionals,
      example: `svc skill update ${exampleSkill} --enabled-by-default false`,
    },
  }),

  delete: defineRoute({
    id: 'skills.delete',
    endpoint: 'DELETE /skills/{skillId}',
    summary: 'Delete a skill that belongs to no plugin and is not built in',
    callers: orPlatformChange,
    params: skillParams,
    otherReplies: changed,
    errors: [
      ...skillLookupErrors,
      'platform_change_requires_run',
      'skill_replace_forbidden',
      'builtin_skill_delete_forbidden',
    ],
    cli: { command: 'skill delete', asks: true, positionals, example: `svc skill delete ${exampleSkill}` },
  }),

  replaceBundle: defineRoute({
    id: 'skills.replaceBundle',
    endpoint: 'POST /skills/{skillId}/replace-bundle',
    summary: 'Give a skill other files in place of all that it has',
    callers: orPlatformChange,
    ...bundled,
    params: skillParams,
    body: z.object({ bundle: bundleInput }).meta({ id: 'SkillReplaceBundle' }),
    reply: skill,
    otherReplies: changed,
    errors: [...skillLookupErrors, ...bundleErrors, 'platform_change_requires_run', 'skill_replace_forbidden'],
    cli: {
      command: 'skill replace-bundle',
      positionals,
      flags: bundleFlags,
      flow: true,
      example: `svc skill replace-bundle ${exampleSkill} --file "SKILL.md:Write two lines for each change."`,
    },
  }),

  content: defineRoute({
    id: 'skills.files.content',
    endpoint: 'GET /skills/{skillId}/files/content',
    summary: 'Read one file of a skill, up to its first MiB',
    params: skillParams,
    query: z.object({ path: z.string().min(1).max(4_096).describe('The file, as `files` of the skill names it.') }),
    reply: skillContent,
    errors: [...skillLookupErrors, 'skill_file_not_found', 'skill_bundle_storage_failed'],
  }),

  overrides: defineRoute({
    id: 'skills.agents.list',
    endpoint: 'GET /skills/agents/{agentId}',
    summary: 'List all skills with whether an agent has them, newest install first',
    params: z.object({ agentId: agentRef }),
    query: z.object({ ...pageParams, limit: limitParam({ max: 100, default: 100 }) }),
    reply: listOf(skillOverride),
    errors: ['skill_not_found'],
    cli: {
      command: 'skill agent-overrides',
      flags: { agent: agentFlag },
      example: 'svc skill agent-overrides --agent @reviewer',
    },
  }),

  setOverride: defineRoute({
    id: 'skills.agents.set',
    endpoint: 'PUT /skills/{skillId}/agents/{agentId}',
    summary: 'Turn a skill on or off for one agent; an agent does so only for itself',
    params: agentOfSkill,
    body: z
      .object({ enabled: z.boolean().describe('Whether the agent has it, whatever the workspace says.') })
      .meta({ id: 'SkillOverrideSet' }),
    reply: skillOverride,
    errors: [...skillLookupErrors, 'agent_self_only', 'skill_plugin_disabled'],
    cli: {
      command: 'skill set-agent-override',
      positionals,
      flags: { agent: agentFlag },
      example: `svc skill set-agent-override ${exampleSkill} --agent @reviewer --enabled true`,
    },
  }),

  clearOverride: defineRoute({
    id: 'skills.agents.clear',
    endpoint: 'DELETE /skills/{skillId}/agents/{agentId}',
    summary: 'Have an agent follow the workspace again with a skill; an agent does so only for itself',
    params: agentOfSkill,
    errors: [...skillLookupErrors, 'agent_self_only'],
    cli: {
      command: 'skill clear-agent-override',
      positionals,
      flags: { agent: agentFlag },
      example: `svc skill clear-agent-override ${exampleSkill} --agent @reviewer`,
    },
  }),
} as const
