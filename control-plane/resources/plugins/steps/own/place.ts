import type { BundleId, WorkspaceUuid } from '../../../../../shared/lib/ids.ts'
import { z } from 'zod'
import { notUsed, pluginFormats } from '../../../../../shared/api/plugin-fields.ts'
import { skillKeys } from '../../../../../shared/api/skill-fields.ts'
import type { World } from '../../../../../shared/lib/world.ts'
import { ruleNameOf } from '../../../../../shared/runs/run-mcp-servers.ts'
import { mcpServer, type McpServer } from '../../../../../shared/runs/mcp-servers.ts'
import { changedRow } from '../../../../db/changed-row.ts'
import type { Db, Tx } from '../../../../db/open.ts'
import type { PersonCaller } from '../../../../http/callers.ts'
import { voidSignIns } from '../../../connections/steps/server-sign-in.ts'
import { isSameServer } from '../../../mcp-servers/rules.ts'
import {
  insertMcpServer,
  listMcpServersOfPlugin,
  listRuleNames,
  removeMcpServer,
  replaceMcpServer,
  type McpServerRow,
} from '../../../mcp-servers/store.ts'
import { causeOfCaller } from '../../../runs/cause.ts'
import { findBundle, listBundles, retireBundle, type BundleRow } from '../../../skills/bundle-store.ts'
import { removeOverridesOfSkill } from '../../../skills/override-store.ts'
import {
  bundleFacts,
  keepBundle,
  newSkill,
  stagedBundle,
  takeStaged,
  type NewBundle,
  type StagedBundle,
} from '../../../skills/steps/bundle.ts'
import { insertSkill, listSkillsOfPlugin, removeSkill, replaceSkill, type SkillRow } from '../../../skills/store.ts'
import { findWorkspace } from '../../../workspaces/store.ts'
import { nameOfServer } from '../../own/servers.ts'
import { removePlugin, type InstalledPlugin } from '../../store.ts'
import type { TakenPlugin } from './take.ts'

// Gives a workspace what a plugin brings, or takes it away: in the transaction of the caller.

/** The plugin that an agent's request keeps until it is approved: enough to install exactly that, without asking the repository again. */
export const stagedPlugin = z.object({
  name: z.string(),
  version: z.string().nullable(),
  description: z.string().nullable(),
  format: z.enum(pluginFormats),
  source: z.object({
    url: z.string().nullable(),
    ref: z.string().nullable(),
    subdir: z.string().nullable(),
    resolvedSha: z.string().nullable(),
  }),
  pluginHash: z.string(),
  skills: z.array(
    z.object({
      slug: skillKeys.slug,
      name: z.string(),
      description: z.string().nullable(),
      bundle: stagedBundle,
    }),
  ),
  servers: z.array(z.object({ nameInPlugin: z.string(), server: mcpServer })),
  root: z.object({ bundle: stagedBundle }).nullable().default(null),
  notUsed: z.array(notUsed),
})
type StagedPlugin = z.infer<typeof stagedPlugin>
export const stagedInstall = stagedPlugin.extend({ enabled: z.boolean() })

/** A plugin that was taken out of its files just now, or was staged. */
export type FoundPlugin = (TakenPlugin | Omit<StagedPlugin, 'source'>) & Pick<StagedPlugin, 'source'>

interface Placing {
  db: Tx
  world: World
  caller: PersonCaller
}

/** Returns what the row of a plugin says of its files. */
export const factsOf = ({ version, description, format, source, pluginHash, notUsed: rest }: FoundPlugin) =>
  ({
    pluginVersion: version,
    description,
    format,
    repoUrl: source.url,
    repoRef: source.ref,
    repoPath: source.subdir,
    repoSha: source.resolvedSha,
    pluginHash,
    notUsed: rest,
  }) satisfies Partial<InstalledPlugin>

/**
 * Stores all files of the plugin where its servers need them, in place of the bundle before. Returns the id of the bundle; null: no server
 * needs it.
 */
export async function placeRoot(
  { db, world }: Pick<Placing, 'db' | 'world'>,
  { workspaceId, bundleId: before }: Pick<InstalledPlugin, 'workspaceId' | 'bundleId'>,
  { root }: Pick<FoundPlugin, 'root'>,
): Promise<BundleId | null> {
  const old = before === null ? null : await findBundle(db, workspaceId, before)
  if (root !== null && old?.bundleHash === hashOf(root)) return before
  if (before !== null) await retireBundle(db, before, world.now())
  return root === null ? null : (await ownedBundle({ db, world, workspaceId }, root)).id
}

/** Replaces its skills and MCP servers by those that were found. */
export async function placeParts(placing: Placing, plugin: InstalledPlugin, found: FoundPlugin): Promise<void> {
  await placeSkills(placing, plugin, found)
  await placeServers(placing, plugin, found)
}

