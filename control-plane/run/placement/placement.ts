import type { AgentRef, DeviceRef, PersonUuid, SecretId } from '../../../shared/lib/ids.ts'
import { toTimestamp } from '../../../shared/api/ids.ts'
import { harnesses, type HarnessName } from '../../../shared/runs/harnesses.ts'
import type { RunsBy } from '../../../shared/api/devices.ts'
import { circuitKey, accountOf, type AccountHolder, type Quota } from '../../resources/quotas/rules.ts'
import { repeatAdvice, type Advice } from '../../resources/devices/readiness.ts'
import type { LivenessStatus } from '../../resources/devices/rules.ts'
import { takesWork, type Person, type Work } from '../../trust/rules.ts'

/**
 * Decides from facts where a queued run may go. The same decision answers `gateReason` at read time and picks the
 * device at dispatch time, so what a person reads is what the dispatcher does.
 */

export interface DeviceFacts extends AccountHolder {
  displayName: string
  liveness: LivenessStatus
  /** A replica holds its link now. A device counts as connected for a while after its link was lost. */
  isLinked: boolean
  isController: boolean
  /** It was made for one run of the cloud, and takes no other. */
  isSandbox: boolean
  remoteControlRevoked: boolean
  /** The people whose wakes its owner lets it take. */
  runsBy: RunsBy
  /** Its owner is an owner or admin of the workspace. */
  isOfAdmin: boolean
  /** The last report of the device; true before its first one. */
  accepting: boolean
  /** Harnesses that it says are not installed, too old or not signed in, with what it says is to be done. */
  unready: ReadonlyMap<string, string | null>
  capacity: number
  /** Runs it holds or is offered. */
  used: number
}

export interface PlacementFacts {
  devices: readonly DeviceFacts[]
  /** How many more sandboxes the workspace may have; null: no engine for them is ready. */
  cloudRoom: number | null
  /** Durable id of the workspace's default device. */
  defaultDevice: DeviceRef | null
  /** Agent and harness (`agt_.../claude`) whose provider refused a run a moment ago. */
  rateLimited: ReadonlySet<string>
  /** Of accounts whose limit was reached and is not long over; all others are open. */
  quotas: ReadonlyMap<string, Quota>
  /** Breakers by `circuitKey` that are or were just open; all others are closed, which lets everything through. */
  circuits: ReadonlyMap<string, Quota>
  /** UUIDs of the workspace's owners and admins; empty where no device asks for them. */
  admins: ReadonlySet<PersonUuid>
}

export interface RunFacts {
  agentId: AgentRef
  harness: HarnessName
  /** The agent's own key for the harness's provider; null: the device's sign-in is used. */
  keyId: SecretId | null
  /** The provider whose service its harness depends on, as `providerOf` names it. */
  provider: string
  /** The harness on which it goes while its provider keeps it from its harness. */
  fallback: Pick<RunFacts, 'harness' | 'keyId' | 'provider'> | null
  /** It goes to a sandbox and to no device: that of its own, once there is one. null: it goes to devices. */
  cloud: { device: DeviceRef | null } | null
  /** Device of the folder the run starts in; null when it starts in the home folder. */
  folderDevice: DeviceRef | null
  /** Device whose harness session the run goes on with. */
  sessionDevice: DeviceRef | null
  /** It is of use only on the device with the session. */
  isForSession: boolean
  ownerUserId: PersonUuid | null
  /** The agent was given to its owner, who has not agreed yet: it runs on none of their devices. */
  isOwnerAsked: boolean
  /** Its agent is private. */
  isOfPrivateAgent: boolean
  /** It belongs to a private agent, a private project or a dm, or is given secrets. */
  isConfidential: boolean
  /** The person at the root of its chain of wakes. */
  causedBy: Person
  /** Others whose words it follows, and who wrote its AGENT.md. */
  wordsBy: readonly Person[]
  /** The person is no longer a member of the workspace. */
  isCauseGone: boolean
  /** A device has another run of the same task, or its session is made smaller at this moment. */
  isTaskLocked: boolean
  /** Runs of the same task that wait since before it. They hold it up, but for those that no device may take. */
  ahead: readonly RunFacts[]
}

export type GateReason =
  | 'no_device'
  | 'capacity'
  | 'task_locked'
  | 'no_ready_route'
  | 'pinned_route_not_ready'
  | 'governance_refused'
  | 'rate_limit'
  | 'provider_overloaded'
export interface Gate {
  kind: 'gate'
  reason: GateReason
  /** When it opens by itself, where that is known (ms). */
  opensAt?: number
  /** What the devices say that are not ready for its harness. */
  advice?: readonly Advice[]
  /** The run goes to a sandbox. */
  isCloud?: true
}
/** `onFallback`: with its fallback harness. `sandbox`: one is to be made for it. */
export type Placement = { kind: 'device'; publicId: DeviceRef; onFallback?: true } | { kind: 'sandbox' } | Gate

