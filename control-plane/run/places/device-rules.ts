import type { DeviceRef } from '../../../shared/lib/ids.ts'
import { accountOf, circuitKey, type Quota } from '../../resources/quotas/rules.ts'
import { takesWork, type Work } from '../../trust/rules.ts'
import { gateFor, type DeviceFacts, type Gate, type Placement, type PlacementFacts, type RunFacts } from './place.ts'

// Decides from facts which device a run goes to.

/**
 * The folder's device, else the device that holds the session, the workspace's default device, then the owner's other
 * devices, the emptiest first; of a private agent the owner's devices before the default one.
 */
export function placeOnDevice(run: RunFacts, facts: PlacementFacts): Placement {
  const known = candidates(run, facts)
  const able = known.filter(isAble)
  // A device that is away while its account is closed is missed only then.
  if (able.length === 0) return { ...gateFor('no_device'), ...opening(run, known, facts) }
  const allowed = able.filter((device) => isAllowed(run, device, facts))
  if (allowed.length === 0) return gateFor('governance_refused')
  const routes = allowed.filter((device) => !device.unready.has(run.harness))
  if (routes.length === 0) {
    const advice = allowed.map(({ displayName, unready }) => ({
      device: displayName,
      message: unready.get(run.harness) ?? null,
    }))
    return { ...gateFor(run.folderDevice === null ? 'no_ready_route' : 'pinned_route_not_ready'), advice }
  }
  const open = routes.filter((device) => hasQuota(quotaFor(run, device, facts)))
  if (open.length === 0) return { ...gateFor('rate_limit'), ...opening(run, routes, facts) }
  const working = open.filter((device) => hasQuota(circuitFor(run, device, facts)))
  if (working.length === 0)
    return { ...gateFor('provider_overloaded'), ...firstOf(open.map((device) => circuitFor(run, device, facts))) }
  const ready = working.filter(hasRoom)
  // A device that lost its link is ignored, but not the one with the session: it may only be restarting its daemon.
  const free = ready.find((device) => device.isLinked || device.publicId === run.sessionDevice) ?? ready[0]
  return free ? { kind: 'device', publicId: free.publicId } : gateFor('capacity')
}

export const quotaFor = (run: RunFacts, device: DeviceFacts, { quotas }: PlacementFacts): Quota | undefined =>
  quotas.get(accountOf(device, run.harness, run.keyId))

export const circuitFor = (run: RunFacts, { publicId }: DeviceFacts, { circuits }: PlacementFacts): Quota | undefined =>
  circuits.get(circuitKey({ device: publicId, provider: run.provider }))

/** Returns when the first of the devices' accounts opens; empty where one is open. */
const opening = (run: RunFacts, devices: readonly DeviceFacts[], facts: PlacementFacts): Pick<Gate, 'opensAt'> =>
  firstOf(devices.map((device) => quotaFor(run, device, facts)))

const firstOf = (quotas: readonly (Quota | undefined)[]): Pick<Gate, 'opensAt'> =>
  quotas.length === 0 || quotas.some(hasQuota) ? {} : { opensAt: Math.min(...quotas.map((quota) => quota!.opensAt)) }

/** An account without an entry has reached no limit. */
const hasQuota = (quota: Quota | undefined): boolean => quota === undefined || quota.room > 0

export const hasRoom = (device: DeviceFacts): boolean => device.accepting && device.used < device.capacity

const isAble = (device: DeviceFacts): boolean =>
  device.liveness === 'connected' && !device.isController && !device.remoteControlRevoked

const isAllowed = (run: RunFacts, device: DeviceFacts, { admins }: PlacementFacts): boolean =>
  !run.isCauseGone &&
  !(run.isOwnerAsked && device.personUuid === run.ownerUuid) &&
  takesWork(device, workOf(run), admins)

const workOf = ({ causedByUuid, wordsBy, isConfidential, ownerUuid: programBy }: RunFacts): Work => ({
  causedByUuid,
  wordsBy,
  programBy,
  isConfidential,
})

export function isRefusedByDevices(run: RunFacts, facts: PlacementFacts): boolean {
  const able = candidates(run, facts).filter(isAble)
  return able.length > 0 && !able.some((device) => isAllowed(run, device, facts))
}

const candidates = (run: RunFacts, facts: PlacementFacts): DeviceFacts[] =>
  mayTake(run, facts).filter(({ publicId }) => !run.isForSession || publicId === run.sessionDevice)

/** The preferred ones first. */
function mayTake(run: RunFacts, facts: PlacementFacts): DeviceFacts[] {
  const byId = (publicId: DeviceRef | null) => facts.devices.filter((device) => device.publicId === publicId)
  if (run.folderDevice !== null) return byId(run.folderDevice)
  const owned = facts.devices
    .filter((device) => device.personUuid === run.ownerUuid && !device.isSandbox)
    .toSorted((a, b) => b.capacity - b.used - (a.capacity - a.used) || (a.publicId < b.publicId ? -1 : 1))
  // The default device counts only while its owner is an admin.
  const common = byId(facts.defaultDevice).filter((device) => device.isOfAdmin)
  // The device that has the session may belong to somebody else by now.
  const withSession = byId(run.sessionDevice).filter((device) => owned.includes(device) || common.includes(device))
  const others = run.isOfPrivateAgent ? [...owned, ...common] : [...common, ...owned]
  return [...new Set([...withSession, ...others])]
}
