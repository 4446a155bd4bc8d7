import type { GateReason } from '../../../shared/api/agent-runs.ts'
import { harnesses } from '../../../shared/runs/harnesses.ts'
import { runLimits } from '../../../shared/device/limits.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import { variablesInCloud } from '../../resources/connections/in-cloud.ts'
import { findSandbox, findSandboxOfRun } from '../../resources/sandboxes/store.ts'
import { listCloudSecrets, secretsForSandbox } from '../../resources/secrets/in-cloud.ts'
import { brokeredSpec } from './model-access.ts'
import {
  gateFor,
  type Closed,
  type Gate,
  type Placement,
  type PlacementFacts,
  type RunFacts,
  type RunPlace,
} from './place.ts'
import { specForSandbox } from './sandbox-spec.ts'

/** A container that is made for one run. It is nobody's machine, holds nothing of a person, and reaches the network by its broker alone. */
export const sandboxPlace: RunPlace = {
  hasFolders: false,
  hasFallback: false,
  canGrow: true,
  showsDevice: false,
  cwd: 'sandbox-root',
  paidBy: 'credits',
  // The one that it is made with lies in it.
  exchangesFirstToken: true,
  whyNoCredentials: 'No credential enters a sandbox.',
  madeForRun: (device) => ({ device }),
  placeRun: placeInSandbox,
  isRefused: (run) => run.isCauseGone,
  isBeingMade: ({ cloud }) => cloud?.device != null,
  whyClosed({ onServer, inWorkspace }) {
    if (!onServer) return closed('Cloud runs are off on this server.')
    return inWorkspace ? null : closed('Cloud runs are off in this workspace.')
  },
  limited: withCallLimits,
  listGuardedSecrets: listCloudSecrets,
  keyedSpec: brokeredSpec,
  connectionVariables: variablesInCloud,
  offeredSpec: specForSandbox,
  findContainer: findSandboxOfRun,
  async secretsFor(db, run, { findSpec, ...opening }) {
    const spec = await findSpec()
    return spec === null ? {} : secretsForSandbox(db, { run, spec }, opening)
  },
  trusted: () => ({ isSandbox: true, runsBy: 'members', isOfAdmin: true }),
  async howLost(db, { sandboxId }) {
    const sandbox = sandboxId === null ? null : await findSandbox(db, sandboxId)
    const trouble = sandbox?.trouble ?? 'The sandbox of this run was lost.'
    return { exitReason: 'sandbox_lost', errorMessage: `${trouble} Nothing of the run is left on its volume.` }
  },
}

function placeInSandbox({ isCauseGone, cloud }: RunFacts, { cloudRoom }: PlacementFacts): Placement {
  if (isCauseGone) return gate('governance_refused')
  if (cloud?.device != null) return { kind: 'device', publicId: cloud.device }
  if (cloudRoom === null) return gate('no_ready_route')
  return cloudRoom > 0 ? { kind: 'to_make' } : gate('capacity')
}

const gate = (reason: keyof typeof descriptions): Gate => ({ ...gateFor(reason), message: descriptions[reason] })

const descriptions = {
  no_ready_route: 'No engine for sandboxes is ready. Whoever operates the server finds why in its log.',
  capacity: 'As many sandboxes run as may. It starts when one of them ends.',
  governance_refused: 'The person who asked for it has left the workspace.',
} as const satisfies Partial<Record<GateReason, string>>

const closed = (message: string): Closed => ({ exitReason: 'cloud_disabled', message })

/** The agent is warned before its calls are used up, and one command takes no longer than a call may. */
function withCallLimits(spec: RunSpec): RunSpec {
  const { warnAtCalls, callMs } = runLimits
  const isCommand = spec.gate != null || harnesses[spec.harness].runsOwnCommand
  const runMs = isCommand ? Math.min(spec.limits.runMs, callMs) : spec.limits.runMs
  return { ...spec, limits: { ...spec.limits, runMs, warnAtCalls, callMs } }
}
