import type { AgentRef, DeviceRef, PersonUuid, RunId, SecretId } from '../../../shared/lib/ids.ts'
import type { GateReason } from '../../../shared/api/agent-runs.ts'
import type { RunsBy } from '../../../shared/api/devices.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { ModelProvider } from '../../../shared/runs/brokered.ts'
import type { ExitReason } from '../../../shared/runs/exit-reasons.ts'
import type { HarnessName } from '../../../shared/runs/harnesses.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { Db } from '../../db/open.ts'
import type { agentConnectionVariables } from '../../resources/connections/agent-connections.ts'
import type { Advice } from '../../resources/devices/readiness.ts'
import type { LivenessStatus } from '../../resources/devices/rules.ts'
import type { DeviceRow } from '../../resources/devices/store.ts'
import type { AccountHolder, Quota } from '../../resources/quotas/rules.ts'
import type { RunRow } from '../../resources/runs/store.ts'
import type { SandboxRow } from '../../resources/sandboxes/store.ts'
import type { CloudSecret } from '../../resources/secrets/in-cloud.ts'
import type { Person } from '../../trust/rules.ts'
import type { Vault } from '../../vault/vault.ts'

/**
 * A place is where a run executes: a device of a person (`device.ts`) or a sandbox that is made for the run (`sandbox.ts`). All in which
 * the two differ, from the wake to the ending, is a member of this interface; `places.ts` finds the place of a run or of a row, and
 * nobody else asks which of them it is.
 */
export interface RunPlace {
  /** A run starts in a folder that somebody named. Where there are none, it gets a clone of its repository. */
  readonly hasFolders: boolean
  /** A run whose provider keeps it waiting may go with its agent's fallback harness. */
  readonly hasFallback: boolean
  /** A run that had no memory left may be followed by one in a larger place. */
  readonly canGrow: boolean
  /** The first token of its runner is good for its first link alone. */
  readonly exchangesFirstToken: boolean
  /** A run there is shown with the device that executes it. */
  readonly showsDevice: boolean
  /** Where a run starts that has no folder and no repository, as the API calls it. */
  readonly cwd: 'home' | 'sandbox-root'
  /** Who pays for the models of a run whose agent has no key: the operator, or whoever is signed in at the harness there. */
  readonly paidBy: 'credits' | 'subscription'
  /** The reason for which a run there is given no credentials over the link; null: it is given them. */
  readonly whyNoCredentials: string | null

  /** Returns what the facts of a run say of a place that is made for it alone. `device`: its durable id, once it is there. */
  madeForRun(device: DeviceRef | null): RunFacts['cloud']
  /** Returns where the run may go now, or what holds it. Gates that would hold it wherever it went were asked before. */
  placeRun(run: RunFacts, facts: PlacementFacts): Placement
  /** Tells whether the run's places are there and none may take it. */
  isRefused(run: RunFacts, facts: PlacementFacts): boolean
  /** Tells whether the run's place is being made: the place then bounds that time. */
  isBeingMade(run: RunFacts): boolean
  /** Returns why no run may go there; null: runs may. */
  whyClosed(allowed: { onServer: boolean; inWorkspace: boolean }): Closed | null

  /** The spec with the limits that it has there. */
  limited(spec: RunSpec): RunSpec
  /** The secrets of an agent that only enter as far as they say how; null: all of them go there as they are. */
  listGuardedSecrets(db: Db, agentRef: AgentRef): Promise<readonly CloudSecret[] | null>
  /** The spec with the way to its model. A refusal: it would have no key, or a secret cannot go there. */
  keyedSpec(spec: RunSpec, keys: Keys): KeyedSpec | KeyRefusal
  /** The variables that a run there gets of connections. */
  connectionVariables: typeof agentConnectionVariables

  /** The spec as the runner there gets it. */
  offeredSpec(spec: RunSpec): RunSpec
  /** Returns what the run has in its environment, by variables. Throws `VaultError` where a secret cannot be opened. */
  secretsFor(db: Db, run: RunRow, opening: Opening): Promise<Record<string, string>>

  /** Returns whose work the device takes, as far as its row does not say it. */
  trusted(device: DeviceRow, admins: ReadonlySet<PersonUuid>): Pick<DeviceFacts, 'isSandbox' | 'runsBy' | 'isOfAdmin'>
  /** Returns the container in which the run executes or executed; null: there is none. */
  findContainer(db: Db, runId: RunId): Promise<SandboxRow | null>
  /** Returns how a run ended with which the place did not come back. */
  howLost(db: Db, device: DeviceRow): Promise<{ exitReason: ExitReason; errorMessage: string }>
}

export interface Closed {
  exitReason: 'cloud_disabled'
  message: string
}

