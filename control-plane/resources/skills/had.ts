import { svcSkill } from '../../../shared/runs/svc-skill.ts'
import { inOneTrip } from '../../db/one-trip.ts'
import type { Db } from '../../db/open.ts'
import type { AgentRow } from '../agents/store.ts'
import { isBuiltinEffective } from './own/builtin.ts'
import { findBuiltin } from './own/builtin-store.ts'
import { listEffectiveSkills } from './effective-store.ts'
import { mostSkills, type HadSkills } from './offered.ts'

/** Returns the skills that a run of the agent is to have. */
export async function skillsHadBy(db: Db, { id: agentRef, workspaceId }: AgentRow): Promise<HadSkills> {
  const [skills, facts] = await inOneTrip(db, [
    () => listEffectiveSkills(db, { workspaceId, agentRef, limit: mostSkills }),
    () => findBuiltin(db, { workspaceId, agentRef }),
  ])
  // A skill that somebody chose wins: a plugin may bring one of this slug.
  const isChosen = skills.some(({ slug }) => slug === svcSkill.slug)
  return { skills, hasSvcSkill: facts !== null && isBuiltinEffective(facts) && !isChosen }
}
