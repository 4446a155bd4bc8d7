import type { RunSpec } from '../../shared/runs/spec.ts'
import { takesSkills } from '../../shared/runs/takes-skills.ts'
import type { Tx } from '../db/open.ts'
import { findSkillsGiven } from '../resources/runs/skills-given.ts'
import type { RunRow } from '../resources/runs/store.ts'

/** The spec with what it needs where a session is gone on with, or for a new session. */
export async function goingOn(
  tx: Tx,
  parent: { run: RunRow; sessionId: string | null } | null,
  spec: RunSpec,
  promptAnew: string,
): Promise<RunSpec> {
  if (parent === null || spec.resumeSessionId === null) return { ...spec, prompt: promptAnew }
  if (!takesSkills(spec)) return spec
  const given = await findSkillsGiven(tx, parent.run.id)
  return { ...spec, sessionSkills: { digest: given?.digest ?? null, promptAnew } }
}