export interface Opening {
  vault: Pick<Vault, 'open'>
  world: Pick<World, 'bytes' | 'now'>
  /** Finds the spec of the run; null: the run has none any more. */
  findSpec: () => Promise<RunSpec | null>
}

/** Names of variables of the agent's secrets. */
export interface SecretNames {
  given: readonly string[]
  leftOut: readonly string[]
}

export interface Keys {
  /** Ids of secrets by the names of their variables. */
  secretKeys: ReadonlyMap<string, SecretId>
  /** See `listGuardedSecrets`. */
  guarded: readonly CloudSecret[] | null
  operatorKeys: readonly ModelProvider[]
  /** False: the run never starts, so it needs no key. */
  isPlaced: boolean
}

/** `keyId`: of the agent's own key that the harness takes; null: it takes none. */
export interface KeyedSpec {
  spec: RunSpec
  keyId: SecretId | null
  secretNames: SecretNames
}

export interface KeyRefusal {
  kind: 'refused'
  code: 'credits_harness_unsupported' | 'credential_unbrokerable'
  message: string
}

export interface DeviceFacts extends AccountHolder {
  displayName: string
  liveness: LivenessStatus
  /** A replica holds its link now. A device counts as connected for a while after its link was lost. */
  isLinked: boolean
  isController: boolean
  /** The device was made for one run of the cloud, and takes no other. */
  isSandbox: boolean
  remoteControlRevoked: boolean
  /** The people whose wakes its owner lets it take. */
  runsBy: RunsBy
  /** The device's owner is an owner or admin of the workspace. */
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
  /** The number of sandboxes that the workspace may have besides; null: no engine for them is ready. */
  cloudRoom: number | null
  /** Durable id of the workspace's default device. */
  defaultDevice: DeviceRef | null
  /** Agent and harness (`agt_.../claude`) whose provider refused a run a moment ago. */
  rateLimited: ReadonlySet<string>
  /** Quotas of accounts whose limit was reached and is not long over; all others are open. */
  quotas: ReadonlyMap<string, Quota>
  /** Breakers by `circuitKey` that are or were just open; all others are closed, which lets everything through. */
  circuits: ReadonlyMap<string, Quota>
  /** UUIDs of the workspace's owners and admins; empty where no device asks for them. */
  admins: ReadonlySet<PersonUuid>
}

export interface RunFacts {
  agentRef: AgentRef
  harness: HarnessName
  /** The agent's own key for the harness's provider; null: the device's sign-in is used. */
  keyId: SecretId | null
  /** The provider whose service its harness depends on, as `providerOf` names it. */
  provider: string
  /** The harness on which it goes while its provider keeps it from its harness. */
  fallback: Pick<RunFacts, 'harness' | 'keyId' | 'provider'> | null
  /** Set: the run goes to a sandbox and to no device, namely to that of its own, once there is one. null: it goes to devices. */
  cloud: { device: DeviceRef | null } | null
  /** Device of the folder the run starts in; null when it starts in the home folder. */
  folderDevice: DeviceRef | null
  /** Device whose harness session the run goes on with. */
  sessionDevice: DeviceRef | null
  /** The run is of use only on the device with the session. */
  isForSession: boolean
  ownerUuid: PersonUuid | null
  /** The agent was given to its owner, who has not agreed yet: it runs on none of their devices. */
  isOwnerAsked: boolean
  /** The run's agent is private. */
  isOfPrivateAgent: boolean
  /** The run belongs to a private agent, a private project or a dm, or is given secrets. */
  isConfidential: boolean
  /** The person at the root of its chain of wakes. */
  causedByUuid: Person
  /** Others whose words the run follows, and who wrote its AGENT.md. */
  wordsBy: readonly Person[]
  /** The person is no longer a member of the workspace. */
  isCauseGone: boolean
  /** A device has another run of the same task, or its session is made smaller at this moment. */
  waitsForOtherRun: boolean
  /** Runs of the same task that wait since before it. They hold it up, but for those that no device may take. */
  ahead: readonly RunFacts[]
}

export interface Gate {
  kind: 'gate'
  reason: GateReason
  /** The time at which the gate opens by itself, where that is known (ms). */
  opensAt?: number
  /** Reports of the devices that are not ready for the run's harness. */
  advice?: readonly Advice[]
  /** The sentence for people, where the place says it in words of its own. */
  message?: string
}
/** `onFallback`: with its fallback harness. `to_make`: its place is to be made. */
export type Placement = { kind: 'device'; publicId: DeviceRef; onFallback?: true } | { kind: 'to_make' } | Gate

export const gateFor = (reason: GateReason): Gate => ({ kind: 'gate', reason })
