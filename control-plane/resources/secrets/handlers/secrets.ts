import type { AgentRef, SecretId } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { timeAndId, beforeOf, pageByTime } from '../../../../shared/api/paging.ts'
import { secretRoutes, type Secret } from '../../../../shared/api/secrets.ts'
import { redirectsTraffic } from '../../../../shared/lib/env-names.ts'
import { secretId, toTimestamp } from '../../../../shared/api/ids.ts'
import type { Db } from '../../../db/open.ts'
import { hasRole, type PersonCaller } from '../../../http/callers.ts'
import { answer, implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { listHiddenAgents, lookUpAgent } from '../../agents/lookup.ts'
import type { AgentRow } from '../../agents/store.ts'
import { mayDecideWhatRuns } from '../../agents/trust-rules.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { addSecret, checkBrokered, grantSecret } from '../add.ts'
import { envVarNameFor } from '../own/rules.ts'
import {
  findSecret,
  listGranteesOf,
  listSecrets,
  recordReveal,
  removeSecret,
  removeSecretGrant,
  replaceCloudUse,
  type SecretRow,
} from '../store.ts'

type Dependencies = Pick<ResourceDependencies, 'vault'>

export function secretHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(secretRoutes, {
    list,

    async create(input) {
      const { db, caller, body } = input
      const agent = body.agentId === undefined ? null : await grantee(db, caller, body.agentId)
      const { name, value, provider = null, envVarName = envVarNameFor(name), brokerHosts = [], cloudPlain } = body
      mayMakePlain(caller, cloudPlain)
      if (redirectsTraffic(envVarName) && !hasRole(caller, 'admin'))
        fail('http_exception', {
          param: 'envVarName',
          message: `${envVarName} says where the traffic of programs goes; a workspace admin stores such a secret.`,
        })
      const agentRef = agent?.id ?? null
      const use = { brokerHosts, isCloudPlain: cloudPlain ?? false }
      const secret = await addSecret(input, deps, { name, value, provider, envVarName, agentRef, ...use })
      return answer(201, await shown(db, caller, secret))
    },

    async update({ db, caller, params, body, log }) {
      const secret = await ownSecret(db, caller, params.secretId)
      const { brokerHosts, cloudPlain } = body
      mayMakePlain(caller, cloudPlain)
      if (brokerHosts !== undefined && brokerHosts.length > 0) checkBrokered(deps.vault.open(secret.id, secret.sealed))
      await replaceCloudUse(db, secret.id, {
        ...(brokerHosts !== undefined && { brokerHosts }),
        ...(cloudPlain !== undefined && { isCloudPlain: cloudPlain }),
      })
      const by = { secretId: secret.id, user: caller.personRef }
      log.info({ ...by, brokerHosts, cloudPlain }, 'how sandboxes get a secret was changed')
      return shown(db, caller, await knownSecret(db, caller, secret.id))
    },

    async reveal({ db, caller, params, world, log }) {
      const secret = await knownSecret(db, caller, params.secretId)
      const value = deps.vault.open(secret.id, secret.sealed)
      await recordReveal(db, { secretId: secret.id, by: caller.personRef, at: world.now() })
      log.warn({ secretId: secret.id, user: caller.personRef }, 'a secret was revealed')
      return { object: 'secret_value' as const, id: secret.id, name: secret.name, value }
    },

    async grant({ db, caller, params, body, world }) {
      const secret = await ownSecret(db, caller, params.secretId)
      const agent = await grantee(db, caller, body.agentId)
      const { workspaceId, personRef: by } = caller
      await grantSecret(db, {
        secretId: secret.id,
        agentRef: agent.id,
        workspaceId,
        grantedByRef: by,
        createdAt: world.now(),
      })
      return shown(db, caller, secret)
    },

    async revokeGrant({ db, caller, params }) {
      const secret = await ownSecret(db, caller, params.secretId)
      // The grant of a deleted agent goes, too, as the agent may be restored.
      const agent = (await lookUpAgent(db, caller, params.agentId)) ?? fail('agent_not_found', { param: 'agentId' })
      await removeSecretGrant(db, secret.id, agent.id)
    },

    async delete({ db, caller, params }) {
      await removeSecret(db, (await ownSecret(db, caller, params.secretId)).id)
    },
  })
}

