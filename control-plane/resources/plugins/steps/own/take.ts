import { fail } from '../../../../../shared/api/errors.ts'
import { pluginLimits, type NotUsed } from '../../../../../shared/api/plugin-fields.ts'
import { skillKeys } from '../../../../../shared/api/skill-fields.ts'
import type { Caller } from '../../../../http/callers.ts'
import type { FetchedRepo } from '../../../../repo-source/repo-sources.ts'
import type { TreeEntry } from '../../../../repo-source/tree.ts'
import type { ResourceDependencies } from '../../../dependencies.ts'
import { boundsFlaw, hashFiles, hashOfFiles, listedFiles, type RawFile } from '../../../skills/bundle.ts'
import type { BundleFile } from '../../../skills/bundle-store.ts'
import { filesByFolder, filesFlaw, skillFoldersOf } from '../../../skills/repo-folders.ts'
import { storeHashed, type NewBundle } from '../../../skills/steps/bundle.ts'
import { readFiles, storeFiles, type InstallRoom } from '../../../skills/steps/repo.ts'
import {
  isAgentPlugins,
  jsonObject,
  manifestFiles,
  notUsedOf,
  partsNotUsed,
  readManifest,
  type Manifest,
} from '../../own/manifest.ts'
import { needsRoot, readServers, withRoot, type PluginServer, type ServersReading } from '../../own/servers.ts'

// Takes a plugin out of its files, and stores the files of its skills: before the transaction. Only what is used is read: the manifest, the
// file with its MCP servers, and its skills. Nothing of it is executed.

/** Files that were sent, or those of a repository that was fetched. */
export type PluginFiles = Pick<FetchedRepo, 'list' | 'read'>

export interface TakenSkill extends NewBundle {
  slug: string
  name: string
  description: string | null
}

export interface TakenPlugin extends Pick<Manifest, 'format' | 'name' | 'version' | 'description'> {
  pluginHash: string
  skills: TakenSkill[]
  servers: PluginServer[]
  /** All files of the plugin, whose servers name their folder by the hash; null: no server needs them. */
  root: NewBundle | null
  notUsed: NotUsed[]
}

interface Taking {
  caller: Caller
  deps: Pick<ResourceDependencies, 'blobs' | 'costly'>
  /** The param that is named when they are no plugin. */
  param: 'url' | 'bundle.files'
}

/** Files of a request, as if they were of a repository. */
export function filesOf(sent: readonly RawFile[]): PluginFiles {
  const bytes = new Map(
    sent.map(({ bytes: { buffer, byteOffset, length } }, at) => [String(at), Buffer.from(buffer, byteOffset, length)]),
  )
  const entries = sent.map(({ path, executable, bytes: { length } }, at): TreeEntry => ({
    path,
    kind: 'file',
    executable,
    oid: String(at),
    sizeBytes: length,
  }))
  return {
    list: () => Promise.resolve(entries),
    read: (wanted) => Promise.resolve(wanted.map(({ oid }) => bytes.get(oid)!)),
  }
}

/** Fails with `invalid_plugin` and `skill_bundle_storage_failed`; then nothing stays stored. */
export async function takePlugin(from: PluginFiles, taking: Taking): Promise<TakenPlugin> {
  const reading = new Reading(from, await from.list(), taking)
  const manifest = await reading.manifest()
  const read = await reading.servers(manifest)
  const notUsed = [...manifest.notUsed, ...partsNotUsed(reading.paths, manifest.format), ...read.notUsed]
  const stored: NewBundle[] = []
  try {
    const skills: TakenSkill[] = []
    for await (const skill of takeSkillsOf(reading, notUsed)) {
      skills.push(skill)
      stored.push(skill)
    }
    const { root, servers } = await takeRoot(read.servers, notUsed, reading)
    if (root !== null) stored.push(root)
    if (skills.length === 0 && servers.length === 0)
      return reading.refuse(`has no skill and no MCP server that svc uses.${firstReason(notUsed)}`)
    const { format, name, version, description } = manifest
    const files = root?.files ?? [
      ...reading.used,
      ...skills.flatMap(({ slug, files: own }) => own.map(below(`skills/${slug}/`))),
    ]
    const pluginHash = hashOfFiles(files.toSorted((a, b) => (a.path < b.path ? -1 : 1)))
    const told = notUsed.slice(0, pluginLimits.told)
    return { format, name, version, description, pluginHash, skills, servers, root, notUsed: told }
  } catch (error) {
    for (const { blobId } of stored) await taking.deps.blobs.giveUp(blobId)
    throw error
  }
}

const below = (folder: string) => (file: BundleFile) => ({ ...file, path: folder + file.path })

function firstReason(notUsed: readonly NotUsed[]): string {
  const first = notUsed.find(({ kind }) => kind === 'skill' || kind === 'mcp_server') ?? notUsed[0]
  return first === undefined ? '' : ` ${first.name}: ${first.message}`
}

/** A reading of the files of a plugin. */
class Reading {
  readonly from: PluginFiles
  readonly entries: readonly TreeEntry[]
  readonly taking: Taking
  /** The files that are used beside those of skills. */
  readonly used: BundleFile[] = []

  constructor(from: PluginFiles, entries: readonly TreeEntry[], taking: Taking) {
    this.from = from
    this.entries = entries
    this.taking = taking
  }

