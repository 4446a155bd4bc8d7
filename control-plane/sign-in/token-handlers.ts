import { authInternalRoutes, type LoginTokenEntry } from '../../shared/api/auth-internal.ts'
import { version } from '../../shared/lib/version.ts'
import { fail } from '../../shared/api/errors.ts'
import { loginTokenId, toTimestamp } from '../../shared/api/ids.ts'
import { timeAndId, beforeOf, pageByTime } from '../../shared/api/paging.ts'
import { hashToken } from '../http/token-hash.ts'
import { hasRole } from '../http/callers.ts'
import { implement, type ImplementedRoute } from '../http/implement.ts'
import { listLoginTokens, revokeTokenIn, type LoginTokenRow } from './token-store.ts'

const cursorKey = timeAndId(loginTokenId)

/** Handles who a person is, and their login tokens. A login token acts in one workspace, so each sees only those of its own workspace. */
export function authHandlers(): ImplementedRoute[] {
  return implement(authInternalRoutes, {
    me: ({ caller: { personRef, name, email, workspaceId, role } }) =>
      Promise.resolve({ userId: personRef, name, email, workspaceId, role, release: version }),

    async listTokens({ db, world, caller, query, bearer }) {
      if (query.all && !hasRole(caller, 'admin'))
        fail('http_exception', { message: 'Only a workspace admin may list the tokens of everybody.', param: 'all' })
      const rows = await listLoginTokens(db, {
        workspaceId: caller.workspaceId,
        personUuid: query.all ? null : caller.personUuid,
        now: world.now(),
        limit: query.limit,
        ...beforeOf(query, cursorKey),
      })
      const own = bearer === null ? null : hashToken(bearer)
      return pageByTime(rows, query.limit, (row) => present(row, own))
    },

    async revokeToken({ db, world, caller, params }) {
      const personUuid = hasRole(caller, 'admin') ? null : caller.personUuid
      const token = { id: params.id, personUuid, workspaceId: caller.workspaceId }
      if (!(await revokeTokenIn(db, token, world.now()))) fail('resource_not_found', { param: 'id' })
      return { id: params.id, revoked: true as const }
    },
  })
}

function present(row: LoginTokenRow, ownHash: string | null): LoginTokenEntry {
  return {
    id: row.id,
    name: row.name,
    userId: row.personRef,
    email: row.email,
    workspaceId: row.workspaceId,
    createdAt: toTimestamp(row.createdAt),
    lastUsedAt: toTimestamp(row.lastUsedAt),
    expiresAt: toTimestamp(row.expiresAt),
    isCurrent: row.tokenHash === ownHash,
  }
}