/** Replaces the skills: those that stay keep their ids, and with these what single agents have. */
async function placeSkills(
  { db, world, caller }: Placing,
  plugin: InstalledPlugin,
  { skills }: FoundPlugin,
): Promise<void> {
  const { workspaceId } = plugin
  const old = new Map((await listSkillsOfPlugin(db, workspaceId, plugin.id)).map((skill) => [skill.slug, skill]))
  const bundles = await listBundles(
    db,
    workspaceId,
    [...old.values()].map(({ bundleId }) => bundleId),
  )
  const writtenByUuid = await causeOfCaller(db, caller)
  for (const skill of skills) {
    const { slug, name, description } = skill
    const before = old.get(slug)
    old.delete(slug)
    const isSame = before !== undefined && bundles.get(before.bundleId)?.bundleHash === hashOf(skill)
    const bundle = isSame ? null : await ownedBundle({ db, world, workspaceId }, skill)
    if (before === undefined) {
      const named = { slug, name, description, sourceType: 'plugin', sourceLabel: plugin.name } as const
      const row = newSkill({ caller, world }, bundle!, {
        ...named,
        enabledByDefault: true,
        writtenByUuid,
      })
      await insertSkill(db, { ...row, pluginId: plugin.id })
    } else {
      const writers = { writtenByUuid, describedByUuid: writtenByUuid }
      const bundleVersion = before.bundleVersion + 1
      const changes = bundle && { ...bundleFacts(bundle), ...writers, bundleVersion, unavailableReason: null }
      await replaceSkill(db, before, changedRow(before, { name, description, ...changes }, world.now()))
      if (bundle !== null) await retireBundle(db, before.bundleId, world.now())
    }
  }
  for (const gone of old.values()) await removeSkillOfPlugin(db, gone, world.now())
}

/** Files that were stored just now, or staged. */
type FoundFiles = NewBundle | { bundle: StagedBundle }

const hashOf = (found: FoundFiles): string => ('blobId' in found ? found.bundleHash : found.bundle.bundleHash)

const ownedBundle = (
  written: { db: Db; world: World; workspaceId: WorkspaceUuid },
  found: FoundFiles,
): Promise<BundleRow> => ('blobId' in found ? keepBundle(written, found) : takeStaged(written, found.bundle.bundleId))

async function removeSkillOfPlugin(db: Db, { id, bundleId }: SkillRow, now: number): Promise<void> {
  await removeOverridesOfSkill(db, id)
  await removeSkill(db, id)
  await retireBundle(db, bundleId, now)
}

/**
 * Replaces the servers: those that stay keep their names, by which rules know them, and the connection that people chose, where the address
 * is the same.
 */
async function placeServers(
  { db, world, caller }: Placing,
  plugin: InstalledPlugin,
  { servers }: FoundPlugin,
): Promise<void> {
  const { id: pluginId, workspaceId } = plugin
  const rows = await listMcpServersOfPlugin(db, pluginId)
  const old = new Map(rows.map((row) => [row.nameInPlugin, row]))
  const kept = new Set(servers.map(({ nameInPlugin }) => nameInPlugin))
  for (const row of rows) if (!kept.has(row.nameInPlugin ?? '')) await removeServer({ db, world }, row)
  const taken = await takenNames(db, workspaceId)
  for (const { nameInPlugin, server } of servers) {
    const before = old.get(nameInPlugin)
    const now = world.now()
    if (before !== undefined) {
      const changes = { server: withConnectionOf(before.server, server) }
      await replaceMcpServer(db, before, changedRow(before, changes, now))
      if (isMoved(before.server, server)) await voidSignIns({ tx: db, world }, before, moved)
      continue
    }
    const name = nameOfServer(plugin.name, nameInPlugin, taken)
    const ruleName = ruleNameOf(name)
    taken.add(ruleName)
    const row: McpServerRow = {
      id: world.id('mcp_'),
      workspaceId,
      agentRef: null,
      name,
      ruleName,
      server,
      pluginId,
      nameInPlugin,
      createdByRef: caller.personRef,
      version: 1,
      createdAt: now,
      updatedAt: now,
    }
    await insertMcpServer(db, row)
  }
}

async function removeServer({ db, world }: Pick<Placing, 'db' | 'world'>, row: McpServerRow): Promise<void> {
  await voidSignIns({ tx: db, world }, row, 'The plugin has this MCP server no more.')
  await removeMcpServer(db, row.id)
}

const moved = 'The MCP server has another address now.'
const isMoved = (before: McpServer, after: McpServer): boolean =>
  before.type === 'http' && !(after.type === 'http' && isSameServer(before.url, after.url))

/** The names of all servers of the workspace, also those of its setting. */
async function takenNames(db: Db, workspaceId: WorkspaceUuid): Promise<Set<string>> {
  const setting = (await findWorkspace(db, workspaceId))?.mcpServers ?? {}
  return new Set([...(await listRuleNames(db, workspaceId)), ...Object.keys(setting).map(ruleNameOf)])
}

function withConnectionOf(before: McpServer, after: McpServer): McpServer {
  if (before.type === 'stdio' || after.type !== 'http' || before.url !== after.url) return after
  return before.connectionId === undefined ? after : { ...after, connectionId: before.connectionId }
}

/** Takes away the plugin with all that it brought. */
export async function removeWithParts(
  { db, world }: Pick<Placing, 'db' | 'world'>,
  { id, workspaceId, bundleId }: InstalledPlugin,
): Promise<void> {
  for (const skill of await listSkillsOfPlugin(db, workspaceId, id)) await removeSkillOfPlugin(db, skill, world.now())
  for (const server of await listMcpServersOfPlugin(db, id)) await removeServer({ db, world }, server)
  await removePlugin(db, id)
  if (bundleId !== null) await retireBundle(db, bundleId, world.now())
}
