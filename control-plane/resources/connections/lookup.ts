import { idFrom, type PersonUuid } from '../../../shared/lib/ids.ts'
import { fail } from '../../../shared/api/errors.ts'
import { connectionId } from '../../../shared/api/ids.ts'
import type { Db } from '../../db/open.ts'
import type { Caller } from '../../http/callers.ts'
import { listUsersByIds } from '../members/store.ts'
import { findWorkspace } from '../workspaces/store.ts'
import type { Owner } from './own/present.ts'
import { findConnection, type ConnectionRow } from './store.ts'

/** Returns the person whose own connections the caller sees beside those of the workspace; null: an agent sees the latter alone. */
export const viewerOfConnections = (caller: Caller): PersonUuid | null =>
  caller.kind === 'person' ? caller.personUuid : null

/** Fails with `connection_not_found` when there is none that the caller sees. */
export async function lookUpConnection(db: Db, caller: Caller, id: string): Promise<ConnectionRow> {
  const found = connectionId.safeParse(id).success ? await findConnection(db, caller.workspaceId, idFrom(id)) : null
  const isSeen = found !== null && (found.ownerUuid === null || found.ownerUuid === viewerOfConnections(caller))
  return isSeen ? found : fail('connection_not_found')
}

/** The owners of connections of one workspace. */
export async function ownersOf(db: Db, rows: readonly ConnectionRow[]): Promise<(row: ConnectionRow) => Owner> {
  const [first] = rows
  const workspace = first === undefined ? null : await findWorkspace(db, first.workspaceId)
  const users = await listUsersByIds(db, [...new Set(rows.flatMap(({ ownerUuid: id }) => (id === null ? [] : [id])))])
  return ({ ownerUuid }) => {
    if (ownerUuid === null) return { type: 'company', id: workspace?.slug ?? '', label: workspace?.name ?? '' }
    const user = users.find(({ id }) => id === ownerUuid)
    return { type: 'user', id: user?.publicId ?? '', label: user?.name ?? '' }
  }
}
