import type { DeviceUuid } from '../../../../shared/lib/ids.ts'
import { deviceRoutes } from '../../../../shared/api/devices.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import { fail, failPlain } from '../../../../shared/api/errors.ts'
import type { BodyOf } from '../../../../shared/api/route.ts'
import { limitName } from '../../../../shared/device/used-limits.ts'
import type { Db } from '../../../db/open.ts'
import { hasRole, type PersonCaller } from '../../../http/callers.ts'
import { implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { accountsOf, limitsInUse, limitsOf } from '../../quotas/rules.ts'
import { listCircuits, listQuotaUses, listQuotaWindows } from '../../quotas/store.ts'
import { findWorkspace } from '../../workspaces/store.ts'
import { findOwnedDevice } from '../lookup.ts'
import { presentDevice } from '../own/present.ts'
import { changeDevice } from '../steps/own/change.ts'
import { removeDevice } from '../steps/remove.ts'
import { findDevice, listDevicesOfUser, type DeviceRow } from '../store.ts'

type Dependencies = Pick<ResourceDependencies, 'leaseMs'>

export function deviceHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(deviceRoutes, {
    async list({ db, caller, world }) {
      const context = await contextOf(db, caller, { now: world.now(), leaseMs: deps.leaseMs })
      const devices = await listDevicesOfUser(db, caller.workspaceId, caller.personUuid)
      return { devices: devices.map((device) => presentDevice(device, context)) }
    },

    update: (input) => update(input, deps),

    async delete({ db, caller, params, world }) {
      const device = await findInWorkspace(db, caller, params.id)
      if (device === null) failPlain('plain.device_not_found')
      if (device.personUuid !== caller.personUuid) failPlain('plain.device_not_owned')
      await removeDevice(db, device, world)
    },
  })
}

type Body = BodyOf<typeof deviceRoutes.update>

async function update(input: HandlerInput<typeof deviceRoutes.update>, deps: Dependencies) {
  const { db, caller, params, body, world } = input
  const device = await ownDevice(db, caller, { id: params.id, body })
  const at = world.now()
  await changeDevice(db, device, { body, at })
  const context = await contextOf(db, caller, { now: at, leaseMs: deps.leaseMs })
  return presentDevice((await findDevice(db, device.deviceUuid)) ?? device, context)
}

/** The device to change. Changes of the control over it are refused with codes, other changes with plain strings. */
async function ownDevice(db: Db, caller: PersonCaller, change: { id: DeviceUuid; body: Body }): Promise<DeviceRow> {
  const { isWorkspaceDefault, remoteControlRevoked, runsBy } = change.body
  const isControl = isWorkspaceDefault !== undefined || remoteControlRevoked !== undefined || runsBy !== undefined
  const device = await findInWorkspace(db, caller, change.id)
  if (device === null) {
    if (!isControl) return failPlain('plain.device_not_found')
    const onlyDefault = isWorkspaceDefault === true && remoteControlRevoked === undefined && runsBy === undefined
    return fail(onlyDefault ? 'resource_not_found' : 'device_not_found', { param: 'id' })
  }
  if (device.personUuid !== caller.personUuid)
    return isControl ? fail('remote_access_forbidden') : failPlain('plain.device_not_owned')
  if (isWorkspaceDefault === true && !hasRole(caller, 'admin'))
    fail('http_exception', {
      param: 'isWorkspaceDefault',
      message: 'Only workspace admins make their device the default one, to which the work of all members goes.',
    })
  return device
}

async function findInWorkspace(db: Db, caller: PersonCaller, deviceUuid: DeviceUuid): Promise<DeviceRow | null> {
  const device = await findOwnedDevice(db, deviceUuid)
  return device?.workspaceId === caller.workspaceId ? device : null
}

async function contextOf(db: Db, caller: PersonCaller, moment: { now: number; leaseMs: number }) {
  const workspace = await findWorkspace(db, caller.workspaceId)
  const { now } = moment
  const [windows, open, uses] = [
    await listQuotaWindows(db, caller.workspaceId, now),
    await listCircuits(db, caller.workspaceId, now),
    await listQuotaUses(db, caller.workspaceId, now),
  ]
  const holderOf = (device: DeviceRow) => ({ ...device, accounts: accountsOf(device.providerReadiness) })
  const limitsOfDevice = (device: DeviceRow) =>
    limitsOf(holderOf(device), { windows, open }).map(({ since, until, ...limit }) => ({
      ...limit,
      since: toTimestamp(since),
      until: toTimestamp(until),
    }))
  const limitsInUseOf = (device: DeviceRow) =>
    limitsInUse(holderOf(device), { uses, now }).map(({ resetsAt, toldAt, ...limit }) => ({
      ...limit,
      limit: limitName(limit),
      resetsAt: toTimestamp(resetsAt),
      toldAt: toTimestamp(toldAt),
    }))
  return { ...moment, defaultDevice: workspace?.defaultDevice ?? null, limitsOf: limitsOfDevice, limitsInUseOf }
}
