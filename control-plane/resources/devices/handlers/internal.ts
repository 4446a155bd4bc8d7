import type { DeviceRef, DeviceUuid, PersonUuid, WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { deviceInternalRoutes } from '../../../../shared/api/device-internal.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { serverProof } from '../../../../shared/device/server-proof.ts'
import type { Db } from '../../../db/open.ts'
import { implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { hashToken, newToken } from '../../../http/token-hash.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { listFoldersOfDevice } from '../../folders/store.ts'
import { listLiveOfDevice } from '../../runs/live-store.ts'
import { findWorkspace } from '../../workspaces/store.ts'
import { deviceOfToken } from '../lookup.ts'
import { removeDevice, revokeConnection } from '../steps/remove.ts'
import { findDeviceEver, insertDevice, type DeviceRow } from '../store.ts'

type Dependencies = Pick<ResourceDependencies, 'heartbeatMs' | 'leaseMs' | 'publicUrl'>

const maxConcurrentDefault = 3

export function deviceInternalHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(deviceInternalRoutes, {
    enrol: (input) => enrol(input, deps),

    async prove({ db, caller, body }) {
      const device = await ownDeviceEver(db, caller, body.publicId)
      const hashes = device.removedAt === null ? [device.tokenHash, device.nextTokenHash] : []
      const proofs: string[] = []
      for (const hash of hashes) if (hash !== null) proofs.push(await serverProof(hash, body))
      return { proofs }
    },

    async disconnect({ db, world, bearer }) {
      const device = await deviceOfToken(db, bearer, world.now())
      const live = (await listLiveOfDevice(db, device.publicId)).filter((run) => run.leaseState === 'claimed')
      if (live.length > 0)
        fail('http_exception', {
          status: 409,
          message: `This device executes ${live.length === 1 ? 'a run' : `${live.length} runs`}. Wait, or cancel first.`,
          details: { runIds: live.map((run) => run.id) },
        })
      await removeDevice(db, device, world)
    },

    async config({ db, world, bearer }) {
      const device = await deviceOfToken(db, bearer, world.now())
      const workspace = await findWorkspace(db, device.workspaceId)
      const folders = await listFoldersOfDevice(db, device.workspaceId, device.publicId)
      return {
        publicId: device.publicId,
        deviceId: device.deviceUuid,
        workspaceId: device.workspaceId,
        displayName: device.displayName,
        maxConcurrent: device.maxConcurrent,
        isWorkspaceDefault: workspace?.defaultDevice === device.publicId,
        remoteControlRevoked: device.remoteControlRevokedAt !== null,
        heartbeatMs: deps.heartbeatMs,
        leaseMs: deps.leaseMs,
        folders: folders.map(({ shortId, displayName, rootPath }) => ({ shortId, displayName, rootPath })),
      }
    },
  })
}

type Enrol = HandlerInput<typeof deviceInternalRoutes.enrol>

async function enrol(input: Enrol, deps: Dependencies) {
  const { db, caller, body, world } = input
  if (caller.via !== 'login_token')
    fail('http_exception', { message: 'A device is connected with a login token; run `svc login` first.' })
  const before = body.publicId === undefined ? null : await ownDeviceEver(db, caller, body.publicId)
  const at = world.now()
  if (before?.removedAt === null) await revokeConnection(db, before, at)
  const token = newToken(world, 'svc_dev_')
  const device = {
    deviceUuid: world.uuid<DeviceUuid>(),
    publicId: before?.publicId ?? world.id('dvc_'),
    workspaceId: caller.workspaceId,
    personUuid: caller.personUuid,
    displayName: body.displayName ?? before?.displayName ?? body.hostname.slice(0, 100),
    hostname: before?.isHostnameSet === true ? before.hostname : body.hostname,
    isHostnameSet: before?.isHostnameSet ?? false,
    platform: body.platform,
    version: body.version,
    maxConcurrent: before?.maxConcurrent ?? maxConcurrentDefault,
    runsBy: before?.runsBy ?? ('members' as const),
    // Removing a device ends a person's settings of it, but connecting it anew does not undo a revocation that still
    // holds.
    remoteControlRevokedAt: before?.removedAt === null ? before.remoteControlRevokedAt : null,
    tokenHash: hashToken(token),
    at,
  }
  await insertDevice(db, device)
  const { publicId, deviceUuid, displayName } = device
  return { publicId, deviceId: deviceUuid, token, displayName, server: deps.publicUrl() }
}

/** A device of somebody else, or of another workspace, looks like an unknown one. */
async function ownDeviceEver(
  db: Db,
  caller: { personUuid: PersonUuid | null; workspaceId: WorkspaceUuid },
  publicId: DeviceRef,
): Promise<DeviceRow> {
  const known = await findDeviceEver(db, publicId)
  if (known === null || known.personUuid !== caller.personUuid || known.workspaceId !== caller.workspaceId)
    return fail('resource_not_found', { param: 'publicId', message: 'You have no such device here.' })
  return known
}
