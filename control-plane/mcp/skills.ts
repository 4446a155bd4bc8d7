import type { WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { Skill } from '@modelcontextprotocol/core/ext/skills'
import type { SkillSource } from '@modelcontextprotocol/server/ext/skills'
import { cursorOf, pageByTime, timeAndId } from '../../shared/api/paging.ts'
import { skillFile, skillId } from '../../shared/api/skill-fields.ts'
import type { Blobs } from '../blobs/blobs.ts'
import type { Db } from '../db/open.ts'
import { findBundle, listBundles, type BundleRow } from '../resources/skills/bundle-store.ts'
import { listPluginsByIds, type PluginRow } from '../resources/skills/plugin-store.ts'
import { readBundleFile } from '../resources/skills/steps/bundle.ts'
import { listSkills, listSkillsBySlug, type SkillRow } from '../resources/skills/store.ts'

/**
 * The skills that are on for a workspace, as the skills extension of MCP serves them to the harness of a person: `skill://<slug>/SKILL.md`, or
 * `skill://<plugin>/<slug>/SKILL.md` of a plugin. An agent is not served any: its runs have theirs placed, and what is off for it must
 * not come in by another way.
 */
export interface SkillsDependencies {
  root: Db
  blobs: Pick<Blobs, 'open'>
}

const scheme = 'skill://'
const atOnce = 20
const cursor = timeAndId(skillId)

export function skillSource({ root, blobs }: SkillsDependencies, workspaceId: WorkspaceUuid): SkillSource {
  return {
    async list({ cursor: after }) {
      const place = after === undefined ? null : cursorOf({ after }, cursor)
      const before = place === null ? {} : { before: { createdAt: place[0], id: place[1] } }
      const rows = await listSkills(root, { workspaceId, enabledByDefault: true, ...before, limit: atOnce })
      const plugins = await listPluginsByIds(
        root,
        rows.flatMap(({ pluginId }) => pluginId ?? []),
      )
      const bundles = await listBundles(
        root,
        workspaceId,
        rows.map(({ bundleId }) => bundleId),
      )
      const { data, nextCursor } = pageByTime(rows, atOnce, (skill) => {
        const bundle = bundles.get(skill.bundleId)
        const plugin = pluginOf(skill, plugins)
        return plugin === undefined || bundle === undefined ? [] : [entryOf({ skill, bundle, plugin })]
      })
      return { skills: data.flat(), ...(nextCursor !== null && { nextCursor }) }
    },

    async get(uri) {
      const found = await lookUp(uri)
      return found?.path === skillFile ? entryOf(found) : undefined
    },

    async read(uri) {
      const found = await lookUp(uri)
      const read = found && (await readBundleFile(found.bundle, { path: found.path, blobs }))
      if (read === null) return undefined
      const { file, bytes } = read
      return file.path.endsWith('.md') ? { text: bytes.toString('utf8'), mimeType: 'text/markdown' } : { bytes }
    },
  }

  /** The skill and the path of the file that a URI names; null: there is none that is on. */
  async function lookUp(uri: string): Promise<(Served & { path: string }) | null> {
    const words = wordsOf(uri)
    if (words === null) return null
    for (const [slug, pluginName, path] of [
      [words[0], null, words.slice(1)],
      [words[1], words[0], words.slice(2)],
    ] as const) {
      if (slug === undefined || path.length === 0) continue
      const rows = (await listSkillsBySlug(root, workspaceId, slug)).filter(({ enabledByDefault }) => enabledByDefault)
      const plugins = await listPluginsByIds(
        root,
        rows.flatMap(({ pluginId }) => pluginId ?? []),
      )
      const skill = rows.find((row) => {
        const plugin = pluginOf(row, plugins)
        return plugin !== undefined && (plugin?.name ?? null) === pluginName
      })
      const bundle = skill && (await findBundle(root, workspaceId, skill.bundleId))
      if (skill && bundle) return { skill, bundle, plugin: pluginOf(skill, plugins) ?? null, path: path.join('/') }
    }
    return null
  }
}

interface Served {
  skill: SkillRow
  bundle: BundleRow
  plugin: PluginRow | null
}

/** null: it is of none; undefined: its plugin is off, or gone. */
function pluginOf({ pluginId }: SkillRow, plugins: ReadonlyMap<string, PluginRow>): PluginRow | null | undefined {
  if (pluginId === null) return null
  const plugin = plugins.get(pluginId)
  return plugin?.enabled === true ? plugin : undefined
}

function entryOf({ skill, bundle, plugin }: Served): Skill {
  const { frontMatter, files } = bundle
  const of = [...(plugin === null ? [] : [plugin.name]), skill.slug]
  return {
    uri: uriOf([...of, skillFile]),
    frontmatter: {
      // The format wants the name of the folder, whatever SKILL.md says.
      name: skill.slug,
      description: frontMatter.description ?? skill.description ?? skill.name,
    },
    resources: files.map(({ path, sizeBytes, sha256 }) => ({
      uri: uriOf([...of, ...path.split('/')]),
      digest: `sha256:${sha256}`,
      size: sizeBytes,
    })),
  }
}

const uriOf = (words: readonly string[]): string => scheme + words.map(encodeURIComponent).join('/')

function wordsOf(uri: string): string[] | null {
  if (!uri.startsWith(scheme) || uri.length > 2_000) return null
  try {
    return uri.slice(scheme.length).split('/').map(decodeURIComponent)
  } catch {
    return null
  }
}
