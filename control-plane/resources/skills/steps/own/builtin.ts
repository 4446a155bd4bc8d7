import type { AgentRef, SkillId } from '../../../../../shared/lib/ids.ts'
import type { Db } from '../../../../db/open.ts'
import { builtinBundle, isBuiltin, isBuiltinListed, withBuiltin } from '../../own/builtin.ts'
import { findBuiltin, putBuiltinSetting, removeBuiltinOverride } from '../../own/builtin-store.ts'
import { findBundle, type BundleRow } from '../../bundle-store.ts'
import { builtinOf } from '../../own/lookup.ts'
import { listOverrides, putOverride, removeOverride } from '../../override-store.ts'
import { listSkills, type SkillFilter, type SkillRow } from '../../store.ts'

// Skills whether they have rows or are built in.

/** Like `listSkills`. */
export async function listAllSkills(db: Db, filter: SkillFilter): Promise<SkillRow[]> {
  const rows = await listSkills(db, filter)
  const builtin = await builtinOf(db, filter.workspaceId)
  return builtin !== null && isBuiltinListed(builtin, filter) ? withBuiltin(rows, builtin, filter) : rows
}

export async function bundleOf(
  db: Db,
  skill: SkillRow,
): Promise<Pick<BundleRow, 'bundleHash' | 'files' | 'frontMatter'> | null> {
  return isBuiltin(skill) ? builtinBundle : findBundle(db, skill.workspaceId, skill.bundleId)
}

interface OfAgent {
  skill: SkillRow
  agentRef: AgentRef
}

export async function setOverride(
  db: Db,
  { skill, agentRef, enabled, now }: OfAgent & { enabled: boolean; now: number },
): Promise<void> {
  const { workspaceId } = skill
  if (isBuiltin(skill)) await putBuiltinSetting(db, { workspaceId, agentRef, enabled, now })
  else await putOverride(db, { skillId: skill.id, agentRef, enabled })
}

export async function clearOverride(db: Db, { skill, agentRef }: OfAgent): Promise<void> {
  const { workspaceId } = skill
  if (isBuiltin(skill)) await removeBuiltinOverride(db, { workspaceId, agentRef })
  else await removeOverride(db, { skillId: skill.id, agentRef })
}

/** The overrides of an agent for these skills of one workspace, by their ids. */
export async function overridesOf(
  db: Db,
  agentRef: AgentRef,
  skills: readonly SkillRow[],
): Promise<Map<SkillId, boolean>> {
  const overrides = await listOverrides(
    db,
    agentRef,
    skills.map(({ id }) => id),
  )
  const builtin = skills.find(isBuiltin)
  const facts = builtin && (await findBuiltin(db, { workspaceId: builtin.workspaceId, agentRef }))
  if (builtin && facts?.override != null) overrides.set(builtin.id, facts.override)
  return overrides
}
