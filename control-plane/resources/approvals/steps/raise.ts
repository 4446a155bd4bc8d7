import type { ApprovalId } from '../../../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import type { StoredGatedThing } from '../../../../shared/api/approval-words.ts'
import { canonicalJson } from '../../../../shared/lib/canonical-json.ts'
import type { AskedCall } from '../../../../shared/runs/asked-call.ts'
import { maskSecrets, maskValue } from '../../../../shared/lib/secret-patterns.ts'
import type { World } from '../../../../shared/lib/world.ts'
import { inputsOf, isCommandField } from '../../../../shared/permissions/call-inputs.ts'
import { mayCover } from '../../../../shared/permissions/shell/covered.ts'
import type { Db } from '../../../db/open.ts'
import { findAgent, listManagers } from '../../agents/store.ts'
import { findMemberByReference } from '../../members/store.ts'
import type { RunRow } from '../../runs/store.ts'
import { recordHold } from '../../tasks/hold-activity.ts'
import { recordEvent } from '../../webhooks/event-store.ts'
import { askerOf } from '../rules.ts'
import { insertApproval, type NewApproval } from '../store.ts'

/**
 * Raises the approval of one tool call of a run, in the transaction that stores the run's events. The same call of the
 * same run sent again is the same approval, even after it was resolved. Returns the approval's id.
 */
export async function raiseToolApproval(tx: Db, run: RunRow, call: AskedCall, world: World): Promise<ApprovalId> {
  const { name, inputDigest, safeSummary, toolArgs } = call
  return raiseApproval(
    tx,
    {
      ...ofRun(run),
      trigger: 'tool_permission',
      prompt: call.prompt,
      gatedThing: { kind: 'tool_call', name, inputDigest, safeSummary, scope: 'once', toolArgs },
      raiseKey: `tool:${run.id}:${inputDigest}`,
    },
    world,
  )
}

/** The fields that an approval takes from the run that raises it. */
export function ofRun(run: RunRow) {
  const { workspaceId, agentRef, taskId, conversationId, sessionId } = run
  return { workspaceId, agentRef, runId: run.id, taskId, conversationId, sessionId }
}

export type RaisedApproval = Omit<NewApproval, 'id' | 'assignedType' | 'assignedRef' | 'createdAt' | 'raiseKey'> & {
  /** A second approval of the workspace with the same key is the same approval as the first. */
  raiseKey?: string
  /** Default: made by `world`. */
  id?: ApprovalId
}

/** Stores an approval for its default approver, with everything masked that looks like a secret. Returns its id. */
export async function raiseApproval(tx: Db, raised: RaisedApproval, world: World): Promise<ApprovalId> {
  const id = raised.id ?? world.id('apr_')
  const maskText = textMaskOf(raised.gatedThing)
  const prompt = maskText(raised.prompt)
  const stored = await insertApproval(tx, {
    ...raised,
    id,
    prompt,
    gatedThing: maskedThing(raised.gatedThing, maskText),
    raiseKey: raised.raiseKey ?? null,
    createdAt: world.now(),
    ...(await defaultAssignee(tx, raised)),
  })
  const { taskId, trigger, runId, workspaceId } = raised
  const asker = askerOf(raised)
  if (stored === id) {
    await recordEvent(tx, { type: 'approval.requested', workspaceId, subjectId: id, world })
    await recordHold(tx, {
      taskId,
      kind: 'approval.requested',
      actor: asker === null ? { type: 'system', id: null } : { type: 'agent', id: asker },
      data: { approvalId: id, runId, trigger, prompt },
      world,
    })
  }
  return stored
}

function maskedThing(thing: StoredGatedThing, maskText: (text: string) => string): StoredGatedThing {
  return {
    ...thing,
    // The call that is allowed is known by the name of its tool.
    ...(thing.kind === 'tool_call' ? {} : { name: maskText(thing.name) }),
    safeSummary: maskText(thing.safeSummary),
    ...(thing.toolArgs === undefined ? {} : { toolArgs: maskValue(thing.toolArgs, maskArgument) }),
  }
}

/** The words about a command hold it without saying where it begins, so nothing in them is known to be no program. */
function textMaskOf({ toolArgs }: StoredGatedThing): (text: string) => string {
  const isAboutCommand = inputsOf({ name: '', input: toolArgs }).commands.length > 0
  return (text) => maskSecrets(text, isAboutCommand ? () => () => false : undefined)
}

const maskArgument = (text: string, field: string): string =>
  maskSecrets(text, isCommandField(field) ? mayCover : undefined)

/**
 * The default approver: the owner of the asking agent, else of the nearest agent above it, else nobody, so that any
 * person may resolve it. Owners who left the workspace are ignored. A budget is resolved by the platform.
 */
async function defaultAssignee(
  tx: Db,
  raised: Pick<RaisedApproval, 'trigger' | 'agentRef' | 'workspaceId'>,
): Promise<Pick<NewApproval, 'assignedType' | 'assignedRef'>> {
  if (raised.trigger === 'budget_breach') return { assignedType: 'system', assignedRef: null }
  const agent = raised.agentRef === null ? null : await findAgent(tx, raised.agentRef)
  const managers = await listManagers(tx, raised.workspaceId, agent?.reportingToUuid ?? null)
  for (const owner of [agent, ...managers].map((one) => one?.ownerUuid ?? null)) {
    const member = owner === null ? null : await findMemberByReference(tx, raised.workspaceId, owner)
    if (member !== null) return { assignedType: 'user', assignedRef: member.publicId }
  }
  return { assignedType: null, assignedRef: null }
}

/** The fingerprint of the content of an approval that an agent raised itself. */
export function digestOf(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex')
}
