import type { Knex } from 'knex'
import type { ReplyOf } from '../../../shared/api/route.ts'
import type { workspaceRoutes } from '../../../shared/api/workspaces.ts'
import type { WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { Db, Tx } from '../../db/open.ts'
import type { Caller } from '../../http/callers.ts'
import type { WorkspaceRow } from './store.ts'

export type WorkspaceCounts = ReplyOf<typeof workspaceRoutes.stats>

/**
 * The content of a workspace, and what a change of the workspace means for it. A workspace knows none of it, so `routes.ts` gives this to
 * the handlers of workspaces (`resources/workspace-content`).
 */
export interface WorkspaceContent {
  /** Counts what the caller sees. */
  count(db: Db, caller: Caller): Promise<WorkspaceCounts>
  /** Writes all of it as Markdown, in pieces. Fails at its first piece when too many are written, or when the workspace is gone. */
  write(root: Knex, workspaceId: WorkspaceUuid, now: () => number): AsyncGenerator<string>
  /** The budget of the workspace is another one. */
  budgetChanged(tx: Tx, workspace: WorkspaceRow, world: World): Promise<void>
  /** The agents of the workspace may work again. `at` in ms. */
  resumed(tx: Tx, workspaceId: WorkspaceUuid, at: number): Promise<void>
}
