import { accessRoutes } from '../../../../shared/api/auth-internal.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import { implement, type ImplementedRoute } from '../../../http/implement.ts'
import { listMembers } from '../../members/store.ts'
import { findOwnedDevice } from '../lookup.ts'
import { removeDevice } from '../steps/remove.ts'
import { listDevicesOfWorkspace } from '../store.ts'

/** Devices of everybody in the workspace, for its admins. */
export function deviceAdminHandlers(): ImplementedRoute[] {
  return implement(accessRoutes, {
    async listDevices({ db, caller }) {
      const people = new Map((await listMembers(db, caller.workspaceId)).map((member) => [member.id, member]))
      const devices = await listDevicesOfWorkspace(db, caller.workspaceId)
      return {
        devices: devices.flatMap(({ publicId: id, displayName: name, personUuid, lastHeartbeatAt }) => {
          const person = people.get(personUuid)
          if (person === undefined) return []
          return [{ id, name, userId: person.publicId, email: person.email, lastSeenAt: toTimestamp(lastHeartbeatAt) }]
        }),
      }
    },

    async revokeDevice({ db, caller, params, world }) {
      const device = await findOwnedDevice(db, params.id)
      if (device === null || device.workspaceId !== caller.workspaceId) fail('resource_not_found', { param: 'id' })
      await removeDevice(db, device, world)
      return { id: params.id, revoked: true as const }
    },
  })
}
