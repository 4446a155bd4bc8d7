import { loginTokenPrefix } from '../../shared/lib/places.ts'
import type { PersonRef, WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Db } from '../db/open.ts'
import { hashToken, newToken } from '../http/token-hash.ts'
import { insertLoginToken, type UserRow } from '../resources/members/store.ts'

export interface NewToken {
  userId: PersonRef
  workspaceId: WorkspaceUuid
  tokenId: string
  /** The login token itself, which is shown only here. */
  token: string
}

/** Makes a login token. `name`: 1 to 200 characters, checked by the caller; `lifeMs` null: until it is revoked. */
export async function issueToken(
  db: Db,
  world: World,
  grant: { user: Pick<UserRow, 'id' | 'publicId'>; workspaceId: WorkspaceUuid; name: string; lifeMs?: number | null },
): Promise<NewToken> {
  const token = newToken(world, loginTokenPrefix)
  const tokenId = world.id('tok_')
  await insertLoginToken(db, {
    id: tokenId,
    personUuid: grant.user.id,
    workspaceId: grant.workspaceId,
    tokenHash: hashToken(token),
    name: grant.name,
    at: world.now(),
    expiresAt: grant.lifeMs == null ? null : world.now() + grant.lifeMs,
  })
  return { userId: grant.user.publicId, workspaceId: grant.workspaceId, tokenId, token }
}
