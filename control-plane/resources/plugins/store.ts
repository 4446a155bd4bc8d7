import type { WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { notUsed, pluginFormats } from '../../../shared/api/plugin-fields.ts'
import { withoutUndefined } from '../../../shared/lib/without-undefined.ts'
import { flag, int, json, nullableText, text, time } from '../../db/columns.ts'
import { bundleId, personRef, pluginId, workspaceUuid } from '../../db/id-columns.ts'
import { newestFirst, type OlderPage } from '../../db/id-page.ts'
import { onlyContaining } from '../../db/list-filters.ts'
import type { Db } from '../../db/open.ts'
import { countOf } from '../../db/reads.ts'
import { table, type RowOf } from '../../db/table.ts'

const summary = {
  /** `plug_...` */
  id: pluginId,
  workspaceId: workspaceUuid,
  /** Unique in the workspace. */
  name: text,
  enabled: flag,
  /** The version that the manifest says; null: it says none. */
  pluginVersion: nullableText,
  description: nullableText,
  format: z.enum(pluginFormats),
  /** The git repository that it is from: its address, what was asked for, the folder in it, and the commit; null: it is from none. */
  repoUrl: nullableText,
  repoRef: nullableText,
  repoPath: nullableText,
  repoSha: nullableText,
  pluginHash: text,
  /** The bundle of all files of the plugin; null: no server needs them. */
  bundleId: bundleId.nullable(),
  /** `usr_...` */
  installedByRef: personRef.nullable(),
  version: int,
  createdAt: time,
  updatedAt: time,
} as const

const columns = { installedByRef: 'installed_by' }
const summaries = table('plugins', summary, { columns })
export type PluginSummaryRow = RowOf<typeof summaries>

const installed = table('plugins', { ...summary, notUsed: json(z.array(notUsed)) }, { columns })
/** A plugin with what is not used of it. */
export type InstalledPlugin = RowOf<typeof installed>

export async function insertPlugin(db: Db, plugin: InstalledPlugin): Promise<void> {
  await installed.insert(db, plugin)
}

/** Fails with `transient_conflict` when somebody else changed it since it was read. */
export async function replacePlugin(db: Db, before: InstalledPlugin, after: InstalledPlugin): Promise<void> {
  await installed.replace(db, before, after)
}

const byReference = installed.query('where workspace_id = ? and (id = ? or name = ?) order by id limit 2')

/** The plugin with this id or name; no name is the form of an id. */
export async function findInstalledPlugin(
  db: Db,
  workspaceId: WorkspaceUuid,
  reference: string,
): Promise<InstalledPlugin | null> {
  return byReference.first(db, [workspaceId, reference, reference])
}

/** Removes a plugin that has no skill and no MCP server any more. */
export async function removePlugin(db: Db, id: string): Promise<void> {
  await db('plugins').where({ id }).delete()
}

export interface PluginFilter extends OlderPage {
  workspaceId: WorkspaceUuid
  enabled?: boolean
  q?: string
}

/** Lists plugins newest first; returns one row more than `limit`. */
export async function listPlugins(db: Db, filter: PluginFilter): Promise<PluginSummaryRow[]> {
  const { workspaceId, enabled, q } = filter
  const query = summaries.from(db).where(summaries.toColumns(withoutUndefined({ workspaceId, enabled })))
  onlyContaining(query, ['name', 'description'], q)
  return summaries.list(newestFirst(query, filter))
}

export async function countPlugins(db: Db, workspaceId: WorkspaceUuid): Promise<number> {
  return countOf(db('plugins').where({ workspace_id: workspaceId }))
}
