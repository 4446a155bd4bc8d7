import type { RunId } from '../../../shared/lib/ids.ts'
import { skillsGiven, type SkillsGiven } from '../../../shared/runs/skills.ts'
import type { Db } from '../../db/open.ts'
import { listOpeningEvents } from './event-log.ts'

/** The skills that the run was given, as its device told; null: it told nothing, or not yet. */
export async function findSkillsGiven(db: Db, runId: RunId): Promise<SkillsGiven | null> {
  const event = (await listOpeningEvents(db, runId)).find(({ kind }) => kind === 'skills')
  return event === undefined ? null : (skillsGiven.safeParse(event.data).data ?? null)
}
