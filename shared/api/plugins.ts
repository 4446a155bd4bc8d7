import { z } from 'zod'
import { platformChange } from './agents.ts'
import { listOf, pageParams } from './paging.ts'
import { plugin, pluginRef, pluginSource, pluginSummary } from './plugin-fields.ts'
import { adminsOrPlatformChange, defineRoute, mebibyte } from './route.ts'

// Plugins: skills and MCP servers that are installed, turned on and off, and removed together.

const params = z.object({ pluginId: pluginRef })
const positionals = [{ name: 'plugin', target: 'params.pluginId' }] as const
const examplePlugin = 'release-tools'
const changed = { 202: platformChange } as const
const decides = { callers: adminsOrPlatformChange } as const
const bundled = { bodyLimit: 24 * mebibyte } as const
const asked = ['plugin_not_found', 'platform_change_requires_run'] as const
const sourceErrors = [
  'platform_change_requires_run',
  'invalid_plugin_source',
  'plugin_source_unreadable',
  'invalid_plugin',
  'skill_bundle_storage_failed',
] as const
const bundleFlags = {
  bundle: null,
  dir: { description: 'Instead of a repository: the folder whose files are those of the plugin.' },
} as const

export const pluginRoutes = {
  list: defineRoute({
    id: 'plugins.list',
    endpoint: 'GET /plugins',
    summary: 'List the plugins of your workspace, newest install first',
    query: z.object({
      enabled: z.boolean().optional().describe('Only those that are on, or off.'),
      q: z.string().max(200).optional().describe('Text in name or description.'),
      ...pageParams,
    }),
    reply: listOf(pluginSummary),
    cli: { command: 'plugin list', example: 'svc plugin list --enabled true' },
  }),

  install: defineRoute({
    id: 'plugins.install',
    endpoint: 'POST /plugins',
    summary: 'Install a plugin from a public git repository or from its files',
    description:
      'Its skills become skills of the workspace, its MCP servers become MCP servers of the workspace; nothing else of it is used, which the answer names. For workspace admins; what an agent asks for waits for one.',
    ...decides,
    ...bundled,
    body: z
      .object({
        url: pluginSource.url.optional(),
        ref: pluginSource.ref.optional(),
        subdir: pluginSource.subdir.optional(),
        bundle: pluginSource.bundle.optional(),
        enabled: z.boolean().default(true).describe('Whether runs have it at once.'),
      })
      .meta({ id: 'PluginInstall' }),
    reply: plugin,
    status: 201,
    otherReplies: changed,
    errors: [...sourceErrors, 'duplicate_plugin_name'],
    cli: {
      command: 'plugin install',
      positionals: [{ name: 'source', target: 'body.url', isOptional: true }],
      flags: bundleFlags,
      flow: true,
      example: 'svc plugin install acme/release-tools --ref main',
    },
  }),

  get: defineRoute({
    id: 'plugins.get',
    endpoint: 'GET /plugins/{pluginId}',
    summary: 'Read one plugin: its skills, its MCP servers, and what of it is not used',
    params,
    reply: plugin,
    errors: ['plugin_not_found'],
    cli: { command: 'plugin get', positionals, example: `svc plugin get ${examplePlugin}` },
  }),

  enable: defineRoute({
    id: 'plugins.enable',
    endpoint: 'POST /plugins/{pluginId}/enable',
    summary: 'Turn a plugin on: runs that begin from now on have its skills and MCP servers',
    ...decides,
    params,
    reply: plugin,
    otherReplies: changed,
    errors: asked,
    cli: { command: 'plugin enable', positionals, example: `svc plugin enable ${examplePlugin}` },
  }),

  disable: defineRoute({
    id: 'plugins.disable',
    endpoint: 'POST /plugins/{pluginId}/disable',
    summary: 'Turn a plugin off: runs that begin from now on have none of it',
    ...decides,
    params,
    reply: plugin,
    otherReplies: changed,
    errors: asked,
    cli: { command: 'plugin disable', positionals, example: `svc plugin disable ${examplePlugin}` },
  }),

  update: defineRoute({
    id: 'plugins.update',
    endpoint: 'POST /plugins/{pluginId}/update',
    summary: 'Bring a plugin up to date from its repository, or give it other files',
    description: 'What agents have otherwise than the workspace says stays with the skills that stay, by their slugs.',
    ...decides,
    ...bundled,
    params,
    body: z
      .object({ ref: pluginSource.ref.optional(), bundle: pluginSource.bundle.optional() })
      .meta({ id: 'PluginUpdate' }),
    reply: plugin,
    otherReplies: changed,
    errors: [...sourceErrors, 'plugin_not_found'],
    cli: {
      command: 'plugin update',
      positionals,
      flags: bundleFlags,
      flow: true,
      example: `svc plugin update ${examplePlugin} --ref v2`,
    },
  }),

  remove: defineRoute({
    id: 'plugins.remove',
    endpoint: 'DELETE /plugins/{pluginId}',
    summary: 'Remove a plugin with its skills and its MCP servers',
    ...decides,
    params,
    otherReplies: changed,
    errors: asked,
    cli: { command: 'plugin remove', asks: true, positionals, example: `svc plugin remove ${examplePlugin}` },
  }),
} as const
