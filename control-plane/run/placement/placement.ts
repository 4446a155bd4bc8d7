import type { GateReason } from '../../../shared/api/agent-runs.ts'
import type { DeviceRef } from '../../../shared/lib/ids.ts'
import { toTimestamp } from '../../../shared/api/ids.ts'
import { harnesses, type HarnessName } from '../../../shared/runs/harnesses.ts'
import { repeatAdvice } from '../../resources/devices/readiness.ts'
import { circuitFor, hasRoom, quotaFor } from '../places/device-rules.ts'
import { gateFor, type Gate, type Placement, type PlacementFacts, type RunFacts } from '../places/place.ts'
import { placeOfRun } from '../places/places.ts'

// Decides from facts where a queued run may go. The same decision answers `gateReason` at read time and picks the
// device at dispatch time, so what a person reads is what the dispatcher does.

/** A run that would wait for its provider goes with its fallback harness, if it may begin with that at once. */
export function placeRun(run: RunFacts, facts: PlacementFacts): Placement {
  const own = placeOnOwn(run, facts)
  if (own.kind !== 'gate' || !isOfProvider(own) || run.fallback === null || !placeOfRun(run).hasFallback) return own
  const other = placeOnOwn(onFallback(run), facts)
  return other.kind === 'device' ? { ...other, onFallback: true } : own
}

const isOfProvider = ({ reason }: Gate) => reason === 'rate_limit' || reason === 'provider_overloaded'

/** The session that it would go on with is one of its own harness. */
const onFallback = (run: RunFacts): RunFacts => ({ ...run, ...run.fallback, fallback: null, sessionDevice: null })

function placeOnOwn(run: RunFacts, facts: PlacementFacts): Placement {
  if (run.waitsForOtherRun || run.ahead.some((other) => !isRefused(other, facts))) return gateFor('task_locked')
  if (facts.rateLimited.has(`${run.agentRef}/${run.harness}`)) return gateFor('rate_limit')
  return placeOfRun(run).placeRun(run, facts)
}

export interface Placed<Run> {
  run: Run
  publicId: DeviceRef
  onFallback?: true
}

/**
 * Places runs one after the other, each taking room. Runs that a gate holds are left out; `wanting` are those whose place is to
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
    if (placement.kind === 'to_make') {
      wanting.push(run)
      left.cloudRoom!--
      continue
    }
    const { kind: _, ...place } = placement
    // The run's own place was lost a moment ago.
    if (!countPlaced(run.facts, place, left)) continue
    placed.push({ run, ...place })
  }
  return { placed, wanting, left }
}

/** Counts a run that is placed on a device. False when the device is not there. */
export function countPlaced(
  run: RunFacts,
  place: Pick<Placed<unknown>, 'publicId' | 'onFallback'>,
  facts: PlacementFacts,
): boolean {
  const device = facts.devices.find(({ publicId }) => publicId === place.publicId)
  if (device === undefined) return false
  device.used++
  const asPlaced = place.onFallback ? onFallback(run) : run
  for (const quota of [quotaFor(asPlaced, device, facts), circuitFor(asPlaced, device, facts)])
    if (quota !== undefined) quota.room--
  return true
}

const hasCloudRoom = ({ cloudRoom }: PlacementFacts) => (cloudRoom ?? 0) > 0

/**
 * Tells whether the run's places are there and none may take it. A person who wakes an agent in vain must not hold up the work of others.
 */
export const isRefused = (run: RunFacts, facts: PlacementFacts): boolean => placeOfRun(run).isRefused(run, facts)

const notReady = (who: string, { harness, advice, where }: { harness: string; advice: string; where: string }) =>
  advice === ''
    ? `${who} ready to run ${harness}. \`svc device status\` ${where} tells what it lacks.`
    : `${who} ready to run ${harness}. Do ${where} what it says, then type \`svc device refresh\` there. ${advice}`

const descriptions: Record<GateReason, string | ((harness: string, advice: string) => string)> = {
  no_device: 'No device that may take this run is connected. Connect one with `svc device connect`.',
  task_locked: 'Another run of the task goes first: it works, or waits longer. This one starts when that one ends.',
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
/** Describes the gate for people. `harness`: the run's. */
export function describeGate({ reason, opensAt, advice = [], message }: Gate, harness: HarnessName): string {
  if (message !== undefined) return message
  const description = descriptions[reason]
  if (opensAt === undefined)
    return typeof description === 'string' ? description : description(harnesses[harness].label, repeatAdvice(advice))
  const at = toTimestamp(opensAt)
  return reason === 'provider_overloaded'
    ? `The provider failed several runs in a row. It is tried again at ${at}; the run starts by itself.`
    : `The provider's limit for the account is reached until ${at}. The run starts by itself then.`
}