/** A run that would wait for its provider goes with its fallback harness, if it may begin with that at once. */
export function placeRun(run: RunFacts, facts: PlacementFacts): Placement {
  const own = placeOnOwn(run, facts)
  if (own.kind !== 'gate' || !isOfProvider(own) || run.fallback === null || run.cloud !== null) return own
  const other = placeOnOwn(onFallback(run), facts)
  return other.kind === 'device' ? { ...other, onFallback: true } : own
}

const isOfProvider = ({ reason }: Gate) => reason === 'rate_limit' || reason === 'provider_overloaded'

/** The session that it would go on with is one of its own harness. */
const onFallback = (run: RunFacts): RunFacts => ({ ...run, ...run.fallback, fallback: null, sessionDevice: null })

/**
 * The folder's device, else the device that holds the session, the workspace's default device, then the owner's other
 * devices, the emptiest first; of a private agent the owner's devices before the default one.
 */
function placeOnOwn(run: RunFacts, facts: PlacementFacts): Placement {
  const gate = (reason: GateReason): Gate => ({ kind: 'gate', reason })
  if (run.isTaskLocked || run.ahead.some((other) => !isRefused(other, facts))) return gate('task_locked')
  if (facts.rateLimited.has(`${run.agentId}/${run.harness}`)) return gate('rate_limit')
  if (run.cloud !== null) return placeInCloud(run, run.cloud, facts)
  const known = candidates(run, facts)
  const able = known.filter(isAble)
  // A device that is away while its account is closed is missed only then.
  if (able.length === 0) return { ...gate('no_device'), ...opening(run, known, facts) }
  const allowed = able.filter((device) => isAllowed(run, device, facts))
  if (allowed.length === 0) return gate('governance_refused')
  const routes = allowed.filter((device) => !device.unready.has(run.harness))
  if (routes.length === 0) {
    const advice = allowed.map(({ displayName, unready }) => ({
      device: displayName,
      message: unready.get(run.harness) ?? null,
    }))
    return { ...gate(run.folderDevice === null ? 'no_ready_route' : 'pinned_route_not_ready'), advice }
  }
  const open = routes.filter((device) => hasQuota(quotaFor(run, device, facts)))
  if (open.length === 0) return { ...gate('rate_limit'), ...opening(run, routes, facts) }
  const working = open.filter((device) => hasQuota(circuitFor(run, device, facts)))
  if (working.length === 0)
    return { ...gate('provider_overloaded'), ...firstOf(open.map((device) => circuitFor(run, device, facts))) }
  const ready = working.filter(hasRoom)
  // A device that lost its link is ignored, but not the one with the session: it may only be restarting its daemon.
  const free = ready.find((device) => device.isLinked || device.publicId === run.sessionDevice) ?? ready[0]
  return free ? { kind: 'device', publicId: free.publicId } : gate('capacity')
}

function placeInCloud(
  run: RunFacts,
  { device }: { device: DeviceRef | null },
  { cloudRoom }: PlacementFacts,
): Placement {
  const gate = (reason: GateReason): Gate => ({ kind: 'gate', reason, isCloud: true })
  if (run.isCauseGone) return gate('governance_refused')
  if (device !== null) return { kind: 'device', publicId: device }
  if (cloudRoom === null) return gate('no_ready_route')
  return cloudRoom > 0 ? { kind: 'sandbox' } : gate('capacity')
}

export interface Placed<Run> {
  run: Run
  publicId: DeviceRef
  onFallback?: true
}

/**
 * Places runs one after the other, each taking room. Runs that a gate holds are left out; `wanting` are those for which a sandbox is to
 * be made.
 */
export function placeAll<Run extends { facts: RunFacts }>(
  runs: readonly Run[],
  facts: PlacementFacts,
): { placed: Placed<Run>[]; wanting: Run[]; left: PlacementFacts } {
  const devices = facts.devices.map((device) => ({ ...device }))
  const copied = (quotas: PlacementFacts['quotas']) => new Map([...quotas].map(([key, quota]) => [key, { ...quota }]))
  const left = { ...facts, devices, quotas: copied(facts.quotas), circuits: copied(facts.circuits) }
  const placed: Placed<Run>[] = []
  const wanting: Run[] = []
  for (const run of runs) {
    if (!devices.some(hasRoom) && !hasCloudRoom(left)) break
    const placement = placeRun(run.facts, left)
    if (placement.kind === 'gate') continue
    if (placement.kind === 'sandbox') {
      wanting.push(run)
      left.cloudRoom!--
      continue
    }
    const { kind: _, ...place } = placement
    const device = devices.find(({ publicId }) => publicId === place.publicId)
    // Its sandbox was lost a moment ago.
    if (device === undefined) continue
    placed.push({ run, ...place })
    device.used++
    const asPlaced = place.onFallback ? onFallback(run.facts) : run.facts
    for (const quota of [quotaFor(asPlaced, device, left), circuitFor(asPlaced, device, left)])
      if (quota !== undefined) quota.room--
  }
  return { placed, wanting, left }
}

