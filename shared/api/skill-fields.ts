import { z } from 'zod'
import { bundleLimits } from '../lib/bundle-path.ts'
import { unavailableReasons } from '../runs/skills.ts'
import { timestamp } from './ids.ts'
import { refersTo } from './references.ts'

// Skills as clients write and read them.

export const skillSourceTypes = ['builtin', 'imported', 'shared', 'marketplace', 'plugin'] as const
export type SkillSourceType = (typeof skillSourceTypes)[number]
/** `builtin` and `plugin` are what the server and plugins bring. */
export const sentSourceTypes = ['imported', 'shared', 'marketplace'] as const

export const skillLimits = {
  files: bundleLimits.files,
  /** The size of all files together, decoded. */
  totalBytes: bundleLimits.totalBytes,
  /** The size of SKILL.md, which an agent reads whole. */
  instructionBytes: 1_048_576,
  slug: 64,
  name: 256,
  description: 1_024,
  previewBytes: 1_048_576,
} as const

/** The file with which a skill begins. */
export const skillFile = 'SKILL.md'
/** Other routes stand at `/skills/agents` and `/skills/shared`. */
const reservedSlugs: readonly string[] = ['agents', 'shared']

export const skillId = z
  .string()
  .regex(/^[0-9A-Za-z]{16}$/, 'must be an id such as 4kT9wQ2zNb6Kc3Xv')
  .meta({ example: '4kT9wQ2zNb6Kc3Xv' })
export const skillRef = refersTo(
  z.string().min(1).max(200).describe('A skill: its id or its slug.'),
  'skill',
  'an id such as 4kT9wQ2zNb6Kc3Xv, or a slug',
)
export const skillShareId = z
  .string()
  .regex(/^shr_[0-9A-Za-z]{16}$/, 'must be a `shr_` id')
  .meta({ example: 'shr_8cN3jH6wLzR1pX7s' })

export const skillKeys = {
  slug: z
    .string()
    .regex(/^[a-z0-9_-]{1,64}$/, 'must be 1 to 64 characters of a-z, 0-9, _ and -')
    .refine((slug) => !reservedSlugs.includes(slug), `must be none of ${reservedSlugs.join(', ')}`)
    .describe('Up to 64 characters of a-z, 0-9, _ and -; unique in the workspace.'),
  name: z
    .string()
    .trim()
    .min(1)
    .max(skillLimits.name)
    .regex(/^\P{Cc}*$/u, 'no control characters')
    .describe('Its name.'),
  description: z.string().max(skillLimits.description).describe('What it is for, and when to use it.'),
  enabledByDefault: z.boolean().describe('Whether agents without an override of their own have it.'),
} as const

export const bundleFile = z
  .object({
    path: z.string().max(4_096).describe('Below the folder of the skill, with / between its parts.'),
    content: z.string().optional().describe('Its text; either this or `contentBase64`.'),
    contentBase64: z.string().optional().describe('Its bytes, as base64 with padding.'),
    executable: z.boolean().default(false).describe('Whether it may be run as a program.'),
  })
  .meta({ id: 'BundleFile' })
export type BundleFileInput = z.infer<typeof bundleFile>

export const bundleInput = z
  .object({
    files: z
      .array(bundleFile)
      .describe(
        `At most ${skillLimits.files}, with ${skillFile} among them; a bad bundle is \`invalid_skill_bundle\`.`,
      ),
  })
  .meta({ id: 'SkillBundle' })

const pluginOfSkill = z
  .object({ id: z.string().describe('`plug_` id.'), name: z.string(), enabled: z.boolean() })
  .meta({ id: 'PluginOfSkill' })

const shownFile = z
  .object({
    path: z.string(),
    kind: z.enum(['instruction', 'reference']).describe(`\`instruction\`: ${skillFile}.`),
    sizeBytes: z.number().int(),
    executable: z.boolean(),
  })
  .meta({ id: 'ShownSkillFile' })
export type ShownSkillFile = z.infer<typeof shownFile>

