import type { DeviceRef, RunId, TaskId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { Tx } from '../../db/open.ts'
import { lockPlacement } from '../placement/facts.ts'
import type { Placement, RunFacts } from '../places/place.ts'
import { placeOfRun } from '../places/places.ts'
import { placeAll, placeRun, countPlaced } from '../placement/placement.ts'
import { findWaiting, type WaitingRun } from '../placement/waiting-store.ts'
import { listSpecs } from '../../resources/runs/details-store.ts'
import { offerEach } from '../change-store.ts'
import type { Offer } from '../life.ts'
import { takeFallback } from './fallback.ts'
import { findRun } from '../../resources/runs/store.ts'
import { leftOutOf } from '../../resources/skills/offered.ts'
import { refusalOfSkill } from '../../trust/rules.ts'
import { type Cancel, cancelRun } from '../endings/cancel-run.ts'

// The step none -> offered of a lease, in the transaction of whoever offers: a new run by the wake that makes it, which
// saves a commit on the way to its start, and a run that waits by the dispatcher. Both lock the placement of the workspace
// first, so nobody else gives away the same room, and offer only to devices that are linked to this replica.

/** A run that was offered to a device, before the device is told. */
export interface OfferedRun {
  runId: RunId
  fence: number
  /** Durable id. */
  device: DeviceRef
  taskId: TaskId | null
  spec: RunSpec
}

export interface Offering {
  world: World
  leaseMs: number
  offerMs: number
  isLinked: (publicId: DeviceRef) => boolean
}

/** The devices of a workspace, where nobody else gives away room until the transaction ends. */
export type Room = Awaited<ReturnType<typeof lockPlacement>>

export async function lockRoom(tx: Tx, workspaceId: WorkspaceUuid, { world, leaseMs }: Offering): Promise<Room> {
  return lockPlacement(tx, workspaceId, { now: world.now(), leaseMs })
}

/** The room for several new runs that one transaction makes. It is locked and read once, and what is given away of it is counted. */
export class SharedRoom {
  private room: Promise<Room> | null = null

  lock(tx: Tx, workspaceId: WorkspaceUuid, offering: Offering): Promise<Room> {
    return (this.room ??= lockRoom(tx, workspaceId, offering))
  }

  /** Called when the transaction made room. */
  readAgain(): void {
    this.room = null
  }
}

/** Places a run that is about to be inserted, and takes its room. `offer`: it may be inserted as offered to this device. */
export function placeNew(
  run: RunFacts,
  { facts, refusalOf }: Room,
  { world, offerMs, isLinked }: Offering,
): { placement: Placement; offer: Offer | null } {
  const placement = placeRun(run, facts)
  // A workspace that was halted since it was read: the dispatcher sees that, too, and cancels the run.
  const isOffered = placement.kind === 'device' && refusalOf(placeOfRun(run)) === null && isLinked(placement.publicId)
  if (!isOffered) return { placement, offer: null }
  countPlaced(run, placement, facts)
  const at = world.now()
  return { placement, offer: { device: placement.publicId, at, expiresAt: at + offerMs } }
}

/** Offers those of the runs that wait and that a linked device may take now. Ends those that may not start now. */
export async function offerQueued(
  tx: Tx,
  { workspaceId, runIds }: { workspaceId: WorkspaceUuid; runIds: readonly RunId[] },
  offering: Offering,
): Promise<OfferedRun[]> {
  const { world, leaseMs, offerMs, isLinked } = offering
  const { facts, refusalOf } = await lockRoom(tx, workspaceId, offering)
  // The runs are read once nobody else places runs of the workspace: another run of the same task may just have been offered.
  const waiting: WaitingRun[] = []
  for (const run of await findWaiting(tx, runIds)) {
    const exitReason = refusalOf(placeOfRun(run.facts))
    if (exitReason === null) waiting.push(run)
    // The workspace was halted by somebody who did not see the run yet.
    else await cancelWaiting(tx, run.id, { exitReason, reason: null, world, leaseMs })
  }
  const placed = placeAll(waiting, facts).placed.filter(({ publicId }) => isLinked(publicId))
  const at = world.now()
  const given = placed.map(({ run, publicId: device }) => ({ runId: run.id, device, at, expiresAt: at + offerMs }))
  const fences = new Map((await offerEach(tx, given)).map(({ runId, fence }) => [runId, fence]))
  for (const { run, onFallback } of placed) if (onFallback && fences.has(run.id)) await takeFallback(tx, run.id)
  const specs = await listSpecs(tx, [...fences.keys()])
  return placed.flatMap(({ run, publicId: device }) => {
    const [fence, spec] = [fences.get(run.id), specs.get(run.id)]
    if (fence === undefined || !spec) return []
    return [
      { runId: run.id, fence, device, taskId: run.taskId, spec: specFor(device, { spec, run: run.facts, facts }) },
    ]
  })
}

async function cancelWaiting(tx: Tx, runId: RunId, cancel: Cancel): Promise<void> {
  const run = await findRun(tx, runId)
  if (run !== null) await cancelRun(tx, run, cancel)
}

/**
 * The spec as this device gets it: a session that lies on another one cannot be gone on with here, and skills whose words the run must
 * not follow here stay behind.
 */
export function specFor(
  device: DeviceRef,
  {
    spec: whole,
    run,
    facts,
  }: { spec: RunSpec; run: SkillReader & Pick<RunFacts, 'sessionDevice' | 'cloud'>; facts: Trusting },
): RunSpec {
  const spec = placeOfRun(run).offeredSpec(whole)
  const offered = spec.skills == null ? spec : { ...spec, ...skillsFor(device, { spec, run, facts }) }
  if (offered.resumeSessionId === null || run.sessionDevice === device) return offered
  return { ...offered, resumeSessionId: null, prompt: `${sessionElsewhere}${offered.prompt}` }
}

type SkillReader = Pick<RunFacts, 'ownerUuid' | 'isOfPrivateAgent'>
type Trusting = Pick<Room['facts'], 'devices' | 'admins'>

/** Leaves out who wrote the skills, which no device needs to know. */
function skillsFor(
  device: DeviceRef,
  { spec, run, facts: { devices, admins } }: { spec: RunSpec; run: SkillReader; facts: Trusting },
): Pick<RunSpec, 'skills' | 'skillsLeftOut'> {
  const host = devices.find(({ publicId }) => publicId === device) ?? null
  const agent = { ownerUuid: run.ownerUuid, isPrivate: run.isOfPrivateAgent }
  const judged = (spec.skills ?? []).map(({ writtenBy: writers = [null], ...skill }) => ({
    skill,
    // A device that is not of the workspace any more takes nothing.
    reason: host === null ? ('device_refuses_writer' as const) : refusalOfSkill(writers, { host, agent, admins }),
  }))
  const skills = judged.flatMap(({ skill, reason }) => (reason === null ? [skill] : []))
  const refused = judged.flatMap(({ skill: { slug }, reason }) => (reason === null ? [] : [{ slug, reason }]))
  return {
    skills: skills.length === 0 ? null : skills,
    skillsLeftOut: leftOutOf([...refused, ...(spec.skillsLeftOut ?? [])]),
  }
}

const sessionElsewhere = `You worked on this before on another device. That session is not here, so begin by finding out what is done.

`
