import type {
  ActorRef,
  AgentRef,
  AgentUuid,
  PersonRef,
  PersonUuid,
  RunId,
  WorkspaceUuid,
} from '../../shared/lib/ids.ts'
import { fail } from '../../shared/api/errors.ts'
import type { AnyRoute, CallerRefusal, Role } from '../../shared/api/route.ts'

// The caller: a person by login token or dashboard session, or an agent by the token of its run.

export interface PersonCaller {
  readonly kind: 'person'
  readonly via: 'login_token' | 'dashboard_session'
  /** UUID. */
  readonly personUuid: PersonUuid
  /** `usr_...` */
  readonly personRef: PersonRef
  readonly name: string
  readonly email: string
  readonly workspaceId: WorkspaceUuid
  readonly role: Role
  /** `agt_` id of the agent whose request the person approves: what is done goes by the agent's name. */
  readonly onBehalfOf?: AgentRef
}

export interface AgentCaller {
  readonly kind: 'agent'
  /** `agt_...` */
  readonly agentRef: AgentRef
  readonly agentUuid: AgentUuid
  readonly workspaceId: WorkspaceUuid
  readonly runId: RunId
  readonly fence: number
}

export type Caller = PersonCaller | AgentCaller

/** The caller a route's handler gets: kinds that the route refuses do not reach it. */
export type CallerOf<R extends AnyRoute> = R['callers'] extends 'none'
  ? null
  : R['callers'] extends { agent: CallerRefusal }
    ? PersonCaller
    : R['callers'] extends { person: CallerRefusal }
      ? AgentCaller
      : Caller

const rank: Record<Role, number> = { member: 0, admin: 1, owner: 2 }

export function hasRole(caller: Caller, least: Role): boolean {
  return caller.kind === 'person' && rank[caller.role] >= rank[least]
}

/** Public id of the person (`usr_`) or the agent (`agt_`) who calls. */
export const publicIdOf = (caller: Caller): ActorRef => (caller.kind === 'person' ? caller.personRef : caller.agentRef)

/** The caller as the author of what it does. */
export const actorOf = (caller: Caller): { type: 'user' | 'agent'; id: ActorRef } => ({
  type: caller.kind === 'person' ? 'user' : 'agent',
  id: publicIdOf(caller),
})

/** Names the caller in idempotency scopes and rate limits; an agent's runs share one. */
export function callerKey(caller: Caller): string {
  return caller.kind === 'person' ? `person:${caller.personUuid}` : `agent:${caller.agentRef}`
}

/**
 * A caller who names another workspace may well be a member of it: what stops the call is the token, or that the session was not told
 * to work there. Whether they are a member is told only where they name it by the header.
 */
export function failElsewhere(caller: Caller, param: string): never {
  const isToken = caller.kind === 'agent' || caller.via === 'login_token'
  const message = isToken
    ? 'This token works only in its own workspace.'
    : 'This call is made in another workspace than the one it names: name that one in the header Svc-Workspace-Id, too.'
  return fail('not_permitted', { param, message })
}
