import type { ApprovalId, TaskId } from '../../../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import type { approvalRoutes } from '../../../../shared/api/approvals.ts'
import type { StoredGatedThing } from '../../../../shared/api/approval-words.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { callIdentity } from '../../../../shared/runs/call-identity.ts'
import type { Db } from '../../../db/open.ts'
import type { AgentCaller } from '../../../http/callers.ts'
import type { HandlerInput } from '../../../http/implement.ts'
import { lookUpAgent } from '../../agents/lookup.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import type { RunRow } from '../../runs/store.ts'
import { lookUpTask } from '../../tasks/lookup.ts'
import { digestOf, ofRun, raiseApproval } from '../steps/raise.ts'
import { kindOfTrigger } from '../rules.ts'
import { askingRun, stopFailed, stopToAsk } from '../../../run/endings/stop-to-ask.ts'

// Approvals that an agent requests itself.

type Create = HandlerInput<typeof approvalRoutes.create>
type Thing = NonNullable<Create['body']['gatedThing']>
type Body = Create['body'] & { gatedThing: Thing }

const raisable = ['tool_permission', 'connection_action', 'instruction_publish']

/** Stores the approval and stops the run. Returns the approval's id. */
export async function requested(
  { db, caller, body: sent, world }: Create,
  deps: Pick<ResourceDependencies, 'leaseMs'>,
): Promise<ApprovalId> {
  const body = { ...sent, gatedThing: sent.gatedThing ?? { scope: 'once' as const } }
  checkKind(body)
  await checkAuthor(db, caller, body.requestedBy)
  const run = (await askingRun(db, caller, body.runId)) ?? fail('run_not_found', { param: 'runId' })
  const taskId = await taskOf(db, caller, { run, reference: body.taskId })
  const thing = await thingOf(db, caller, body)
  const id = await raiseApproval(
    db,
    {
      ...ofRun(run),
      taskId,
      trigger: body.trigger,
      prompt: body.prompt,
      gatedThing: thing,
    },
    world,
  )
  const stop = { exitReason: 'approval_requested', world, leaseMs: deps.leaseMs } as const
  if (!(await stopToAsk(db, run, stop))) stopFailed()
  return id
}

function checkKind({ trigger, gatedThing: { kind, toolArgs, instructions } }: Body): void {
  if (trigger === 'platform_change' || kind === 'platform_change') fail('platform_change_not_raisable')
  if (!raisable.includes(trigger))
    fail('validation_error', {
      param: 'trigger',
      message: 'The platform raises these itself.',
      allowedValues: raisable,
    })
  const expected = kindOfTrigger[trigger]
  if (kind !== undefined && kind !== expected)
    fail('validation_error', { param: 'gatedThing.kind', allowedValues: [expected] })
  if (toolArgs !== undefined && trigger !== 'tool_permission')
    fail('validation_error', { param: 'gatedThing.toolArgs', message: 'Only a tool call has arguments.' })
  if ((instructions !== undefined) !== (trigger === 'instruction_publish'))
    fail('validation_error', {
      param: 'gatedThing.instructions',
      message: 'An instruction_publish says the new instructions, and nothing else does.',
    })
}

async function checkAuthor(db: Db, caller: AgentCaller, author: Body['requestedBy']): Promise<void> {
  if (author === undefined) return
  const named = author.type === 'agent' && author.id != null ? await lookUpAgent(db, caller, author.id) : null
  const isSelf = author.type === 'agent' && (author.id == null || named?.id === caller.agentRef)
  if (!isSelf) fail('author_must_be_self', { param: 'requestedBy' })
}

async function taskOf(
  db: Db,
  caller: AgentCaller,
  { run, reference }: { run: RunRow; reference: string | undefined },
): Promise<TaskId | null> {
  if (reference === undefined) return run.taskId
  const task = await lookUpTask(db, caller, reference)
  return task === null ? fail('task_not_found', { param: 'taskId' }) : task.id
}

async function thingOf(db: Db, caller: AgentCaller, { trigger, prompt, gatedThing }: Body): Promise<StoredGatedThing> {
  const { toolArgs, scope, safeSummary = firstLine(prompt) } = gatedThing
  const kind = kindOfTrigger[trigger]
  const name = gatedThing.name ?? (trigger === 'instruction_publish' ? 'AGENT.md' : kind)
  const instructions = gatedThing.instructions && (await instructionsOf(db, caller, gatedThing.instructions))
  return {
    kind,
    name,
    inputDigest: checkedDigest(gatedThing, { kind, name, instructions, prompt }),
    safeSummary,
    scope,
    ...(toolArgs === undefined ? {} : { toolArgs }),
    ...(instructions === undefined ? {} : { instructions }),
  }
}

/**
 * The allowed call must be the one that is shown: the fingerprint of a tool call covers the arguments that the person
 * reads, computed like on the device.
 */
function checkedDigest(
  { inputDigest, toolArgs }: Body['gatedThing'],
  rest: { kind: string; name: string; instructions: unknown; prompt: string },
): string {
  if (toolArgs === undefined) return inputDigest ?? digestOf([rest.kind, rest.name, rest.instructions, rest.prompt])
  const actual = createHash('sha256').update(callIdentity(rest.name, toolArgs)).digest('hex')
  if (inputDigest !== undefined && inputDigest !== actual)
    fail('validation_error', {
      param: 'gatedThing.inputDigest',
      message: 'This is not the fingerprint of the name and toolArgs.',
    })
  return actual
}

async function instructionsOf(
  db: Db,
  caller: AgentCaller,
  proposed: NonNullable<Body['gatedThing']['instructions']>,
): Promise<NonNullable<StoredGatedThing['instructions']>> {
  const agent = await lookUpAgent(db, caller, proposed.agentId)
  if (agent === null || agent.deletedAt !== null)
    return fail('resource_not_found', { param: 'gatedThing.instructions.agentId', message: 'There is no such agent.' })
  const { agentMd, agentMdHash = agent.agentMdHash } = proposed
  return { agentId: agent.id, agentMd, agentMdHash: agentMdHash.toLowerCase() }
}

const firstLine = (text: string): string => Array.from(text.split('\n', 1)[0]!).slice(0, 200).join('')
