import type { PersonUuid, WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Tx } from '../../../db/open.ts'
import { fail, failPlain } from '../../../../shared/api/errors.ts'
import { memberRoutes, type Member } from '../../../../shared/api/members.ts'
import { hasRole, type PersonCaller } from '../../../http/callers.ts'
import { implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { wholeList } from '../../../http/whole-list.ts'
import { namedWorkspace } from '../../workspaces/lookup.ts'
import { listMembers, removeMember, revokeLoginTokensOf, type MemberRow } from '../store.ts'

/** The end of what goes on in the name of a member when they leave; a member knows none of it (`resources/departures`). */
interface Departure {
  endWorkOf(tx: Tx, member: { workspaceId: WorkspaceUuid; personUuid: PersonUuid }, world: World): Promise<void>
}

export function memberHandlers(departure: Departure): ImplementedRoute[] {
  return implement(memberRoutes, {
    async list({ db, caller }) {
      return wholeList((await listMembers(db, caller.workspaceId)).map(presentMember))
    },

    async ofWorkspace({ db, caller, params }) {
      const { id } = await namedWorkspace(db, caller, params.workspaceId)
      const members = wholeList((await listMembers(db, id)).map(presentMember))
      return hasRole(caller, 'admin') ? { ...members, invites: [] } : members
    },

    leave: (input) => leave(input, departure),

    invite: unavailable,
    changeRole: unavailable,
    remove: unavailable,
    acceptInvite: () => failPlain('plain.members_unavailable'),
  })
}

function presentMember({ publicId, name, email, role }: MemberRow): Member {
  return { userId: publicId, name, email, role }
}

async function leave({ db, caller, params, world }: HandlerInput<typeof memberRoutes.leave>, departure: Departure) {
  const workspace = await namedWorkspace(db, caller, params.workspaceId)
  if (caller.role === 'owner') fail('http_exception', { message: 'The owner cannot leave the workspace.' })
  const member = { workspaceId: workspace.id, personUuid: caller.personUuid }
  await departure.endWorkOf(db, member, world)
  await revokeLoginTokensOf(db, member, world.now())
  await removeMember(db, member)
  return { workspaceId: workspace.id, left: true as const }
}

async function unavailable({
  db,
  caller,
  params,
}: Pick<HandlerInput<typeof memberRoutes.invite>, 'db' | 'params'> & { caller: PersonCaller }): Promise<never> {
  await namedWorkspace(db, caller, params.workspaceId)
  return failPlain('plain.members_unavailable')
}
