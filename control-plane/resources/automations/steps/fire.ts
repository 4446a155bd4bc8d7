import type { ActorRef, RunId, WorkflowRunId } from '../../../../shared/lib/ids.ts'
import type { AutomationFire, SkipReason } from '../../../../shared/api/automation-fields.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Tx } from '../../../db/open.ts'
import { asked } from '../../../trust/askers.ts'
import { admitWorkflow } from '../../../run/wakes/admission.ts'
import { startRun } from '../../../run/wakes/start-run.ts'
import type { WakeAnswer, WakeContext } from '../../../run/wakes/wake.ts'
import { spentBudgetOf } from '../../agents/budget.ts'
import { findAgent } from '../../agents/store.ts'
import { causeOf } from '../../runs/cause.ts'
import { findWorkspace } from '../../workspaces/store.ts'
import { hasFired, hasLiveRun, insertFire, type FireRow } from '../fire-store.ts'
import { recordRun, recordWorkflowRun, type AutomationRow } from '../store.ts'
import { fireWorkflow, type EventInputs } from './own/fire-workflow.ts'

/**
 * The cause of one fire of an automation. The caller's transaction has locked the automation's row, so fires of one automation follow one
 * another. The fire, its run and the schedule's next instant are one commit.
 */
export interface Cause {
  triggerSource: 'cron' | 'webhook' | 'manual'
  requestedByRef: ActorRef | null
  prompt: string
  /** An occasion fires the automation only once. */
  occasion?: string
  bodyHash?: string
  /** The inputs that an event of git brings to the workflow that it starts. */
  event?: EventInputs
}

export type FireOutcome =
  | { kind: 'triggered'; runId: RunId | null; answer: WakeAnswer }
  | { kind: 'triggered'; runId: null; workflowRunId: WorkflowRunId }
  | { kind: 'skipped'; reason: SkipReason }
  /** The occasion fired it before. */
  | { kind: 'repeated' }

export async function fire(
  tx: Tx,
  { automation, cause }: { automation: AutomationRow; cause: Cause },
  context: WakeContext,
): Promise<FireOutcome> {
  const { world } = context
  if (cause.occasion !== undefined && (await hasFired(tx, automation.id, cause.occasion))) return { kind: 'repeated' }
  const skip = async (reason: SkipReason, message: string | null = null): Promise<FireOutcome> => {
    await insertFire(tx, { ...newFire(automation, cause, world), kind: 'skipped', reason, message })
    return { kind: 'skipped', reason }
  }
  if (automation.status !== 'active') return skip(automation.status)
  if (automation.concurrencyPolicy === 'skip_if_running' && (await hasLiveRun(tx, automation)))
    return skip('concurrency', 'An earlier run was queued or running.')
  if (automation.workflow !== null) {
    const refusal = await workflowRefusal(tx, automation, { cause, now: world.now() })
    if (refusal !== null) {
      await skip('not_admitted', refusal.message)
      return { kind: 'triggered', runId: null, answer: refusal }
    }
    const started = await fireWorkflow(
      tx,
      { automation, name: automation.workflow, event: cause.event ?? null },
      context,
    )
    if (started.kind === 'unavailable') return skip('workflow_unavailable', started.message)
    if (started.kind === 'unfit') return skip('not_admitted', started.message)
    const { workflowRunId } = started
    await insertFire(tx, { ...newFire(automation, cause, world), kind: 'triggered', workflowRunId })
    await recordWorkflowRun(tx, automation.id, { id: workflowRunId, at: world.now() })
    return { kind: 'triggered', runId: null, workflowRunId }
  }
  const answer = await wake(tx, { automation, cause }, context)
  if (answer.kind === 'not_dispatched') {
    await skip('not_admitted', answer.message)
    return { kind: 'triggered', runId: null, answer }
  }
  await insertFire(tx, { ...newFire(automation, cause, world), kind: 'triggered', runId: answer.runId })
  await recordRun(tx, automation.id, { id: answer.runId, at: world.now() })
  return { kind: 'triggered', runId: answer.runId, answer }
}

/** A workflow is started in the name of the agent, so whatever keeps the agent from being woken keeps it, too. */
async function workflowRefusal(
  tx: Tx,
  { agentRef }: AutomationRow,
  { cause, now }: { cause: Cause; now: number },
): Promise<(WakeAnswer & { kind: 'not_dispatched' }) | null> {
  const agent = await findAgent(tx, agentRef)
  const workspace = agent && (await findWorkspace(tx, agent.workspaceId))
  if (agent === null || workspace === null) return agentGone
  const isUnwantedHook = cause.triggerSource === 'webhook' && !agent.wakeOnHook
  return admitWorkflow({
    agent,
    workspace,
    isUnwantedHook,
    spentBudget: await spentBudgetOf(tx, { agent, workspace, now }),
  })
}

const agentGone = { kind: 'not_dispatched', reason: 'agent_tombstoned', message: 'The agent is gone.' } as const

async function wake(
  tx: Tx,
  { automation, cause }: { automation: AutomationRow; cause: Cause },
  context: WakeContext,
): Promise<WakeAnswer> {
  const agent = await findAgent(tx, automation.agentRef)
  if (agent === null) return agentGone
  const { triggerSource, requestedByRef, prompt } = cause
  const overrides = { model: automation.modelId, environment: automation.environment }
  const setter = automation.causedByUuid
  // An automation that fires by itself is asked by nobody, so whoever set what it starts is responsible.
  const by =
    triggerSource === 'manual'
      ? asked(triggerSource, { caller: await causeOf(tx, requestedByRef) }, [setter])
      : asked(triggerSource, { setter })
  return startRun(tx, { ...by, agent, requestedByRef, prompt, parent: null, overrides }, context)
}

/** Records a fire that started no run for a reason outside of the automation. */
export async function recordSkip(
  tx: Tx,
  skipped: { automation: AutomationRow; reason: SkipReason; message: string | null; occasion?: string },
  world: World,
): Promise<void> {
  const { automation, reason, message, occasion } = skipped
  if (occasion !== undefined && (await hasFired(tx, automation.id, occasion))) return
  const fired = newFire(automation, occasion === undefined ? {} : { occasion }, world)
  await insertFire(tx, { ...fired, kind: 'skipped', reason, message })
}

function newFire(
  automation: AutomationRow,
  cause: Pick<Cause, 'occasion' | 'bodyHash'>,
  world: World,
): Omit<FireRow, 'kind'> {
  return {
    id: world.id('fir_'),
    automationId: automation.id,
    workspaceId: automation.workspaceId,
    reason: null,
    message: null,
    runId: null,
    workflowRunId: null,
    occasion: cause.occasion ?? null,
    bodyHash: cause.bodyHash ?? null,
    createdAt: world.now(),
  }
}

/** The answer of a route, which distinguishes only two reasons; the skips list has them all. */
export function presentFire(outcome: Exclude<FireOutcome, { kind: 'repeated' }>): AutomationFire {
  const object = 'automation_fire'
  if (outcome.kind === 'triggered') return { object, kind: 'triggered', runId: outcome.runId }
  const reason = outcome.reason === 'concurrency' ? 'concurrency' : 'not_active'
  return { object, kind: 'skipped', reason, runId: null }
}
