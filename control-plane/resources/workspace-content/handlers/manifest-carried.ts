import { statusAt } from '../../connections/rules.ts'
import type { ConnectionRow } from '../../connections/store.ts'
import type { McpServerRow } from '../../mcp-servers/store.ts'
import type { PluginSummaryRow } from '../../plugins/store.ts'
import type { SkillRow } from '../../skills/store.ts'
import { section } from './manifest-text.ts'

// Sections of an export about what runs carry.

/** The files of a skill are left out, as they are read one by one. */
export function skillSection(skill: SkillRow): string[] {
  return section(skill.name, {
    Id: skill.id,
    Slug: skill.slug,
    Version: String(skill.bundleVersion),
    Source: skill.sourceType,
    'On for agents without an override': skill.enabledByDefault ? 'yes' : 'no',
    Files: String(skill.fileCount),
    Bytes: String(skill.totalBytes),
    Description: skill.description,
  })
}

/** The skills and MCP servers of a plugin stand among those of the workspace. */
export function pluginSection(plugin: PluginSummaryRow): string[] {
  return section(plugin.name, {
    Id: plugin.id,
    Version: plugin.pluginVersion,
    On: plugin.enabled ? 'yes' : 'no',
    Repository: plugin.repoUrl,
    Commit: plugin.repoSha,
    Hash: plugin.pluginHash,
    Description: plugin.description,
  })
}

/** The credential of a connection is left out, as no export has it. */
export function connectionSection(connection: ConnectionRow, now: number): string[] {
  const { id, serviceId, serviceLabel, authKind, accountLabel, ownerUuid, grantedScopes } = connection
  return section(serviceLabel, {
    Id: id,
    Service: serviceId,
    Account: accountLabel === '' ? null : accountLabel,
    Kind: authKind,
    Status: statusAt(connection, now),
    Owner: ownerUuid === null ? 'the workspace' : 'a person',
    Scopes: grantedScopes.length === 0 ? null : grantedScopes.join(' '),
  })
}

export function mcpServerSection({ id, name, server }: McpServerRow, agent: string | null): string[] {
  return section(name, {
    Id: id,
    Agent: agent,
    Transport: server.type,
    Address: server.type === 'stdio' ? null : server.url,
    Command: server.type === 'stdio' ? [server.command, ...server.args].join(' ') : null,
  })
}
