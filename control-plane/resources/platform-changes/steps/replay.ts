import type { ApprovalId, WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { ApiError, PlainApiError } from '../../../../shared/api/errors.ts'
import type { Db, Tx } from '../../../db/open.ts'
import { hasRole, type PersonCaller } from '../../../http/callers.ts'
import type { HandlerInput, ImplementedRoute } from '../../../http/implement.ts'
import { encodeAnswer } from '../../../http/reply.ts'
import { createValidator } from '../../../http/validate.ts'
import type { AnyRoute } from '../../../../shared/api/route.ts'
import { closePlatformChange, findPlatformChange, type ChangeResult, type PlatformChangeRow } from '../store.ts'
import { inSavepoint } from '../../../db/transaction.ts'

/** The request in which a person approves. */
export type ApprovingRequest = Pick<HandlerInput<AnyRoute>, 'world' | 'log' | 'requestId' | 'signal' | 'room'> & {
  db: Tx
}

/** Makes the change that waits for this approval, and stores the result; does nothing when it was closed before. */
export async function approveChange(
  request: ApprovingRequest,
  approval: { id: ApprovalId; workspaceId: WorkspaceUuid },
  by: { person: PersonCaller; routes: readonly ImplementedRoute[] },
): Promise<void> {
  const change = await findPlatformChange(request.db, approval.workspaceId, approval.id)
  if (change === null || change.status !== 'pending') return
  const result = await replayChange(request, change, by)
  await closePlatformChange(request.db, { id: change.id, status: 'approved', result })
}

/** Records that the change was rejected. */
export async function dropChange(db: Db, approvalId: ApprovalId): Promise<void> {
  await closePlatformChange(db, { id: approvalId, status: 'rejected', result: null })
}

/**
 * Makes the requested change by the route's own handler, with the rights of the approving person, recorded as done by
 * the agent. It runs in a savepoint of the approval's transaction, so a refusal undoes everything except the stored
 * answer. Any other error fails the approval as a whole.
 */
async function replayChange(
  request: ApprovingRequest,
  change: PlatformChangeRow,
  { person, routes }: { person: PersonCaller; routes: readonly ImplementedRoute[] },
): Promise<ChangeResult> {
  const implemented = routes.find(({ route }) => route.id === change.routeId)
  try {
    if (implemented === undefined) throw new ApiError('route_not_found')
    const caller: PersonCaller = { ...person, onBehalfOf: change.agentRef }
    checkRole(implemented.route, caller)
    const { staged } = implemented
    const prepared = staged?.parse(change.body)
    return await inSavepoint(request.db, async (tx) =>
      answerOf(implemented, inputOf(request, { implemented, change, caller, db: tx }), prepared),
    )
  } catch (error) {
    if (error instanceof PlainApiError) return { status: error.status, body: { error: error.message } }
    if (!(error instanceof ApiError) || error.status >= 500) throw error
    return { status: error.status, body: error.toEnvelope(request.requestId) }
  }
}

function checkRole(route: AnyRoute, caller: PersonCaller): void {
  if (route.callers === 'none') return
  const { person } = route.callers
  if (typeof person === 'object') throw new ApiError(person.refused)
  if (!hasRole(caller, person))
    throw new ApiError('http_exception', { message: `Only a workspace ${person} may do this.` })
}

async function answerOf(
  { route, handler }: ImplementedRoute,
  input: HandlerInput<AnyRoute>,
  prepared: unknown,
): Promise<ChangeResult> {
  const { status, body } = encodeAnswer(route, await handler(input, prepared), false)
  return { status, body: body === null ? null : (JSON.parse(body) as unknown) }
}

function inputOf(
  request: ApprovingRequest,
  replay: { implemented: ImplementedRoute; change: PlatformChangeRow; caller: PersonCaller; db: Db },
): HandlerInput<AnyRoute> {
  const { change, caller, db } = replay
  const { route, staged } = replay.implemented
  const validator = createValidator(route)
  const texts = Object.entries(change.params).map(([name, value]) => [name, String(value)])
  return {
    // Validated again: the schemas may have changed since the change was stored.
    params: validator.params(Object.fromEntries(texts) as Record<string, string>) as HandlerInput<AnyRoute>['params'],
    query: validator.query('') as HandlerInput<AnyRoute>['query'],
    body: staged === undefined ? validator.body(change.body) : undefined,
    // Routes for all kinds of callers are in one list; `checkRole` has checked that a person may call this one.
    caller,
    db,
    world: request.world,
    log: request.log,
    requestId: request.requestId,
    path: route.base + route.path,
    signal: request.signal,
    room: request.room,
    bearer: null,
    contentType: null,
    client: change.source,
    stream: null,
  }
}