const cursorKey = timeAndId(secretId)

async function list({ db, caller, query }: HandlerInput<typeof secretRoutes.list>) {
  const { limit } = query
  const rows = await listSecrets(db, { workspaceId: caller.workspaceId, limit, ...beforeOf(query, cursorKey) })
  const ids = rows.map((secret) => secret.id)
  const grantees = await visibleGrantees(db, caller, ids)
  return pageByTime(rows, limit, (secret) => presentSecret(secret, grantees.get(secret.id) ?? []))
}

async function knownSecret(db: Db, caller: PersonCaller, id: SecretId): Promise<SecretRow> {
  return (await findSecret(db, caller.workspaceId, id)) ?? fail('secret_not_found', { param: 'secretId' })
}

/** A secret to change, grant, revoke or delete, which only the person who stored it and workspace admins may do. */
async function ownSecret(db: Db, caller: PersonCaller, id: SecretId): Promise<SecretRow> {
  const secret = await knownSecret(db, caller, id)
  if (secret.createdByRef !== caller.personRef && !hasRole(caller, 'admin'))
    fail('http_exception', { message: 'Only who stored the secret and workspace admins do this.' })
  return secret
}

function mayMakePlain(caller: PersonCaller, cloudPlain: boolean | undefined): void {
  if (cloudPlain !== undefined && !hasRole(caller, 'admin'))
    fail('http_exception', {
      param: 'cloudPlain',
      message: 'Whether the value itself enters sandboxes, workspace admins decide.',
    })
}

/** The agent to grant a secret to, which becomes part of the environment of the agent's program. */
async function grantee(db: Db, caller: PersonCaller, reference: string): Promise<AgentRow> {
  const agent = await lookUpAgent(db, caller, reference)
  if (agent === null || agent.deletedAt !== null) return fail('agent_not_found', { param: 'agentId' })
  if (!mayDecideWhatRuns(caller, agent))
    fail('http_exception', {
      param: 'agentId',
      message: "Only the agent's owner and workspace admins give it secrets.",
    })
  return agent
}

async function shown(db: Db, caller: PersonCaller, secret: SecretRow): Promise<Secret> {
  return presentSecret(secret, (await visibleGrantees(db, caller, [secret.id])).get(secret.id) ?? [])
}

/** The agents that have each secret, without private ones of others. */
async function visibleGrantees(db: Db, caller: PersonCaller, secretIds: readonly SecretId[]) {
  const grantees = await listGranteesOf(db, secretIds)
  const hidden = await listHiddenAgents(db, caller, [...grantees.values()].flat())
  return new Map([...grantees].map(([id, agents]) => [id, agents.filter((agent) => !hidden.has(agent))]))
}

function presentSecret(secret: SecretRow, grantedTo: readonly AgentRef[]): Secret {
  return {
    object: 'secret',
    id: secret.id,
    workspaceId: secret.workspaceId,
    name: secret.name,
    provider: secret.provider,
    envVarName: secret.envVarName,
    grantedTo: grantedTo.map((id) => ({ type: 'agent', id })),
    createdBy: { type: 'user', id: secret.createdByRef },
    brokerHosts: secret.brokerHosts,
    cloudPlain: secret.isCloudPlain,
    lastRevealedBy: secret.lastRevealedByRef === null ? null : { type: 'user', id: secret.lastRevealedByRef },
    lastRevealedAt: toTimestamp(secret.lastRevealedAt),
    createdAt: toTimestamp(secret.createdAt),
  }
}
