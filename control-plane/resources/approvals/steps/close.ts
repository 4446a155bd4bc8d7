import type { PersonRef, TaskId } from '../../../../shared/lib/ids.ts'
import type { Db } from '../../../db/open.ts'
import { asked } from '../../../trust/askers.ts'
import { nameOf, onOneLine, quoted, quotedLines, type Speaker } from '../../../trust/quote.ts'
import { requestWake } from '../../../run/wakes/wakes.ts'
import { causeOf, speakersOf } from '../../runs/cause.ts'
import { listLiveOfTask } from '../../runs/live-store.ts'
import { findRun, type RunRow } from '../../runs/store.ts'
import type { World } from '../../../../shared/lib/world.ts'
import { resultText } from '../../platform-changes/present.ts'
import { closePlatformChange, findPlatformChange, type ChangeResult } from '../../platform-changes/store.ts'
import { recordHold } from '../../tasks/hold-activity.ts'
import { isFinished } from '../../tasks/rules.ts'
import { findTaskById } from '../../tasks/store.ts'
import { recordEvent } from '../../webhooks/event-store.ts'
import { openHoldsOfTasks } from '../open-holds.ts'
import { approvalWakeKey, holdsItsRun, isAsking } from '../rules.ts'
import { resolveApproval, type ApprovalRow, type Resolution } from '../store.ts'

/** Closes an approval on behalf of the platform; nobody is woken. Returns false when somebody else was first. */
export async function closeByPlatform(
  tx: Db,
  approval: ApprovalRow,
  { world, ...closing }: { outcome: Resolution['outcome']; reason: string; world: World },
): Promise<boolean> {
  if (!(await resolveApproval(tx, approval, { ...closing, by: null, at: world.now() }))) return false
  await recordResolved(tx, approval, { ...closing, appliedScope: null, by: null, world })
  if (approval.trigger === 'platform_change')
    await closePlatformChange(tx, { id: approval.id, status: 'expired', result: null })
  return true
}

/** Records for webhooks, and in the history of the approval's task, how it was resolved. */
export async function recordResolved(
  tx: Db,
  approval: ApprovalRow,
  resolved: Pick<Resolution, 'outcome' | 'reason' | 'by'> & { appliedScope: Resolution['appliedScope']; world: World },
): Promise<void> {
  const { outcome, reason, appliedScope, by, world } = resolved
  const { id: subjectId, workspaceId } = approval
  await recordEvent(tx, { type: 'approval.resolved', workspaceId, subjectId, world })
  await recordHold(tx, {
    taskId: approval.taskId,
    kind: `approval.${({ approve: 'approved', reject: 'rejected', expired: 'expired' } as const)[outcome]}`,
    actor: by === null ? { type: 'system', id: null } : { type: 'user', id: by },
    data: { approvalId: approval.id, reason, appliedScope: appliedScope ?? null },
    world,
  })
}

/**
 * Wakes the agent whose run stopped to wait for this approval, in the session in which it asked. After an approved tool
 * call exactly that call is allowed, once. Of approvals that hold no run only a platform change wakes, and only where its
 * agent would go on (`isWokenByChange`); else the agent's next run is told.
 */
export async function wakeAsker(
  tx: Db,
  approval: ApprovalRow,
  resolved: { outcome: 'approve' | 'reject'; reason: string | null; by: { id: PersonRef; name: string }; world: World },
): Promise<void> {
  if (approval.agentRef === null || approval.runId === null) return
  const run = await findRun(tx, approval.runId)
  if (!holdsItsRun(approval.trigger) && !(await isWokenByChange(tx, approval, run))) return
  const { world, by, outcome } = resolved
  const result = await resultOf(tx, approval)
  await requestWake(
    tx,
    {
      // The wake goes on with that run, and so with the words that the run follows.
      ...asked('approval_resolved', { answerer: await causeOf(tx, by.id) }, speakersOf(run)),
      workspaceId: approval.workspaceId,
      agentRef: approval.agentRef,
      requestedByRef: by.id,
      prompt: resolvedPrompt(approval, { ...resolved, result }),
      taskId: approval.taskId,
      conversationId: approval.conversationId,
      parentRunId: approval.runId,
      allowCalls: outcome === 'approve' ? callsOf(approval) : [],
      key: approvalWakeKey(approval.id),
    },
    world,
  )
}

