import type { AgentRef } from '../../../../../shared/lib/ids.ts'
import { fail } from '../../../../../shared/api/errors.ts'
import type { Skill, SkillOverride, SkillSummary } from '../../../../../shared/api/skill-fields.ts'
import type { Db } from '../../../../db/open.ts'
import { listPluginsByIds, type PluginRow } from '../../plugin-store.ts'
import { presentOverride, presentSkill, presentSkillSummary } from '../../own/present.ts'
import { listShares } from '../../own/share-store.ts'
import type { SkillRow } from '../../store.ts'
import { bundleOf, overridesOf } from './builtin.ts'

// Skills as clients read them.

export async function pluginOf(db: Db, { pluginId }: Pick<SkillRow, 'pluginId'>): Promise<PluginRow | null> {
  return pluginId === null ? null : ((await listPluginsByIds(db, [pluginId])).get(pluginId) ?? null)
}

export async function shownSkill(db: Db, skill: SkillRow): Promise<Skill> {
  const plugin = await pluginOf(db, skill)
  const bundle = await bundleOf(db, skill)
  if (bundle === null) return fail('skill_not_found', { param: 'skillId' })
  const [latest] = await listShares(db, { skillId: skill.id, limit: 1 })
  return presentSkill(skill, { plugin, bundle, latestShareId: latest?.id ?? null })
}

async function pluginsOf(db: Db, skills: readonly SkillRow[]): Promise<(skill: SkillRow) => PluginRow | null> {
  const ids = [...new Set(skills.flatMap(({ pluginId }) => pluginId ?? []))]
  const found = await listPluginsByIds(db, ids)
  return ({ pluginId }) => (pluginId === null ? null : (found.get(pluginId) ?? null))
}

/** Returns the summaries in the order of the skills. */
export async function shownSummaries(db: Db, skills: readonly SkillRow[]): Promise<SkillSummary[]> {
  const ofSkill = await pluginsOf(db, skills)
  return skills.map((skill) => presentSkillSummary(skill, ofSkill(skill)))
}

/** Returns what one agent has of these skills, in their order. */
export async function shownOverrides(
  db: Db,
  agentRef: AgentRef,
  skills: readonly SkillRow[],
): Promise<SkillOverride[]> {
  const ofSkill = await pluginsOf(db, skills)
  const own = await overridesOf(db, agentRef, skills)
  return skills.map((skill) => presentOverride(skill, { override: own.get(skill.id), plugin: ofSkill(skill) }))
}
