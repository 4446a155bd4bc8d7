import type { Tree } from '../../../kit/git-server.ts'
import type { Stage } from '../../contract/stage.ts'
import { newSlug, skillMd } from './skills.ts'

export const agentPluginsSchema = 'https://agent-plugins.org/schemas/1.0.0/plugin.schema.json'
export const newPluginName = (): string => `plugin-${crypto.randomUUID().slice(0, 8)}`
export const tracker = { type: 'streamable-http', url: 'https://mcp.example.com/mcp' } as const

interface PluginOf {
  name?: string
  /** By their slugs: what SKILL.md holds. */
  skills?: Readonly<Record<string, string>>
  servers?: Readonly<Record<string, unknown>>
}

/** The files of a plugin of the open form, by their paths. */
export function pluginFiles({ name = newPluginName(), skills = { [newSlug()]: skillMd() }, servers }: PluginOf = {}) {
  return {
    'plugin.json': JSON.stringify({ $schema: agentPluginsSchema, name, version: '1.0.0', description: 'Tools.' }),
    ...Object.fromEntries(Object.entries(skills).map(([slug, text]) => [`skills/${slug}/SKILL.md`, text])),
    ...(servers && { 'mcp.json': JSON.stringify({ mcpServers: servers }) }),
  }
}

export const bundleOf = (files: Readonly<Record<string, string>>) => ({
  files: Object.entries(files).map(([path, content]) => ({ path, content })),
})

/** The same as a tree of git. */
export function treeOf(files: Readonly<Record<string, Tree[string]>>): Tree {
  const tree: Record<string, Tree[string]> = {}
  for (const [path, content] of Object.entries(files)) {
    const parts = path.split('/')
    const last = parts.pop()!
    let folder = tree
    for (const part of parts) folder = (folder[part] ??= {}) as Record<string, Tree[string]>
    folder[last] = content
  }
  return tree
}

export const newPlugin = (of: PluginOf = {}) => ({ bundle: bundleOf(pluginFiles(of)) })

/** A plugin that the owner installs, unless a token is given. */
export const makePlugin = async (
  { server }: Pick<Stage, 'server'>,
  { token, enabled = true, ...of }: PluginOf & { token?: string; enabled?: boolean } = {},
  // oxlint-disable-next-line typescript/no-explicit-any
): Promise<any> =>
  server.ok('/plugins', { body: { ...newPlugin(of), enabled }, ...(token === undefined ? {} : { token }) })

/** A skill that a plugin brought, off for the workspace; `enabled`: the plugin. */
export async function makePluginSkill(
  { server }: Pick<Stage, 'server'>,
  { enabled = true, slug = newSlug(), token }: { enabled?: boolean; slug?: string; token?: string } = {},
): Promise<{ id: string; slug: string; pluginId: string; pluginName: string }> {
  const by = token === undefined ? {} : { token }
  const {
    id: pluginId,
    name: pluginName,
    skills,
  } = await makePlugin({ server }, { skills: { [slug]: skillMd() }, ...by })
  const { id } = skills[0]
  await server.ok(`/skills/${id}`, { method: 'PATCH', body: { enabledByDefault: false }, ...by })
  if (!enabled) await server.ok(`/plugins/${pluginId}/disable`, { method: 'POST', ...by })
  return { id, slug, pluginId, pluginName }
}