/**
 * Wakes the agent whose run stopped to wait for this approval, which nobody answered in time, where it would go on. It goes on for
 * whoever asked for that run. The program of a workflow says itself what follows a step that nobody answered.
 */
export async function wakeUnanswered(tx: Db, approval: ApprovalRow, world: World): Promise<void> {
  const { id, agentRef, runId, taskId, trigger } = approval
  if (agentRef === null || runId === null) return
  const run = await findRun(tx, runId)
  if (run === null || run.workflowRunId !== null) return
  if (holdsItsRun(trigger) && !isAsking(run.exitReason)) return
  if (taskId === null ? !holdsItsRun(trigger) : !(await wouldGoOn(tx, taskId, run))) return
  const time = holdsItsRun(trigger) ? 'a day after your run ended' : 'a week'
  const prompt = [
    `Nobody answered within ${time} what you asked for (${id}):`,
    quotedLines(approval.prompt),
    'It was not done. Nobody refused it. Go on without it; where you cannot, say what you need and from whom, and end.',
  ].join('\n\n')
  const asking = asked('approval_resolved', { stopped: run.causedByUuid }, run.wordsBy)
  const { workspaceId, conversationId } = approval
  const of = { workspaceId, agentRef, taskId, conversationId, parentRunId: runId }
  await requestWake(tx, { ...asking, ...of, requestedByRef: null, prompt, key: approvalWakeKey(id) }, world)
}

/**
 * The run that asked for the change did not stop for it. Once it is over, its agent goes on with its task where that is
 * open and nobody else works on it.
 */
async function isWokenByChange(tx: Db, { trigger, taskId }: ApprovalRow, run: RunRow | null): Promise<boolean> {
  // The program of a workflow says what follows a step of it.
  if (trigger !== 'platform_change' || taskId === null || run === null || run.workflowRunId !== null) return false
  return wouldGoOn(tx, taskId, run)
}

/** Returns whether the agent of the run would go on with its task: it is open, the agent's, and nobody works on it or is waited for. */
async function wouldGoOn(tx: Db, taskId: TaskId, run: RunRow): Promise<boolean> {
  const task = await findTaskById(tx, taskId)
  if (task === null || isFinished(task) || task.archivedAt !== null) return false
  if (task.assigneeAgentRef !== null && task.assigneeAgentRef !== run.agentRef) return false
  if ((await listLiveOfTask(tx, taskId)).some(({ compacts }) => !compacts)) return false
  return !(await openHoldsOfTasks(tx, [taskId])).has(taskId)
}

const resultOf = async (tx: Db, { trigger, workspaceId, id }: ApprovalRow): Promise<ChangeResult | null> =>
  trigger === 'platform_change' ? ((await findPlatformChange(tx, workspaceId, id))?.result ?? null) : null

/** A call is allowed only if the person could read the arguments that its fingerprint covers. */
function callsOf({ id, gatedThing }: ApprovalRow) {
  const { kind, name, inputDigest, toolArgs } = gatedThing
  const isReadable = kind === 'tool_call' && toolArgs !== undefined
  return isReadable && inputDigest !== null ? [{ name, inputDigest, approvalId: id }] : []
}

function resolvedPrompt(
  approval: ApprovalRow,
  { outcome, reason, by, result }: Parameters<typeof nextStep>[1] & { reason: string | null; by: Speaker },
): string {
  const word = outcome === 'approve' ? 'approved' : 'rejected'
  return [
    `${nameOf(by)} ${word} what you asked for (${approval.id}):`,
    quotedLines(approval.prompt),
    ...(reason === null ? [] : [quoted({ as: 'request', what: `note to ${approval.id}`, by, text: reason })]),
    nextStep(approval, { outcome, result }),
  ].join('\n\n')
}

function nextStep(
  approval: ApprovalRow,
  { outcome, result }: { outcome: 'approve' | 'reject'; result: ChangeResult | null },
): string {
  if (outcome === 'reject') return 'Do not do it. Go on without it, or end and say why you cannot.'
  if (approval.trigger === 'tool_permission')
    return `Make the call of ${onOneLine(approval.gatedThing.name)} again, exactly as before: it is allowed once. Then go on.`
  if (approval.trigger === 'instruction_publish') return 'The instructions are published. Go on.'
  if (result !== null) return `It was ${resultText(result)}. Go on.`
  return 'Do it now, and go on.'
}
