import { memberRoutes } from '../../../shared/api/workspaces.ts'
import { implement, type ImplementedRoute } from '../../http/implement.ts'
import { wholeList } from '../whole-list.ts'
import { listMembers } from './store.ts'

export function memberHandlers(): ImplementedRoute[] {
  return implement(memberRoutes, {
    async list({ db, caller }) {
      const members = await listMembers(db, caller.workspaceId)
      return wholeList(members.map(({ publicId, name, email, role }) => ({ userId: publicId, name, email, role })))
    },
  })
}