const hasCloudRoom = ({ cloudRoom }: PlacementFacts) => (cloudRoom ?? 0) > 0

const quotaFor = (run: RunFacts, device: DeviceFacts, { quotas }: PlacementFacts): Quota | undefined =>
  quotas.get(accountOf(device, run.harness, run.keyId))

const circuitFor = (run: RunFacts, { publicId }: DeviceFacts, { circuits }: PlacementFacts): Quota | undefined =>
  circuits.get(circuitKey({ device: publicId, provider: run.provider }))

/** When the first of the devices' accounts opens; empty where one is open. */
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
  !run.isCauseGone && !(run.isOwnerAsked && device.userId === run.ownerUserId) && takesWork(device, workOf(run), admins)

const workOf = ({ causedBy, wordsBy, isConfidential, ownerUserId: programBy }: RunFacts): Work => ({
  causedBy,
  wordsBy,
  programBy,
  isConfidential,
})

/** Its devices are there, and none may take it. Whoever wakes an agent in vain must not hold up the work of others. */
export function isRefused(run: RunFacts, facts: PlacementFacts): boolean {
  if (run.cloud !== null) return run.isCauseGone
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
    .filter((device) => device.userId === run.ownerUserId && !device.isSandbox)
    .toSorted((a, b) => b.capacity - b.used - (a.capacity - a.used) || (a.publicId < b.publicId ? -1 : 1))
  // It is one no longer once its owner is no admin.
  const common = byId(facts.defaultDevice).filter((device) => device.isOfAdmin)
  // The device that has the session may belong to somebody else by now.
  const withSession = byId(run.sessionDevice).filter((device) => owned.includes(device) || common.includes(device))
  const others = run.isOfPrivateAgent ? [...owned, ...common] : [...common, ...owned]
  return [...new Set([...withSession, ...others])]
}

const notReady = (who: string, { harness, advice, where }: { harness: string; advice: string; where: string }) =>
  advice === ''
    ? `${who} ready to run ${harness}. \`svc device status\` ${where} tells what it lacks.`
    : `${who} ready to run ${harness}. Do ${where} what it says, then type \`svc device refresh\` there. ${advice}`

const descriptions: Record<GateReason, string | ((harness: string, advice: string) => string)> = {
  no_device: 'No device that may take this run is connected. Connect one with `svc device connect`.',
  task_locked: 'Another run works on the task. This one starts when that one ends.',
  no_ready_route: (harness, advice) => notReady('No connected device is', { harness, advice, where: 'on a device' }),
  pinned_route_not_ready: (harness, advice) =>
    notReady('The device of the folder is not', { harness, advice, where: 'on it' }),
  governance_refused:
    "No connected device may take it (`docs/trust.md`): its owner does not take the work of whoever asked for it, wrote its task or message, or owns the agent (`svc device set --runs-by`); it is private or given secrets, which go to devices of the agent's owner and of admins alone; the agent's new owner has not agreed yet (`svc agent accept`); or the person who asked has left the workspace.",
  rate_limit:
    "The harness's provider limited the agent's last run a moment ago. The next one starts a minute after it.",
  provider_overloaded:
    'The provider failed several runs in a row. This one starts by itself when one of them has got through.',
  capacity: 'Every device that may take this run is busy. It starts when a run there ends.',
}
const cloudDescriptions: Partial<Record<GateReason, string>> = {
  no_ready_route: 'No engine for sandboxes is ready. Whoever operates the server finds why in its log.',
  capacity: 'As many sandboxes run as may. It starts when one of them ends.',
  governance_refused: 'The person who asked for it has left the workspace.',
}

/** For people. `harness`: the run's. */
export function describeGate({ reason, opensAt, advice = [], isCloud }: Gate, harness: HarnessName): string {
  const ofCloud = isCloud ? cloudDescriptions[reason] : undefined
  if (ofCloud !== undefined) return ofCloud
  const description = descriptions[reason]
  if (opensAt === undefined)
    return typeof description === 'string' ? description : description(harnesses[harness].label, repeatAdvice(advice))
  const at = toTimestamp(opensAt)
  return reason === 'provider_overloaded'
    ? `The provider failed several runs in a row. It is tried again at ${at}; the run starts by itself.`
    : `The provider's limit for the account is reached until ${at}. The run starts by itself then.`
}
