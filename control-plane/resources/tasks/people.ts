import { hasPrefix, type PersonRef, type PersonUuid, type TaskId } from '../../../shared/lib/ids.ts'
import type { Db } from '../../db/open.ts'
import { findUserByPublicId } from '../members/store.ts'
import { listWatchers } from './own/watcher-store.ts'
import { findTaskById } from './store.ts'

/** Lists the people whose affair a task is: who made it, who gave it to its assignee, and who watches it. */
export async function listPeopleOfTask(db: Db, id: TaskId): Promise<PersonUuid[]> {
  const task = await findTaskById(db, id)
  if (task === null) return []
  const refs = [task.createdByRef, ...(await listWatchers(db, id)).map(({ subjectRef }) => subjectRef)]
  const people = refs.filter((ref): ref is PersonRef => ref !== null && hasPrefix(ref, 'usr_'))
  const found = task.assignedByUuid === null ? [] : [task.assignedByUuid]
  for (const ref of people) {
    const user = await findUserByPublicId(db, ref)
    if (user !== null) found.push(user.id)
  }
  return found
}
