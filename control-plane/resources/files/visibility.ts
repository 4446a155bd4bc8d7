import type { ActorRef } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'

/** The viewer for whom files are looked up; null sees all of the workspace. */
export type FileViewer = { type: 'user' | 'agent'; id: ActorRef } | null

/** Keeps what this viewer sees: what is open to the company, a person's own, and what an agent uploaded. */
export function onlyVisibleFiles(query: Knex.QueryBuilder, viewer: FileViewer): void {
  if (viewer === null) return
  void query.where((any) => {
    void any.where({ visibility: 'company' })
    if (viewer.type === 'user') void any.orWhere({ owner_user_id: viewer.id })
    else void any.orWhere({ created_by_type: 'agent', created_by_id: viewer.id })
  })
}
