import type { AgentRef, SkillId } from '../../../shared/lib/ids.ts'
import { flag } from '../../db/columns.ts'
import { agentRef, skillId } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { command } from '../../db/statement.ts'
import { table } from '../../db/table.ts'

/** The settings that an agent has otherwise than the workspace says. */
const overrides = table('skill_overrides', { skillId, agentRef, enabled: flag }, { columns: { agentRef: 'agent_id' } })

const put = command(`insert into skill_overrides (skill_id, agent_id, enabled) values (?, ?, ?)
  on conflict (skill_id, agent_id) do update set enabled = excluded.enabled`)

export async function putOverride(
  db: Db,
  { skillId, agentRef, enabled }: { skillId: SkillId; agentRef: AgentRef; enabled: boolean },
): Promise<void> {
  await put(db, [skillId, agentRef, enabled ? 1 : 0])
}

/** Does nothing when there is none. */
export async function removeOverride(db: Db, of: { skillId: SkillId; agentRef: AgentRef }): Promise<void> {
  await db('skill_overrides').where(overrides.toColumns(of)).delete()
}

export async function removeOverridesOfSkill(db: Db, skillId: SkillId): Promise<void> {
  await db('skill_overrides').where({ skill_id: skillId }).delete()
}

const ofAgent = overrides.query('where agent_id = ? and skill_id in ?')

/** The overrides of an agent for these skills, by their ids. */
export async function listOverrides(
  db: Db,
  agentRef: AgentRef,
  skillIds: readonly SkillId[],
): Promise<Map<SkillId, boolean>> {
  const found = skillIds.length === 0 ? [] : await ofAgent.list(db, [agentRef, [...skillIds]])
  return new Map(found.map(({ skillId, enabled }) => [skillId, enabled]))
}