export const skillSummary = z
  .object({
    object: z.literal('skill'),
    id: skillId,
    slug: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    version: z.number().int().describe('From 1; one more with each bundle that replaces the one before.'),
    sourceType: z.enum(skillSourceTypes),
    enabledByDefault: z.boolean(),
    fileCount: z.number().int(),
    totalBytes: z.number().int(),
    skillMdTokenCount: z.number().int().nullable().describe(`About how many tokens ${skillFile} has.`),
    plugin: pluginOfSkill.nullable().describe('The plugin that it belongs to.'),
    unavailableReason: z
      .enum(unavailableReasons)
      .nullable()
      .describe('Why a run could not have it; null again once a run has it.'),
    installedAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'SkillSummary' })
export type SkillSummary = z.infer<typeof skillSummary>

export const skill = skillSummary
  .extend({
    namespace: z.string().nullable().describe('That of its plugin.'),
    bundleHash: z.string().describe('SHA-256 over the sorted list of its files.'),
    activation: z.object({
      description: z.string().nullable().describe('By which a model knows when to use it.'),
      allowedTools: z.array(z.string()).describe(`As ${skillFile} says; it allows nothing.`),
    }),
    files: z.array(shownFile),
    source: z.object({ type: z.enum(skillSourceTypes), label: z.string().nullable() }),
    share: z.object({ isShareable: z.boolean(), latestShareId: skillShareId.nullable() }),
  })
  .meta({ id: 'Skill' })
export type Skill = z.infer<typeof skill>

export const skillContent = z
  .object({
    object: z.literal('skill_file'),
    path: z.string(),
    kind: shownFile.shape.kind,
    sizeBytes: z.number().int(),
    executable: z.boolean(),
    content: z.string().nullable().describe('Its text; null when it is none.'),
    contentBase64: z.string().nullable().describe('Its bytes where it is no text.'),
    truncated: z.boolean().describe(`Only the first ${skillLimits.previewBytes} bytes are given.`),
  })
  .meta({ id: 'SkillFile' })

export const skillSkipReasons = ['slug_taken', 'invalid_slug', 'invalid_bundle', 'not_found', 'too_much'] as const

const skippedSkill = z.object({
  slug: z.string().nullable().describe('As the repository names it, or as it was asked for.'),
  path: z.string().nullable().describe('Its folder in the repository; null: it has none there.'),
  reason: z
    .enum(skillSkipReasons)
    .describe(
      '`slug_taken`: another skill has the slug. `not_found`: there is none of that name. `too_much`: one install takes no more.',
    ),
  message: z.string(),
})
export type SkippedSkill = z.infer<typeof skippedSkill>

export const repoInstall = z
  .object({
    object: z.literal('skill_repo_install'),
    installed: z.array(skillSummary).describe('Those that are new, and those that the repository had brought before.'),
    skipped: z.array(skippedSkill),
    resolvedSha: z.string().describe('The id of the commit.'),
  })
  .meta({ id: 'SkillRepoInstall' })
export type RepoInstall = z.infer<typeof repoInstall>

export const skillOverride = z
  .object({
    skillId,
    slug: z.string(),
    name: z.string(),
    enabled: z.boolean().nullable().describe('null: the agent follows the workspace.'),
    workspaceEnabled: z.boolean(),
    pluginEnabled: z.boolean().nullable().describe('null: it belongs to no plugin.'),
    effectiveEnabled: z.boolean(),
  })
  .meta({ id: 'SkillOverride' })
export type SkillOverride = z.infer<typeof skillOverride>

export const skillShare = z
  .object({
    object: z.literal('skill_share'),
    id: skillShareId,
    expiresAt: timestamp.nullable().describe('null: it does not expire.'),
    revokedAt: timestamp.nullable(),
    createdAt: timestamp,
  })
  .meta({ id: 'SkillShare' })
export type SkillShare = z.infer<typeof skillShare>

export const newSkillShare = skillShare
  .extend({
    token: z.string().describe('Shown only here.'),
    url: z.string().describe('Where the skill is seen without signing in.'),
  })
  .meta({ id: 'NewSkillShare' })

export const sharedSkill = z
  .object({
    object: z.literal('shared_skill'),
    name: z.string(),
    slug: z.string(),
    description: z.string().nullable(),
    version: z.number().int(),
    fileCount: z.number().int(),
    totalBytes: z.number().int(),
    bundleHash: z.string(),
    files: z.array(shownFile),
    expiresAt: timestamp.nullable(),
  })
  .meta({ id: 'SharedSkill' })
