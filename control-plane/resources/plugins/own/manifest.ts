import { z } from 'zod'
import { pluginLimits, pluginName, type NotUsed, type PluginFormat } from '../../../../shared/api/plugin-fields.ts'

// Reads what the manifest of a plugin says. Pure: its text is read elsewhere, and nothing that it names is fetched.

/** The paths of the manifest of each form, and of the file with its MCP servers. */
export const manifestFiles = {
  agent_plugins: { manifest: 'plugin.json', servers: 'mcp.json' },
  claude_plugin: { manifest: '.claude-plugin/plugin.json', servers: '.mcp.json' },
} as const satisfies Record<PluginFormat, { manifest: string; servers: string }>

export interface Manifest {
  format: PluginFormat
  name: string
  version: string | null
  description: string | null
  /** Servers that stand in the manifest itself, or the file that it names for them; undefined: the usual file. */
  servers: unknown
  notUsed: NotUsed[]
}

export type ManifestReading = { manifest: Manifest; flaw: null } | { manifest: null; flaw: string }

const flawed = (flaw: string): ManifestReading => ({ manifest: null, flaw })

/** The version is chosen by the address of its schema, which nobody asks for. */
const agentPluginsSchema = /^https:\/\/agent-plugins\.org\/schemas\/1\.\d{1,4}\.\d{1,4}\/plugin\.schema\.json$/

/** Fields that say who made it, and change nothing of what it does. */
const saidOnly = ['author', 'homepage', 'repository', 'license', 'keywords', 'displayName'] as const
const known = new Set<string>(['$schema', 'name', 'version', 'description', ...saidOnly])

const fields = z.object({
  name: pluginName,
  version: z.string().optional(),
  description: z.string().optional(),
})

/** null: no object of JSON in UTF-8. */
export function jsonObject(bytes: Uint8Array): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}

/** Returns whether a `plugin.json` at the root is that of Agent Plugins, and not of something else that is called so. */
export const isAgentPlugins = (value: Readonly<Record<string, unknown>> | null): boolean =>
  typeof value?.['$schema'] === 'string' && agentPluginsSchema.test(value['$schema'])

export function readManifest(value: Readonly<Record<string, unknown>>, format: PluginFormat): ManifestReading {
  const read = fields.safeParse(value)
  if (!read.success) {
    const [issue] = read.error.issues
    return flawed(
      issue?.path[0] === 'name'
        ? 'has no `name` of up to 64 characters of a-z, 0-9 and single - and . between them'
        : `has a \`${String(issue?.path[0])}\` that is no text`,
    )
  }
  const { name, version = null, description = null } = read.data
  const takesServers = format === 'claude_plugin'
  const others = Object.keys(value).filter((key) => !known.has(key) && !(takesServers && key === 'mcpServers'))
  return {
    manifest: {
      format,
      name,
      version: version === null ? null : shownName(version).slice(0, pluginLimits.version),
      description:
        description === null ? null : shownName(description.replaceAll(/\s+/g, ' ')).slice(0, pluginLimits.description),
      servers: takesServers ? value['mcpServers'] : undefined,
      notUsed: others.map((key) => notUsedOf('field', key, 'not_supported', 'svc does not use this field.')),
    },
    flaw: null,
  }
}

export const notUsedOf = (
  kind: NotUsed['kind'],
  name: string,
  reason: NotUsed['reason'],
  message: string,
): NotUsed => ({ kind, name: shownName(name).slice(0, 200), reason, message })

/** Names and texts of strangers, as they may stand in a line. */
const shownName = (text: string): string =>
  text.toWellFormed().replaceAll(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu, '\uFFFD')

/** Files and folders by which plugins bring more than svc uses. */
const parts = [
  'commands',
  'agents',
  'hooks',
  'hooks.json',
  'output-styles',
  'themes',
  'monitors',
  'bin',
  '.lsp.json',
  'settings.json',
  'SKILL.md',
] as const

/** Lists what stands at the root of a plugin and is not used. A folder named as a domain is for one client. */
export function partsNotUsed(paths: readonly string[], format: PluginFormat): NotUsed[] {
  const tops = new Map<string, boolean>()
  for (const path of paths) {
    const end = path.indexOf('/')
    tops.set(end === -1 ? path : path.slice(0, end), end !== -1)
  }
  const others =
    format === 'agent_plugins' ? [manifestFiles.claude_plugin.servers] : [manifestFiles.agent_plugins.servers]
  const isPart = (name: string, isFolder: boolean) =>
    ([...parts, ...others] as string[]).includes(name) ||
    (format === 'agent_plugins' && isFolder && /^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/.test(name))
  return [...tops]
    .filter(([name, isFolder]) => isPart(name, isFolder))
    .map(([name]) => notUsedOf('part', name, 'not_supported', 'svc uses skills and MCP servers of a plugin alone.'))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}
