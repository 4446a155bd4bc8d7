import { idFrom, type DeviceRef, type WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { providerOf } from '../../../shared/runs/harnesses.ts'
import { inOneTrip } from '../../db/one-trip.ts'
import type { Db, Tx } from '../../db/open.ts'
import type { AgentRow } from '../../resources/agents/store.ts'
import { isReady } from '../../resources/devices/readiness.ts'
import { isController, livenessOf } from '../../resources/devices/rules.ts'
import { listPlacesOfWorkspace, type DeviceRow } from '../../resources/devices/store.ts'
import type { FolderRow } from '../../resources/folders/store.ts'
import { listAdmins } from '../../resources/members/store.ts'
import {
  accountOf,
  accountsOf,
  harnessOfAccount,
  quotaAt,
  thawMs,
  type AccountHolder,
  type Quota,
  circuitKey,
  roomAt,
  trialMs,
} from '../../resources/quotas/rules.ts'
import { findCloudRoom } from '../../resources/sandboxes/store.ts'
import { loadOccupancy, type Occupancy } from '../../resources/runs/live-store.ts'
import type { RunRow } from '../../resources/runs/store.ts'
import { haltOf } from '../../resources/workspaces/rules.ts'
import { findWorkspace } from '../../resources/workspaces/store.ts'
import type { PlacementFacts, RunFacts, RunPlace } from '../places/place.ts'
import { placeOfDevice, placeOfEnvironment } from '../places/places.ts'

export interface Moment {
  now: number
  leaseMs: number
}

// An agent leaves a provider alone for this long after it limited one of the agent's runs.
/** Stands for the device of a folder that is gone. */
const noDevice = idFrom<DeviceRef>('')
const rateLimitPauseMs = 60_000

/** The devices of a workspace as `placeRun` wants them. */
export async function loadPlacementFacts(db: Db, workspaceId: WorkspaceUuid, moment: Moment): Promise<PlacementFacts> {
  return (await load(db, workspaceId, { ...moment, lock: false })).facts
}

/** Returns the reason for which a run may not start in the workspace now, and with which it ends; null: it may start. */
type RefusalOf = (place: Pick<RunPlace, 'whyClosed'>) => 'billing_locked' | 'company_paused' | 'cloud_disabled' | null

/**
 * Locks the workspace and returns the same facts: until the transaction ends nobody else gives away room on its devices, and nobody halts
 * it without seeing what is queued in the transaction. The lock is on one row for all of them, so the devices' own rows, which heartbeats
 * write, are not held up.
 */
export async function lockPlacement(
  tx: Tx,
  workspaceId: WorkspaceUuid,
  moment: Moment,
): Promise<{ facts: PlacementFacts; refusalOf: RefusalOf }> {
  const { facts, workspace } = await load(tx, workspaceId, { ...moment, lock: true })
  const halt = workspace === null ? 'company_paused' : haltOf(workspace)
  const allowed = { onServer: true, inWorkspace: workspace?.cloudEnabled === true }
  return { facts, refusalOf: (place) => halt ?? place.whyClosed(allowed)?.exitReason ?? null }
}

async function load(db: Db, workspaceId: WorkspaceUuid, options: Moment & { lock: boolean }) {
  const [workspace, devices, admins, cloudRoom, { live, paused, windows, circuits }] = await inOneTrip(db, [
    // The workspace comes first: in a transaction the others read once it is locked.
    () => findWorkspace(db, workspaceId, options.lock),
    () => listPlacesOfWorkspace(db, workspaceId),
    async () => new Set(await listAdmins(db, workspaceId)),
    () => findCloudRoom(db, workspaceId, options.now),
    () =>
      loadOccupancy(db, {
        workspaceId,
        pausedSince: options.now - rateLimitPauseMs,
        resetSince: options.now - thawMs,
        triedSince: options.now - trialMs,
      }),
  ])
  const used = (publicId: DeviceRef) => sum(live.filter(({ device }) => device === publicId).map(({ count }) => count))
  const facts: PlacementFacts = {
    rateLimited: new Set(paused.map((run) => `${run.agentRef}/${run.harness}`)),
    circuits: new Map(
      circuits.map((circuit) => [
        circuitKey(circuit),
        roomAt(options.now, { ...circuit, live: liveOf(circuit, live) }),
      ]),
    ),
    quotas: quotasOf(devices, { windows, live, now: options.now }),
    admins,
    cloudRoom,
    defaultDevice: workspace?.defaultDevice ?? null,
    devices: devices.map((device) => ({
      publicId: device.publicId,
      displayName: device.displayName,
      personUuid: device.personUuid,
      liveness: livenessOf(device, options.now, options.leaseMs),
      isLinked: device.replicaId !== null,
      isController: isController(device.platform),
      ...placeOfDevice(device).trusted(device, admins),
      remoteControlRevoked: device.remoteControlRevokedAt !== null,
      accepting: device.claimState?.accepting ?? true,
      unready: unreadyOf(device),
      accounts: accountsOf(device.providerReadiness),
      capacity: device.maxConcurrent,
      used: used(device.publicId),
    })),
  }
  return { facts, workspace }
}

const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0)

