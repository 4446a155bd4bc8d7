import { idFrom, type WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { skillId } from '../../../../shared/api/skill-fields.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { lookUpAgent } from '../../agents/lookup.ts'
import type { AgentRow } from '../../agents/store.ts'
import { svcSkill } from '../../../../shared/runs/svc-skill.ts'
import { builtinSkill, builtinSkillId } from './builtin.ts'
import { findBuiltin } from './builtin-store.ts'
import { findSkill, listSkillsBySlug, type SkillRow } from '../store.ts'

/** The skill with this id, or else with this slug. Fails with `skill_not_found` and `ambiguous_skill_ref`. */
export async function lookUpSkill(
  db: Db,
  { workspaceId }: Pick<Caller, 'workspaceId'>,
  reference: string,
): Promise<SkillRow> {
  const named = skillId.safeParse(reference).success ? await findSkill(db, workspaceId, idFrom(reference)) : null
  if (named !== null) return named
  const isBuiltin = reference === builtinSkillId || reference === svcSkill.slug
  const builtin = isBuiltin ? await builtinOf(db, workspaceId) : null
  if (builtin !== null && reference === builtin.id) return builtin
  const found = [...(await listSkillsBySlug(db, workspaceId, reference)), ...(builtin === null ? [] : [builtin])]
  if (found.length > 1)
    fail('ambiguous_skill_ref', { param: 'skillId', details: { candidates: found.map(({ id }) => id) } })
  return found[0] ?? fail('skill_not_found', { param: 'skillId' })
}

/** The skill that is built in; null: the workspace has its own in its place. */
export async function builtinOf(db: Db, workspaceId: WorkspaceUuid): Promise<SkillRow | null> {
  const facts = await findBuiltin(db, { workspaceId })
  return facts && builtinSkill(workspaceId, facts)
}

/** Fails with `skill_not_found` when there is no such agent that the caller sees. */
export async function agentOfSkills(db: Db, caller: Caller, reference: string): Promise<AgentRow> {
  const agent = await lookUpAgent(db, caller, reference)
  return agent === null || agent.deletedAt !== null ? fail('skill_not_found', { param: 'agentId' }) : agent
}
