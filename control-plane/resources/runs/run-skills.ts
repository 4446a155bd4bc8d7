import type { RunId } from '../../../shared/lib/ids.ts'
import { runSkills, type RunSkills } from '../../../shared/runs/skills.ts'
import type { Db } from '../../db/open.ts'
import { listOpeningEvents } from './event-log.ts'

/** The skills that the run was given, as its device told; null: it told nothing, or not yet. */
export async function findRunSkills(db: Db, runId: RunId): Promise<RunSkills | null> {
  const event = (await listOpeningEvents(db, runId)).find(({ kind }) => kind === 'skills')
  return event === undefined ? null : (runSkills.safeParse(event.data).data ?? null)
}
