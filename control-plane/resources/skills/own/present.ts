import { toTimestamp } from '../../../../shared/api/ids.ts'
import {
  skillFile,
  type ShownSkillFile,
  type Skill,
  type SkillOverride,
  type SkillShare,
  type SkillSummary,
} from '../../../../shared/api/skill-fields.ts'
import type { BundleFile, BundleRow } from '../bundle-store.ts'
import type { PluginRow } from '../plugin-store.ts'
import { isEffective, hasFixedWords } from '../rules.ts'
import type { ShareRow } from './share-store.ts'
import type { SkillRow } from '../store.ts'

export function presentSkillSummary(skill: SkillRow, plugin: PluginRow | null): SkillSummary {
  return {
    object: 'skill',
    id: skill.id,
    slug: skill.slug,
    name: skill.name,
    description: skill.description,
    version: skill.bundleVersion,
    sourceType: skill.sourceType,
    enabledByDefault: skill.enabledByDefault,
    fileCount: skill.fileCount,
    totalBytes: skill.totalBytes,
    skillMdTokenCount: skill.skillMdTokens,
    plugin: plugin && { id: plugin.id, name: plugin.name, enabled: plugin.enabled },
    unavailableReason: skill.unavailableReason,
    installedAt: toTimestamp(skill.createdAt),
    updatedAt: toTimestamp(skill.updatedAt),
  }
}

export function presentSkill(
  skill: SkillRow,
  {
    plugin,
    bundle,
    latestShareId,
  }: {
    plugin: PluginRow | null
    bundle: Pick<BundleRow, 'bundleHash' | 'files' | 'frontMatter'>
    latestShareId: string | null
  },
): Skill {
  const { description, allowedTools } = bundle.frontMatter
  return {
    ...presentSkillSummary(skill, plugin),
    namespace: plugin?.name ?? null,
    bundleHash: bundle.bundleHash,
    activation: { description: description ?? skill.description, allowedTools },
    files: bundle.files.map(presentFileOf),
    source: { type: skill.sourceType, label: skill.sourceLabel },
    share: { isShareable: !hasFixedWords(skill), latestShareId },
  }
}

export const kindOf = (path: string): ShownSkillFile['kind'] => (path === skillFile ? 'instruction' : 'reference')

export const presentFileOf = ({ path, sizeBytes, executable }: BundleFile): ShownSkillFile => ({
  path,
  kind: kindOf(path),
  sizeBytes,
  executable,
})

export function presentOverride(
  skill: SkillRow,
  { override, plugin }: { override: boolean | undefined; plugin: PluginRow | null },
): SkillOverride {
  return {
    skillId: skill.id,
    slug: skill.slug,
    name: skill.name,
    enabled: override ?? null,
    workspaceEnabled: skill.enabledByDefault,
    pluginEnabled: plugin?.enabled ?? null,
    effectiveEnabled: isEffective(skill, { override, plugin }),
  }
}

export const presentShare = ({ id, expiresAt, revokedAt, createdAt }: ShareRow): SkillShare => ({
  object: 'skill_share',
  id,
  expiresAt: toTimestamp(expiresAt),
  revokedAt: toTimestamp(revokedAt),
  createdAt: toTimestamp(createdAt),
})