const holderOf = (device: DeviceRow): AccountHolder => ({ ...device, accounts: accountsOf(device.providerReadiness) })

const liveOf = ({ device, provider }: Occupancy['circuits'][number], live: Occupancy['live']): number =>
  sum(
    live.filter((run) => run.device === device && run.harness === harnessOfAccount(provider)).map(({ count }) => count),
  )

/** Returns the quotas; empty where no limit was reached, as on most days. */
function quotasOf(
  devices: readonly DeviceRow[],
  { windows, live, now }: Pick<Occupancy, 'windows' | 'live'> & { now: number },
): Map<string, Quota> {
  const holders = windows.length === 0 ? [] : devices.map((device) => ({ device, holder: holderOf(device) }))
  return new Map(
    windows.map(({ account, resetsAt }) => {
      const harness = harnessOfAccount(account)
      const of = holders.filter(({ holder }) => accountOf(holder, harness) === account).map(({ device }) => device)
      const ids = new Set(of.map((device) => device.publicId))
      const counts = live.filter((run) => run.harness === harness && ids.has(run.device)).map(({ count }) => count)
      const capacity = sum(of.map((device) => device.maxConcurrent))
      return [account, quotaAt(now, { resetsAt, capacity, live: sum(counts) })]
    }),
  )
}

/** A harness that the device has not reported counts as ready. */
function unreadyOf({ providerReadiness }: DeviceRow): Map<string, string | null> {
  const harnesses = 'harnesses' in providerReadiness ? providerReadiness.harnesses : {}
  const unready = Object.entries(harnesses).filter(([, state]) => !isReady(state))
  return new Map(unready.map(([name, { message }]) => [name, message]))
}

type FallbackOfRun = 'fallbackHarness' | 'fallbackKeyId' | 'fallbackModel'

/** The facts of a run for `placeRun`, made from rows at hand. */
export function toRunFacts(
  run: Pick<
    RunRow,
    | 'agentRef'
    | 'harness'
    | 'environmentType'
    | 'folderId'
    | 'causedByUuid'
    | 'wordsBy'
    | 'instructionsBy'
    | 'providerKeyId'
    | 'modelId'
    | 'compacts'
    | FallbackOfRun
  >,
  rows: {
    agent: Pick<AgentRow, 'ownerUuid' | 'transferredAt' | 'visibility'> | null
    folder: Pick<FolderRow, 'device'> | null
    parent: Pick<RunRow, 'sessionId' | 'device'> | null
    isConfidential: boolean
    isCauseGone: boolean
    waitsForOtherRun: boolean
    ahead: readonly RunFacts[]
    /** The durable id of its sandbox, where it has one. */
    sandbox: DeviceRef | null
  },
): RunFacts {
  return {
    cloud: placeOfEnvironment(run.environmentType).madeForRun(rows.sandbox),
    agentRef: run.agentRef,
    harness: run.harness,
    keyId: run.providerKeyId,
    isForSession: run.compacts === true,
    provider: providerOf(run.harness, run.modelId),
    fallback: fallbackOf(run),
    // A folder that was removed while the run waited names no device, so the run waits until its time is up.
    folderDevice: run.folderId === null ? null : (rows.folder?.device ?? noDevice),
    sessionDevice: rows.parent?.sessionId ? rows.parent.device : null,
    ownerUuid: rows.agent?.ownerUuid ?? null,
    isOwnerAsked: (rows.agent?.transferredAt ?? null) !== null,
    isOfPrivateAgent: rows.agent?.visibility === 'private',
    isConfidential: rows.isConfidential,
    causedByUuid: run.causedByUuid,
    wordsBy: [...run.wordsBy, ...run.instructionsBy],
    isCauseGone: rows.isCauseGone,
    waitsForOtherRun: rows.waitsForOtherRun,
    ahead: rows.ahead,
  }
}

function fallbackOf(run: Pick<RunRow, FallbackOfRun>): RunFacts['fallback'] {
  const { fallbackHarness: harness, fallbackKeyId: keyId, fallbackModel } = run
  return harness === null ? null : { harness, keyId, provider: providerOf(harness, fallbackModel) }
}
