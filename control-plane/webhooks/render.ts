import { ApiError } from '../../shared/api/errors.ts'
import type { PersonRef, PersonUuid, WorkspaceUuid } from '../../shared/lib/ids.ts'
import { subjectOfEvent, webhookEventTypes, type WebhookSubject } from '../../shared/api/webhook-fields.ts'
import type { World } from '../../shared/lib/world.ts'
import { AnswerRoom } from '../http/answer-room.ts'
import type { BodyRoom } from '../http/body-room.ts'
import { callerKey, hasRole, type PersonCaller } from '../http/callers.ts'
import type { HandlerInput, ImplementedRoute } from '../http/implement.ts'
import type { AnyRoute } from '../../shared/api/route.ts'
import { encodeAnswer } from '../http/reply.ts'
import { createValidator } from '../http/validate.ts'
import type { Db } from '../db/open.ts'
import type { Log } from '../process/log.ts'
import { findMemberByReference, findRole } from '../resources/members/store.ts'
import type { WebhookEventRow } from '../resources/webhooks/event-store.ts'
import type { WebhookRow } from '../resources/webhooks/store.ts'

// What an event is about, read by the route that shows it, in the name of whoever made the webhook: they are sent what they would read.

/** The route that shows each thing, and the parameter that names it. */
const shownBy: Readonly<Record<WebhookSubject, { routeId: string; param: string }>> = {
  run: { routeId: 'runs.get', param: 'runId' },
  approval: { routeId: 'approvals.get', param: 'approvalId' },
  question: { routeId: 'questions.get', param: 'id' },
  task: { routeId: 'tasks.get', param: 'id' },
}

export interface Reading {
  db: Db
  world: World
  log: Log
  routes: readonly ImplementedRoute[]
  /** Room in memory for what is read. */
  answers: BodyRoom
}

/** Whoever made the webhook, as a caller; null: they administer the workspace no more. */
export async function makerOf(
  db: Db,
  { workspaceId, createdByRef }: Pick<WebhookRow, 'workspaceId' | 'createdByRef'>,
): Promise<PersonCaller | null> {
  const caller = await memberOf(db, workspaceId, createdByRef)
  return caller !== null && hasRole(caller, 'admin') ? caller : null
}

/** A member of the workspace, as a caller; null: they are none any more. */
export async function memberOf(
  db: Db,
  workspaceId: WorkspaceUuid,
  reference: PersonRef | PersonUuid,
): Promise<PersonCaller | null> {
  const member = await findMemberByReference(db, workspaceId, reference)
  const role = member === null ? null : await findRole(db, workspaceId, member.id)
  if (member === null || role === null) return null
  const { id: personUuid, publicId: personRef, name, email } = member
  return { kind: 'person', via: 'login_token', personUuid, personRef, name, email, workspaceId, role }
}

/** The thing that an event is about, as its route shows it; null: there is none that the person sees. */
export async function shownTo(
  person: PersonCaller,
  { type, subjectId }: Pick<WebhookEventRow, 'type' | 'subjectId'>,
  reading: Reading,
): Promise<Record<string, unknown> | null> {
  const known = webhookEventTypes.find((each) => each === type)
  if (known === undefined) return null
  const { routeId, param } = shownBy[subjectOfEvent(known)]
  const implemented = reading.routes.find(({ route }) => route.id === routeId)!
  try {
    const answer = await implemented.handler(inputOf(implemented.route, { [param]: subjectId }, { person, reading }))
    const { body } = encodeAnswer(implemented.route, answer, false)
    return body === null ? null : (JSON.parse(body) as Record<string, unknown>)
  } catch (error) {
    if (error instanceof ApiError && error.status < 500) return null
    throw error
  }
}

function inputOf(
  route: AnyRoute,
  params: Record<string, string>,
  { person, reading }: { person: PersonCaller; reading: Reading },
): HandlerInput<AnyRoute> {
  const validator = createValidator(route)
  const { db, world, log, answers } = reading
  const { signal } = new AbortController()
  const owner = { group: person.workspaceId, member: callerKey(person) }
  return {
    params: validator.params(params) as HandlerInput<AnyRoute>['params'],
    query: validator.query('') as HandlerInput<AnyRoute>['query'],
    body: undefined,
    caller: person,
    db,
    world,
    log,
    requestId: `req_${world.uuid()}`,
    path: route.base + route.path,
    signal,
    room: new AnswerRoom(answers, owner, () => signal),
    bearer: null,
    contentType: null,
    client: 'api',
    stream: null,
  }
}