  get paths(): string[] {
    return this.entries.map(({ path }) => path)
  }

  refuse(flaw: string): never {
    return fail('invalid_plugin', { param: this.taking.param, message: `The plugin ${flaw}` })
  }

  async manifest(): Promise<Manifest> {
    const open = await this.object(manifestFiles.agent_plugins.manifest)
    const isOpen = isAgentPlugins(open?.value ?? null)
    const found = isOpen ? open : await this.object(manifestFiles.claude_plugin.manifest)
    const file = isOpen ? manifestFiles.agent_plugins.manifest : manifestFiles.claude_plugin.manifest
    if (found === null)
      return this.refuse(
        open === null
          ? 'has neither a plugin.json at its root nor a .claude-plugin/plugin.json.'
          : 'has a plugin.json without the `$schema` of Agent Plugins 1, and no .claude-plugin/plugin.json.',
      )
    if (found.value === null) return this.refuse(`has a ${file} that is no object of JSON.`)
    const { manifest, flaw } = readManifest(found.value, isOpen ? 'agent_plugins' : 'claude_plugin')
    if (manifest === null) return this.refuse(`${flaw} in its ${file}.`)
    this.used.push(...(await listedFiles([found.file])))
    return manifest
  }

  async servers({ format, servers: named }: Manifest): Promise<ServersReading> {
    if (typeof named === 'object' && named !== null && !Array.isArray(named))
      return readServers({ mcpServers: named }, { file: manifestFiles.claude_plugin.manifest, format })
    const usual = manifestFiles[format].servers
    const file = named === undefined ? usual : typeof named === 'string' ? named.replace(/^\.\//, '') : null
    const found = file === null ? null : await this.object(file, () => null)
    if (file === null || found === null)
      return named === undefined && !this.paths.includes(usual)
        ? { servers: [], notUsed: [] }
        : readServers(null, { file: file ?? 'mcpServers', format })
    this.used.push(...(await listedFiles([found.file])))
    return readServers(found.value, { file, format })
  }

  /** The JSON of a file; null: there is no such file. `large`: what is done about one that is too large, or is a link. */
  private async object(
    path: string,
    large: () => null = () =>
      this.refuse(`has a ${path} that is a link, or longer than ${pluginLimits.manifestBytes}.`),
  ): Promise<{ value: Record<string, unknown> | null; file: RawFile } | null> {
    const entry = this.entries.find((one) => one.path === path)
    if (entry === undefined) return null
    if (entry.kind !== 'file' || entry.sizeBytes > pluginLimits.manifestBytes) return large()
    const [bytes] = await this.from.read([entry])
    return { value: jsonObject(bytes!), file: { path, bytes: bytes!, executable: entry.executable } }
  }
}

/** Skills lie one level deep. One that cannot be taken leaves the others as they are. */
async function* takeSkillsOf(reading: Reading, notUsed: NotUsed[]): AsyncGenerator<TakenSkill> {
  const room: InstallRoom = { ...pluginLimits }
  const folders = skillFoldersOf(reading.entries, { isSubdir: false }).filter((folder) =>
    /^skills\/[^/]+$/.test(folder),
  )
  for (const [folder, files] of filesByFolder(reading.entries, folders)) {
    const slug = folder.slice('skills/'.length)
    const taken = await takeSkill(slug, files, { room, reading })
    if ('reason' in taken) notUsed.push(notUsedOf('skill', slug, taken.reason, taken.message))
    else yield taken
  }
}

/** Stores all files of the plugin where a server needs them. Where they cannot be had, the plugin goes without these servers. */
async function takeRoot(
  servers: readonly PluginServer[],
  notUsed: NotUsed[],
  { entries, from, taking }: Reading,
): Promise<{ root: NewBundle | null; servers: PluginServer[] }> {
  if (!servers.some(needsRoot)) return { root: null, servers: [...servers] }
  const given = filesFlaw(entries) ?? (await readFiles(entries, from))
  const flaw = typeof given === 'string' ? given : (boundsFlaw(given)?.message ?? null)
  if (typeof given === 'string' || flaw !== null) {
    const without = servers.filter(needsRoot).map(({ nameInPlugin }) => nameInPlugin)
    notUsed.push(...without.map((name) => notUsedOf('mcp_server', name, 'needs_files', `Of the plugin: ${flaw}`)))
    return { root: null, servers: servers.filter((server) => !needsRoot(server)) }
  }
  const matter = { name: null, description: null, allowedTools: [] }
  const root = await storeHashed(await hashFiles(given), matter, { caller: taking.caller, blobs: taking.deps.blobs })
  return { root, servers: servers.map((server) => withRoot(server, root.bundleHash)) }
}

async function takeSkill(
  slug: string,
  files: readonly TreeEntry[],
  { room, reading: { from, taking } }: { room: InstallRoom; reading: Reading },
): Promise<TakenSkill | Pick<NotUsed, 'reason' | 'message'>> {
  const named = skillKeys.slug.safeParse(slug)
  if (!named.success)
    return { reason: 'invalid_slug', message: `Its folder ${named.error.issues[0]?.message ?? 'cannot be taken'}.` }
  const stored = await storeFiles(files, { from, room }, { caller: taking.caller, ...taking.deps })
  if ('reason' in stored) return stored
  const { name, description } = stored.frontMatter
  return { slug, name: name ?? slug, description, ...stored }
}
