import { z } from 'zod'
import { bundleFile, skillId } from './skill-fields.ts'
import { mcpServerId, timestamp, userPublicId } from './ids.ts'
import { mcpTransports } from './mcp-servers.ts'
import { refersTo } from './references.ts'

// Plugins as clients write and read them.

export const pluginFormats = ['agent_plugins', 'claude_plugin'] as const
export type PluginFormat = (typeof pluginFormats)[number]

export const pluginLimits = {
  /** Plugins that a workspace may have. */
  plugins: 50,
  skills: 50,
  servers: 50,
  /** Files that a client may send, and files that are used of a repository. */
  files: 1_000,
  /** The size of all files that are used, decoded. */
  totalBytes: 24 * 1024 * 1024,
  /** The size of plugin.json, and that of the file with its MCP servers. */
  manifestBytes: 256 * 1024,
  version: 64,
  description: 1_024,
  /** Entries that a reply names of what is not used. */
  told: 200,
} as const

/** The form of names in Agent Plugins 1.0. Names of Claude's plugins have it, too. */
export const pluginName = z
  .string()
  .max(64)
  .regex(
    /^(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/,
    'must be at most 64 lower-case letters, digits, single `-` and `.` between them',
  )

export const pluginId = z
  .string()
  .regex(/^plug_[0-9A-Za-z]{16}$/, 'must be a `plug_` id')
  .meta({ example: 'plug_6hR2vT9kXwB4mZ8q' })

export const pluginRef = refersTo(
  z.string().min(1).max(200).describe('A plugin: its id or its name.'),
  'plugin',
  'a `plug_` id, or a name',
)

export const pluginSource = {
  url: z.string().min(1).max(2_000).describe('The https address of its git repository, or owner/repo at GitHub.'),
  ref: z
    .string()
    .min(1)
    .max(200)
    .describe('A branch, a tag or the whole id of a commit. Default: the default branch, or the one of the install.'),
  subdir: z.string().max(500).describe('The folder of the plugin instead of the root.'),
  bundle: z
    .object({
      files: z.array(bundleFile).describe(`At most ${pluginLimits.files}; a bad bundle is \`invalid_plugin\`.`),
    })
    .meta({ id: 'PluginBundle' })
    .describe('Its files, in place of a repository.'),
} as const

export const notUsedKinds = ['skill', 'mcp_server', 'field', 'part'] as const
export const notUsedReasons = [
  'not_supported',
  'invalid_slug',
  'invalid_bundle',
  'invalid_name',
  'invalid_server',
  'needs_files',
  'own_program',
  'own_variable',
  'too_much',
] as const

export const notUsed = z.object({
  kind: z
    .enum(notUsedKinds)
    .describe('`part`: a file or folder of the plugin, such as `hooks`; `field`: one of its manifest.'),
  name: z.string().describe('As the plugin names it.'),
  reason: z
    .enum(notUsedReasons)
    .describe(
      '`needs_files`: it needs a file or folder that svc does not bring to devices. `own_program`, `own_variable`: it names a program or a variable of svc.',
    ),
  message: z.string(),
})
export type NotUsed = z.infer<typeof notUsed>

export const pluginSummary = z
  .object({
    object: z.literal('plugin'),
    id: pluginId,
    name: z.string(),
    version: z.string().nullable().describe('As it says itself.'),
    description: z.string().nullable(),
    enabled: z.boolean().describe('Whether runs have its skills and MCP servers.'),
    format: z.enum(pluginFormats).describe('`agent_plugins`: Agent Plugins 1; `claude_plugin`: that of Claude Code.'),
    source: z
      .object({
        url: z.string().nullable().describe('null: its files were sent.'),
        ref: z.string().nullable(),
        subdir: z.string().nullable(),
        resolvedSha: z.string().nullable().describe('The id of the commit.'),
      })
      .meta({ id: 'PluginSource' }),
    pluginHash: z.string().describe('SHA-256 over the sorted list of the files that are used.'),
    installedBy: z.object({ type: z.literal('user'), id: userPublicId }).nullable(),
    installedAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'PluginSummary' })
export type PluginSummary = z.infer<typeof pluginSummary>

export const plugin = pluginSummary
  .extend({
    skills: z.array(
      z.object({
        id: skillId,
        slug: z.string(),
        name: z.string(),
        description: z.string().nullable(),
        version: z.number().int().describe('From 1; one more with each bundle that replaces the one before.'),
      }),
    ),
    mcpServers: z.array(
      z.object({
        id: mcpServerId,
        name: z.string().describe('By which rules know its tools (`mcp__<name>__<tool>`).'),
        nameInPlugin: z.string(),
        transport: z.enum(mcpTransports),
        url: z.string().nullable(),
        command: z.string().nullable(),
        args: z.array(z.string()),
      }),
    ),
    notUsed: z.array(notUsed).describe('What is in it and is not used, with the reason.'),
  })
  .meta({ id: 'Plugin' })
export type Plugin = z.infer<typeof plugin>
