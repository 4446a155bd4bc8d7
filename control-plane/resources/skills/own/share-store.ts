import type { SkillId } from '../../../../shared/lib/ids.ts'
import { int, nullableTime, text, time } from '../../../db/columns.ts'
import { personUuid, skillId, workspaceUuid } from '../../../db/id-columns.ts'
import { newestFirst, type OlderPage } from '../../../db/id-page.ts'
import type { Db } from '../../../db/open.ts'
import { command } from '../../../db/statement.ts'
import { table, type RowOf } from '../../../db/table.ts'

/** Links by which skills are shared. */
const shares = table(
  'skill_shares',
  {
    id: text,
    workspaceId: workspaceUuid,
    /** null: it is deleted. */
    skillId: skillId.nullable(),
    tokenHash: text,
    createdByUuid: personUuid,
    expiresAt: nullableTime,
    revokedAt: nullableTime,
    version: int,
    createdAt: time,
  },
  { columns: { createdByUuid: 'created_by_user_id' } },
)
export type ShareRow = RowOf<typeof shares>

export async function insertShare(db: Db, share: ShareRow): Promise<void> {
  await shares.insert(db, share)
}

export async function findShareByToken(db: Db, tokenHash: string): Promise<ShareRow | null> {
  return shares.find(db, { tokenHash })
}

export async function findShare(db: Db, skillId: SkillId, id: string): Promise<ShareRow | null> {
  return shares.find(db, { skillId, id })
}

/** Lists the links of a skill newest first; returns one row more than `limit`. */
export async function listShares(db: Db, { skillId, ...page }: OlderPage & { skillId: SkillId }): Promise<ShareRow[]> {
  return shares.list(newestFirst(shares.from(db).where({ skill_id: skillId }), page))
}

const revoke = command(
  'update skill_shares set revoked_at = ?, version = version + 1 where id = ? and revoked_at is null',
)

/** Does nothing when it is revoked already. */
export async function revokeShare(db: Db, id: string, now: number): Promise<void> {
  await revoke(db, [now, id])
}

const forget = command('update skill_shares set skill_id = null, version = version + 1 where skill_id = ?')

/** The links of a deleted skill stay, so that they say that it is gone. */
export async function forgetSkillOfShares(db: Db, skillId: SkillId): Promise<void> {
  await forget(db, [skillId])
}
