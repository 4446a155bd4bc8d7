import type { PluginId, SkillId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { skillSourceTypes } from '../../../shared/api/skill-fields.ts'
import { unavailableReasons } from '../../../shared/runs/skills.ts'
import { svcSkill } from '../../../shared/runs/svc-skill.ts'
import { withoutUndefined } from '../../../shared/lib/without-undefined.ts'
import { flag, int, nullableText, text, time } from '../../db/columns.ts'
import { bundleId, personUuid, pluginId, skillId, workspaceUuid } from '../../db/id-columns.ts'
import { newestFirst, type OlderPage } from '../../db/id-page.ts'
import { onlyContaining } from '../../db/list-filters.ts'
import type { Db } from '../../db/open.ts'
import { countOf } from '../../db/reads.ts'
import { table, type RowOf } from '../../db/table.ts'

const skills = table(
  'skills',
  {
    id: skillId,
    workspaceId: workspaceUuid,
    slug: text,
    name: text,
    description: nullableText,
    sourceType: z.enum(skillSourceTypes),
    sourceLabel: nullableText,
    /** The git repository that the skill is from: its address, the folder in it, and the commit; null: it is from none. */
    repoUrl: nullableText,
    repoPath: nullableText,
    repoSha: nullableText,
    pluginId: pluginId.nullable(),
    enabledByDefault: flag,
    bundleId,
    /** The number of the bundle, from 1; one more with each bundle. */
    bundleVersion: int,
    fileCount: int,
    totalBytes: int,
    skillMdTokens: int,
    unavailableReason: z.enum(unavailableReasons).nullable(),
    /** UUID of who last wrote its files; null: nobody is known. */
    writtenByUuid: personUuid.nullable(),
    /** UUID of who last wrote its name or its description; null: nobody is known. */
    describedByUuid: personUuid.nullable(),
    version: int,
    createdAt: time,
    updatedAt: time,
  },
  { columns: { writtenByUuid: 'written_by_user_id', describedByUuid: 'described_by_user_id' } },
)
export type SkillRow = RowOf<typeof skills>

export async function insertSkill(db: Db, skill: SkillRow): Promise<void> {
  await skills.insert(db, skill)
}

/** Fails with `transient_conflict` when somebody else changed it since it was read. */
export async function replaceSkill(db: Db, before: SkillRow, after: SkillRow): Promise<void> {
  await skills.replace(db, before, after)
}

export async function findSkill(db: Db, workspaceId: WorkspaceUuid, id: SkillId): Promise<SkillRow | null> {
  return skills.find(db, { workspaceId, id })
}

const bySlug = skills.query('where workspace_id = ? and slug = ? order by created_at, id limit 100')

/** Lists the skills with this slug, of which plugins may bring several. */
export const listSkillsBySlug = (db: Db, workspaceId: WorkspaceUuid, slug: string): Promise<SkillRow[]> =>
  bySlug.list(db, [workspaceId, slug])

const ofPlugin = skills.query('where workspace_id = ? and plugin_id = ? order by slug, id')
export const listSkillsOfPlugin = (db: Db, workspaceId: WorkspaceUuid, pluginId: PluginId): Promise<SkillRow[]> =>
  ofPlugin.list(db, [workspaceId, pluginId])

const own = z.object({ slug: text })
/** Says which of these slugs skills have that belong to no plugin; that of the one that is built in is taken in any case. */
export async function listTakenSlugs(
  db: Db,
  workspaceId: WorkspaceUuid,
  slugs: readonly string[],
): Promise<Set<string>> {
  const rows = (await db('skills')
    .where({ workspace_id: workspaceId })
    .whereNull('plugin_id')
    .whereIn('slug', [...slugs])
    .select('slug')) as unknown[]
  const builtin = slugs.filter((slug) => slug === svcSkill.slug)
  return new Set([...builtin, ...rows.map((row) => own.parse(row).slug)])
}

/** Removes a skill without overrides. */
export async function removeSkill(db: Db, id: SkillId): Promise<void> {
  await db('skills').where({ id }).delete()
}

export interface SkillFilter extends OlderPage {
  workspaceId: WorkspaceUuid
  sourceType?: SkillRow['sourceType']
  pluginId?: PluginId
  enabledByDefault?: boolean
  isFromRepo?: boolean
  q?: string
}

/** Lists skills newest first; returns one row more than `limit`. */
export async function listSkills(db: Db, filter: SkillFilter): Promise<SkillRow[]> {
  const { workspaceId, sourceType, pluginId, enabledByDefault, isFromRepo, q } = filter
  const query = skills
    .from(db)
    .where(skills.toColumns(withoutUndefined({ workspaceId, sourceType, pluginId, enabledByDefault })))
  if (isFromRepo === true) void query.whereNotNull('repo_url')
  onlyContaining(query, ['slug', 'name', 'description'], q)
  return skills.list(newestFirst(query, filter))
}

export async function countSkills(db: Db, workspaceId: WorkspaceUuid): Promise<number> {
  return countOf(db('skills').where({ workspace_id: workspaceId }))
}
