import { idFrom, type PersonRef, type WorkspaceUuid } from '../../shared/lib/ids.ts'
import { insertPlugin, type InstalledPlugin } from '../../control-plane/resources/plugins/store.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { at } from './seed.ts'

export async function seedPlugin(
  db: Db,
  workspaceId: WorkspaceUuid,
  changes: Partial<InstalledPlugin> = {},
): Promise<InstalledPlugin> {
  const row: InstalledPlugin = {
    id: realWorld.id('plug_'),
    workspaceId,
    name: 'tools',
    enabled: true,
    pluginVersion: '1.0.0',
    description: 'Über Werkzeuge',
    format: 'claude_plugin',
    repoUrl: 'https://git.example.com/tools.git',
    repoRef: null,
    repoPath: 'plugins/tools',
    repoSha: 'a'.repeat(40),
    pluginHash: 'b'.repeat(64),
    bundleId: null,
    notUsed: [{ kind: 'part', name: 'hooks', reason: 'not_supported', message: 'No.' }],
    installedByRef: idFrom<PersonRef>('usr_0000000000000000'),
    version: 1,
    createdAt: at,
    updatedAt: at,
    ...changes,
  }
  await insertPlugin(db, row)
  return row
}
