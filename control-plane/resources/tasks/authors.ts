import type { Db } from '../../db/open.ts'
import type { Speaker } from '../../trust/quote.ts'
import type { Person } from '../../trust/rules.ts'
import { listUsersByIds } from '../members/store.ts'
import { authorsOf } from './rules.ts'
import type { TaskRow } from './store.ts'

/** Returns who the person is that wrote of a task; null: nobody is known. */
export type AuthorOf = (person: Person) => Speaker | null

/** The authors of these tasks, loaded once for all of them. */
export async function loadAuthors(db: Db, tasks: readonly TaskRow[]): Promise<AuthorOf> {
  const ids = new Set(tasks.flatMap(authorsOf).filter((id) => id !== null))
  const people = new Map(
    (await listUsersByIds(db, [...ids])).map(({ id, publicId, name }) => [id, { id: publicId, name }]),
  )
  return (person) => (person === null ? null : (people.get(person) ?? null))
}
