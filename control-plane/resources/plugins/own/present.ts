import { toTimestamp } from '../../../../shared/api/ids.ts'
import type { Plugin, PluginSummary } from '../../../../shared/api/plugin-fields.ts'
import type { McpServerRow } from '../../mcp-servers/store.ts'
import type { SkillRow } from '../../skills/store.ts'
import type { InstalledPlugin, PluginSummaryRow } from '../store.ts'

export function presentPluginSummary(plugin: PluginSummaryRow): PluginSummary {
  const { id, name, pluginVersion, description, enabled, format, pluginHash, installedByRef } = plugin
  return {
    object: 'plugin',
    id,
    name,
    version: pluginVersion,
    description,
    enabled,
    format,
    source: { url: plugin.repoUrl, ref: plugin.repoRef, subdir: plugin.repoPath, resolvedSha: plugin.repoSha },
    pluginHash,
    installedBy: installedByRef === null ? null : { type: 'user', id: installedByRef },
    installedAt: toTimestamp(plugin.createdAt),
    updatedAt: toTimestamp(plugin.updatedAt),
  }
}

export function presentPlugin(
  plugin: InstalledPlugin,
  { skills, servers }: { skills: readonly SkillRow[]; servers: readonly McpServerRow[] },
): Plugin {
  return {
    ...presentPluginSummary(plugin),
    skills: skills.map(({ id, slug, name, description, bundleVersion }) => ({
      id,
      slug,
      name,
      description,
      version: bundleVersion,
    })),
    mcpServers: servers.map(presentServer),
    notUsed: plugin.notUsed,
  }
}

function presentServer({ id, name, nameInPlugin, server }: McpServerRow): Plugin['mcpServers'][number] {
  const isProgram = server.type === 'stdio'
  return {
    id,
    name,
    nameInPlugin: nameInPlugin ?? name,
    transport: server.type,
    url: isProgram ? null : server.url,
    command: isProgram ? server.command : null,
    args: isProgram ? server.args : [],
  }
}
