import { idFrom, type WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import { skillFile } from '../../../../shared/api/skill-fields.ts'
import { svcSkill } from '../../../../shared/runs/svc-skill.ts'
import { byteLength } from '../../../../shared/lib/byte-length.ts'
import { hashOfFiles } from '../bundle.ts'
import type { BundleFile, BundleRow } from '../bundle-store.ts'
import type { BuiltinFacts } from './builtin-store.ts'
import { tokensOf } from '../rules.ts'
import type { SkillFilter, SkillRow } from '../store.ts'

// The skill `svc` as a skill among others (pure): it has no row, and its files are those of this release.

/** The id is the same in all workspaces; the least of all ids, so that it is the oldest of those of one moment. */
export const builtinSkillId = '0000000000000svc'

const sizeBytes = byteLength(svcSkill.file)
const files: BundleFile[] = [
  { path: skillFile, sizeBytes, sha256: createHash('sha256').update(svcSkill.file).digest('hex'), executable: false },
]

export const builtinBundle: Pick<BundleRow, 'bundleHash' | 'files' | 'frontMatter'> = {
  bundleHash: hashOfFiles(files),
  files,
  frontMatter: { name: svcSkill.slug, description: svcSkill.description, allowedTools: [] },
}

/** null: it has no such file. */
export function readBuiltinFile(path: string): { file: BundleFile; bytes: Buffer } | null {
  const file = files.find((one) => one.path === path)
  return file === undefined ? null : { file, bytes: Buffer.from(svcSkill.file) }
}

export function builtinSkill(workspaceId: WorkspaceUuid, { createdAt, enabled, updatedAt }: BuiltinFacts): SkillRow {
  return {
    id: idFrom(builtinSkillId),
    workspaceId,
    slug: svcSkill.slug,
    name: svcSkill.name,
    description: svcSkill.description,
    sourceType: 'builtin',
    sourceLabel: null,
    repoUrl: null,
    repoPath: null,
    repoSha: null,
    pluginId: null,
    enabledByDefault: enabled ?? true,
    bundleId: idFrom(''),
    bundleVersion: 1,
    fileCount: files.length,
    totalBytes: sizeBytes,
    skillMdTokens: tokensOf(sizeBytes),
    unavailableReason: null,
    writtenByUuid: null,
    describedByUuid: null,
    version: 1,
    createdAt,
    updatedAt: updatedAt ?? createdAt,
  }
}

export const isBuiltin = ({ id }: Pick<SkillRow, 'id'>): boolean => id === builtinSkillId

/** Returns whether a run of the agent of which these facts are gets the skill. */
export const isBuiltinEffective = ({ override, enabled }: BuiltinFacts): boolean => override ?? enabled ?? true

type Page = Pick<SkillFilter, 'before' | 'after' | 'limit'>

/** Puts it at its place among rows of a page that are read with one more than `limit`. */
export function withBuiltin(rows: readonly SkillRow[], builtin: SkillRow, { before, after, limit }: Page): SkillRow[] {
  const isOlder = ({ createdAt }: Pick<SkillRow, 'createdAt'>) => createdAt < builtin.createdAt
  const isPast =
    after === undefined ? before !== undefined && (isOlder(before) || before.id === builtin.id) : !isOlder(after)
  if (isPast) return [...rows]
  const at = rows.findIndex((row) => isOlder(row) === (after === undefined))
  return rows.toSpliced(at < 0 ? rows.length : at, 0, builtin).slice(0, limit + 1)
}

/** Returns whether the skill is among what a list is asked for. */
export function isBuiltinListed(
  builtin: SkillRow,
  { sourceType, pluginId, enabledByDefault, isFromRepo, q }: SkillFilter,
): boolean {
  const words = [builtin.slug, builtin.name, builtin.description ?? ''].map((text) => text.toLowerCase())
  return (
    (sourceType ?? 'builtin') === 'builtin' &&
    pluginId === undefined &&
    isFromRepo !== true &&
    (enabledByDefault ?? builtin.enabledByDefault) === builtin.enabledByDefault &&
    (q === undefined || words.some((text) => text.includes(q.toLowerCase())))
  )
}
