import { idFrom } from '../../../../shared/lib/ids.ts'
import { approvalRoutes } from '../../../../shared/api/approvals.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { idPageOf } from '../../../../shared/api/id-paging.ts'
import type { Page } from '../../../../shared/api/paging.ts'
import type { Approval, ApprovalSummary } from '../../../../shared/api/approvals.ts'
import type { ModelCatalog } from '../../../catalog/catalog.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller, PersonCaller } from '../../../http/callers.ts'
import { answer, implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { findConversation } from '../../conversations/store.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { findMemberByReference } from '../../members/store.ts'
import { withWorkflowSteps } from '../../runs/steps/workflow-step.ts'
import { lookUpTask } from '../../tasks/lookup.ts'
import { recordResolved, wakeAsker } from '../steps/close.ts'
import type { ResolutionEffects } from '../resolution-effects.ts'
import { stagedFilesOf } from '../../skills/steps/staged-files.ts'
import { includedIn } from '../steps/include.ts'
import { pageFrom } from '../../../http/page-from.ts'
import { unknownApproval, visibleApproval } from '../own/lookup.ts'
import { presentApproval, presentApprovals } from '../own/present.ts'
import { requested } from './request.ts'
import { assignRefusalOf, resolveRefusal } from '../rules.ts'
import { sentinelOf } from '../../../run/endings/stop-to-ask.ts'
import {
  findApproval,
  listApprovals,
  replaceAssignee,
  resolveApproval,
  type ApprovalFilter,
  type ApprovalRow,
} from '../store.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import { workViewerOf } from '../../projects/work-visibility.ts'

type Dependencies = Pick<ResourceDependencies, 'leaseMs' | 'catalog' | 'blobs'>

const mayAnswer = (approval: ApprovalRow, caller: Caller, now: number): boolean =>
  caller.kind === 'person' && resolveRefusal(approval, caller, now) === null

/** `routes`: every route of the API with its handler; approving a platform change calls one of them. */
export function approvalHandlers(
  deps: Dependencies,
  effects: ResolutionEffects,
  routes: () => readonly ImplementedRoute[],
) {
  const acting = () => ({ routes: routes(), catalog: deps.catalog, effects })
  return implement(approvalRoutes, {
    list,

    async get({ db, caller, params, query, world }) {
      const approval = await visibleApproval(db, caller, params.approvalId)
      const moment = { now: world.now(), leaseMs: deps.leaseMs }
      return {
        ...(await shown(db, approval)),
        ...(await includedIn(db, approval, query.include ?? [], { caller, moment })),
        ...(query.include?.includes('files') && {
          files: mayAnswer(approval, caller, world.now())
            ? await stagedFilesOf(db, { workspaceId: approval.workspaceId, changeId: approval.id }, deps.blobs)
            : null,
        }),
      }
    },

    async create(input) {
      const id = await requested(input, deps)
      const approval = (await findApproval(input.db, input.caller.workspaceId, id)) ?? unknownApproval()
      return answer(201, { approval: await shown(input.db, approval), sentinel: sentinelOf(id) })
    },

    async approve(input) {
      const { body } = input
      return resolve(input, { ...acting(), outcome: 'approve', appliedScope: body.appliedScope ?? 'once' })
    },

    async reject(input) {
      return resolve(input, { ...acting(), outcome: 'reject', appliedScope: null })
    },

    async assign({ db, caller, params, body, world }) {
      const approval = await visibleApproval(db, caller, params.approvalId)
      const refusal = assignRefusalOf(approval, caller)
      if (refusal !== null) fail(refusal)
      const member = await findMemberByReference(db, caller.workspaceId, body.assignedTo.id)
      if (member === null)
        return fail('assignee_not_found', {
          param: 'assignedTo.id',
          message: 'There is no such person in this workspace.',
        })
      const change = { personRef: member.publicId, by: caller.personRef, reason: body.reason, at: world.now() }
      await replaceAssignee(db, approval, change)
      return shown(db, (await findApproval(db, caller.workspaceId, approval.id)) ?? approval)
    },
  })
}

async function shown(db: Db, approval: ApprovalRow): Promise<Approval> {
  const [presented] = await withWorkflowSteps(db, [await presentApproval(db, approval)])
  return presented!
}

type List = HandlerInput<typeof approvalRoutes.list>

async function list(input: List): Promise<Page<ApprovalSummary>> {
  const { db, caller, query } = input
  const visibleTo = workViewerOf(caller)
  const { cursor, page } = await pageFrom(query, (id) => findApproval(db, caller.workspaceId, idFrom(id)))
  const filter = await filterOf(input)
  const rows =
    filter === null ? [] : await listApprovals(db, { ...filter, ...page, ...withoutUndefined({ visibleTo }) })
  const presented = await withWorkflowSteps(db, await presentApprovals(db, rows))
  const byId = new Map(presented.map((approval) => [approval.id, approval]))
  return idPageOf({ rows, limit: query.limit, cursor, present: (row) => byId.get(row.id)! })
}

/** Returns null when a filter names nothing that the caller can see, so that nothing matches. */
async function filterOf({ db, caller, query }: List): Promise<Omit<ApprovalFilter, 'limit'> | null> {
  const { status, trigger, taskId, runId, conversationId, assignedToUserId } = query
  const task = taskId === undefined ? undefined : await lookUpTask(db, caller, taskId)
  const run = runId === 'current' ? (caller.kind === 'agent' ? caller.runId : null) : runId
  const found = conversationId === undefined ? undefined : await findConversation(db, conversationId)
  if (task === null || run === null || found === null) return null
  if (found !== undefined && found.workspaceId !== caller.workspaceId) return null
  return {
    workspaceId: caller.workspaceId,
    ...withoutUndefined({
      status: status === 'all' ? undefined : status,
      triggers: trigger,
      taskId: task?.id,
      runId: run,
      conversation: found && { id: found.id, taskId: found.taskId },
      assignedRef: assignedToUserId,
    }),
  }
}

interface Decision {
  effects: ResolutionEffects
  routes: readonly ImplementedRoute[]
  catalog: ModelCatalog
  outcome: 'approve' | 'reject'
  appliedScope: 'once' | 'always' | null
}

type ResolveInput = Omit<HandlerInput<typeof approvalRoutes.reject>, 'caller'> & { caller: PersonCaller }

/**
 * Closes the approval first, so that only one of two simultaneous resolutions has an effect. A refused effect opens it
 * again.
 */
async function resolve(input: ResolveInput, { outcome, appliedScope, effects, ...acting }: Decision) {
  const { db, caller, params, body, world } = input
  const approval = await visibleApproval(db, caller, params.approvalId)
  const refusal = resolveRefusal(approval, caller, world.now())
  if (refusal !== null) fail(refusal)
  const reason = body.reason?.trim() ? body.reason : null
  // The scope has no meaning for other triggers.
  const scope = approval.trigger === 'tool_permission' ? appliedScope : null
  const resolution = { outcome, reason, appliedScope: scope, by: caller.personRef, at: world.now() }
  if (!(await resolveApproval(db, approval, resolution))) {
    const now = await findApproval(db, caller.workspaceId, approval.id)
    return fail(now?.status === 'resolved' ? 'approval_resolved' : 'transient_conflict')
  }
  await recordResolved(db, approval, { ...resolution, world })
  const effect = effects.byTrigger[approval.trigger]
  const resolved = { approval, person: caller, reason, scope, request: input, ...acting }
  await (outcome === 'approve' ? effect?.onApprove?.(resolved) : effect?.onReject?.(resolved))
  const isRejectedGate = outcome === 'reject' && (await effects.endStepOf(resolved))
  if (!isRejectedGate)
    await wakeAsker(db, approval, { outcome, reason, by: { id: caller.personRef, name: caller.name }, world })
  return shown(db, (await findApproval(db, caller.workspaceId, approval.id)) ?? approval)
}
