import type { PluginId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { flag, text } from '../../db/columns.ts'
import { pluginId, workspaceUuid } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

/** The facts that a skill needs of the plugin that it belongs to. */
const plugins = table('plugins', { id: pluginId, workspaceId: workspaceUuid, name: text, enabled: flag })
export type PluginRow = RowOf<typeof plugins>

const byReference = plugins.query('where workspace_id = ? and (id = ? or name = ?)')

/** The plugin with this id, or else with this name; null when there is none. */
export async function findPluginByReference(
  db: Db,
  workspaceId: WorkspaceUuid,
  reference: string,
): Promise<PluginRow | null> {
  const found = await byReference.list(db, [workspaceId, reference, reference])
  return found.find(({ id }) => id === reference) ?? found[0] ?? null
}

const byIds = plugins.query('where id in ?')

/** Returns the plugins by their ids. */
export async function listPluginsByIds(db: Db, ids: readonly PluginId[]): Promise<Map<PluginId, PluginRow>> {
  const found = ids.length === 0 ? [] : await byIds.list(db, [[...ids]])
  return new Map(found.map((plugin) => [plugin.id, plugin]))
}
