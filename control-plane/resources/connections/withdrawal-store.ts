import type { WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { int, text, time } from '../../db/columns.ts'
import { connectionId, workspaceUuid } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'
import type { OwnConnections } from './store.ts'

// Credentials of connections that are gone, of which their providers are still to be told.

const sealed = z.instanceof(Uint8Array).transform((bytes): Buffer => Buffer.from(bytes))
const goingRow = z.object({
  connectionId,
  workspaceId: workspaceUuid,
  serviceId: text,
  credential: sealed,
  version: int,
})

const withdrawals = table('connection_withdrawals', {
  /** The connection and the version of its credential. */
  id: text,
  /** The connection for which the credential is sealed. */
  connectionId,
  workspaceId: workspaceUuid,
  serviceId: text,
  credential: sealed,
  /** The number of times that the provider was asked. */
  tries: int,
  dueAt: time,
})
export type WithdrawalRow = RowOf<typeof withdrawals>

/** The connections that go: of a workspace, of a service in it, or of a person. */
type Going = OwnConnections | { workspaceId: WorkspaceUuid; serviceId?: string; personUuid?: undefined }

/** Takes the tokens out of connections that go; their providers are told later. */
export async function queueWithdrawals(db: Db, of: Going, now: number): Promise<void> {
  const { workspaceId, personUuid } = of
  const serviceId = 'serviceId' in of ? of.serviceId : undefined
  const going = {
    ...(workspaceId !== undefined && { workspace_id: workspaceId }),
    ...(serviceId !== undefined && { service_id: serviceId }),
    ...(personUuid !== undefined && { owner_user_id: personUuid }),
  }
  for (let count = perInsert; count === perInsert;) {
    const found: unknown[] = await db('connections')
      .where(going)
      .whereIn('auth_kind', ['oauth', 'mcp_oauth'])
      .whereNotNull('credential')
      .limit(perInsert)
      .select({ connectionId: 'id', workspaceId: 'workspace_id', serviceId: 'service_id', credential: 'credential' })
      .select({ version: 'credential_version' })
    const rows = found.map((row) => {
      const { version, ...held } = goingRow.parse(row)
      return { ...held, id: `${held.connectionId}:${version}`, tries: 0, dueAt: now }
    })
    await withdrawals.insert(db, rows)
    const ids = rows.map(({ connectionId }) => connectionId)
    await db('connections').whereIn('id', ids).update({ credential: null })
    count = rows.length
  }
}
/** Databases take some ten thousand values in a statement. */
const perInsert = 200

const due = withdrawals.query('where due_at <= ? order by due_at, id limit ?')
export const listDueWithdrawals = (db: Db, { now, limit }: { now: number; limit: number }): Promise<WithdrawalRow[]> =>
  due.list(db, [now, limit])

/** Counts a try, and says when the next one is due. Returns false when somebody else is at it. */
export async function claimWithdrawal(db: Db, { id, tries }: WithdrawalRow, nextAt: number): Promise<boolean> {
  return (await withdrawals.update(db, { id, tries }, { tries: tries + 1, dueAt: nextAt })) === 1
}

export async function removeWithdrawal(db: Db, id: string): Promise<void> {
  await db('connection_withdrawals').where({ id }).delete()
}

export async function hasWithdrawals(db: Db, workspaceId: WorkspaceUuid): Promise<boolean> {
  return (await db('connection_withdrawals').where({ workspace_id: workspaceId }).first('id')) !== undefined
}
