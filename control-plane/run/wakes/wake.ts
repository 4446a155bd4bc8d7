import type { ActorRef, ConversationId, RunId } from '../../../shared/lib/ids.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { ModelProvider } from '../../../shared/runs/brokered.ts'
import type { AllowedCall, RunSpec } from '../../../shared/runs/spec.ts'
import type { ModelCatalog } from '../../catalog/catalog.ts'
import type { ServiceCatalog } from '../../catalog/services.ts'
import type { OfferedRun, Offering, SharedRoom } from '../offers/offer.ts'
import type { GateReason } from '../../../shared/api/agent-runs.ts'
import type { AgentRow } from '../../resources/agents/store.ts'
import type { RunRow, RunStep } from '../../resources/runs/store.ts'
import type { TaskRow } from '../../resources/tasks/store.ts'
import type { WorkspaceRow } from '../../resources/workspaces/store.ts'
import type { BuiltIn } from '../../workflows/catalog/catalog.ts'
import type { WakeOrigin } from '../../trust/askers.ts'
import type { Refusal } from './admission.ts'
import type { CommandStep, RunOverrides } from './build-spec.ts'

/** The task a run works on, as far as a wake needs it. */
export type WakeTask = Pick<
  TaskRow,
  | 'id'
  | 'workspaceId'
  | 'key'
  | 'title'
  | 'status'
  | 'assigneeAgentRef'
  | 'completedAt'
  | 'cancelledAt'
  | 'archivedAt'
  | 'startAt'
  | 'projectId'
  | 'repoId'
  | 'baseBranch'
  | 'branchName'
  | 'environment'
  | 'harness'
  | 'modelId'
  | 'reasoningEffort'
>

/**
 * A reason to run an agent. `asked` of trust/askers.ts makes what it says of who asked. A wake that is asked for within another change
 * waits in a row, and names what it is about by ids (`RequestedWake`); a run is made of it with the rows themselves (`ReadyWake`).
 */
export interface Wake extends WakeOrigin {
  /** Public id of the person (`usr_`) or agent (`agt_`) behind the wake. */
  requestedByRef: ActorRef | null
  prompt: string | null
  /** The conversation the run answers in. Runs of one agent in one conversation follow one another. */
  conversationId?: ConversationId | null
  /** Tool calls that a person approved; each is allowed once. */
  allowCalls?: readonly AllowedCall[]
}

export interface ReadyWake extends Wake {
  agent: AgentRow
  /** The agent's, where the transaction has read it. */
  workspace?: WorkspaceRow
  /** The run this one continues; without it the last one of the same task or conversation whose session still lies there. */
  parent: RunRow | null
  task?: WakeTask | null
  /** Changes that the agent asked for, and of which the prompt says what became. */
  tells?: readonly string[]
  /** Settings that take precedence over those of the agent and of the task. */
  overrides?: RunOverrides
  /** The place of the run among those that wait; default: behind all of them. */
  inLineSince?: number
  /** The run makes the session of `parent` smaller, where that lies, and does nothing else. Without that session there is no run. */
  compacts?: true
  /** Sessions that were begun before this time (ms) are not gone on with. */
  freshSince?: number | null
  /** A command that a workflow gave: the run does this and nothing else, by the rules of its agent. */
  commandStep?: CommandStep | null
  /** The step of a workflow that the run does. */
  step?: RunStep | null
}

export type WakeAnswer =
  | { kind: 'queued'; runId: RunId }
  | { kind: 'pending'; runId: RunId; gateReason: GateReason }
  | { kind: 'coalesced'; runId: RunId }
  | { kind: 'declined'; runId: RunId; exitReason: string; message: string }
  | Refusal

/** The surroundings of every wake, made once when the server is assembled. */
export interface WakeContext {
  world: World
  cloudEnabled: boolean
  /** The providers of models for which the operator pays in the cloud. */
  operatorKeys: readonly ModelProvider[]
  /** True: this server runs the programs of workflows, and the workflows that come with it. */
  runsWorkflows: boolean
  builtInWorkflows: () => readonly Pick<BuiltIn, 'meta' | 'source'>[]
  limits: Partial<RunSpec['limits']>
  catalog: ModelCatalog
  /** Services of whose connections runs get tools and variables. */
  services: ServiceCatalog
  offers: DirectOffers
  /** The room for all runs of the transaction; left out: there is one run. */
  room?: SharedRoom
}

/** The devices linked to this replica, as far as a wake needs them. */
export interface DirectOffers extends Offering {
  /** Tells the device, once the offer is committed. */
  push(offered: OfferedRun): void
}
