import { idFrom, type WorkspaceUuid } from '../../shared/lib/ids.ts'
import { insertBundle, type BundleRow } from '../../control-plane/resources/skills/bundle-store.ts'
import { insertShare, type ShareRow } from '../../control-plane/resources/skills/own/share-store.ts'
import { insertSkill, type SkillRow } from '../../control-plane/resources/skills/store.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { at } from './seed.ts'

const id = <Prefix extends string>(prefix: Prefix) => realWorld.id(prefix)

export async function seedBundle(
  db: Db,
  workspaceId: WorkspaceUuid,
  changes: Partial<BundleRow> = {},
): Promise<BundleRow> {
  const row: BundleRow = {
    id: id('skb_'),
    workspaceId,
    blobId: id('blb_'),
    bundleHash: 'f'.repeat(64),
    files: [{ path: 'SKILL.md', sizeBytes: 1, sha256: 'x', executable: false }],
    frontMatter: { name: 'x', description: null, allowedTools: ['Read'] },
    changeId: null,
    createdAt: at,
    retiredAt: null,
    ...changes,
  }
  await insertBundle(db, row)
  return row
}

/** A skill of a person, stored with its bundle. */
export async function seedSkill(
  db: Db,
  workspaceId: WorkspaceUuid,
  changes: Partial<SkillRow> = {},
): Promise<SkillRow> {
  const bundle = await seedBundle(db, workspaceId)
  const row: SkillRow = {
    id: idFrom(id('')),
    workspaceId,
    slug: `s-${realWorld.uuid()}`,
    name: 'Skill',
    description: null,
    sourceType: 'imported',
    sourceLabel: null,
    repoUrl: null,
    repoPath: null,
    repoSha: null,
    pluginId: null,
    enabledByDefault: true,
    bundleId: bundle.id,
    bundleVersion: 1,
    fileCount: 1,
    totalBytes: 1,
    skillMdTokens: 1,
    unavailableReason: null,
    writtenByUuid: null,
    describedByUuid: null,
    version: 1,
    createdAt: at,
    updatedAt: at,
    ...changes,
  }
  await insertSkill(db, row)
  return row
}

export async function seedShare(
  db: Db,
  skill: Pick<SkillRow, 'id' | 'workspaceId'>,
  changes: Partial<ShareRow> = {},
): Promise<ShareRow> {
  const row: ShareRow = {
    id: id('shr_'),
    workspaceId: skill.workspaceId,
    skillId: skill.id,
    tokenHash: realWorld.uuid(),
    createdByUuid: realWorld.uuid(),
    expiresAt: null,
    revokedAt: null,
    version: 1,
    createdAt: at,
    ...changes,
  }
  await insertShare(db, row)
  return row
}
