import type { WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Db } from '../../db/open.ts'
import { runs, type RunRow } from './store.ts'

/** The last 200 runs are enough to judge a failure by. */
const latest = runs.query(
  `where workspace_id = ? and created_at > ? and ended_at is not null order by created_at desc, id desc limit 200`,
)

/** The last runs of the workspace that were created after `since` and have ended, the newest first. */
export const listEnded = (db: Db, of: { workspaceId: WorkspaceUuid; since: number }): Promise<RunRow[]> =>
  latest.list(db, [of.workspaceId, of.since])
