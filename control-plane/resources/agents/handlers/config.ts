import { agentConfigRoutes } from '../../../../shared/api/agent-config.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { BodyOf } from '../../../../shared/api/route.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { instructionsFor } from '../../../run/wakes/build-spec.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { raisePlatformChange } from '../../platform-changes/steps/raise.ts'
import { hashAgentMd } from '../agent-md.ts'
import { readableAgent, changeableOwn, readableOwn } from '../lookup.ts'
import { presentIdentity, presentRevision, presentSettings } from '../present.ts'
import { changedKeys, withConfig } from '../rules.ts'
import type { AgentRow } from '../store.ts'
import { mayChangeItself } from '../trust-rules.ts'
import { changedLists, missingRule } from '../permission-rules.ts'
import type { AuditAgent } from '../audit.ts'
import { checkRules, storeAgent, workspaceOf } from '../steps/store-agent.ts'

type Dependencies = Pick<ResourceDependencies, 'catalog' | 'leaseMs'> & { audit: AuditAgent }

export function agentConfigHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(agentConfigRoutes, {
    async configGet({ db, caller, params }) {
      return presentSettings(await readableOwn(db, caller, params.agentId))
    },

    configPut: (input) => configPut(input, deps),

    async identityGet({ db, caller, params }) {
      return identityOf(db, caller, await readableAgent(db, caller, params.agentId))
    },

    async identityPutAgentMd({ db, caller, params, body, world }) {
      const before = await changeableOwn(db, caller, params.agentId)
      checkHash(before, caller, body.agentMdHash)
      const after = withAgentMd(before, body.agentMd)
      const { agent } = await storeAgent(db, { before, after, caller, world })
      return identityOf(db, caller, agent)
    },
  })
}

/** The texts that its runs are given before AGENT.md, as their manifests name them. */
async function identityOf(db: Db, caller: Caller, agent: AgentRow) {
  const texts = instructionsFor({ agentMd: '' }, await workspaceOf(db, caller))
  return presentIdentity(
    agent,
    texts.map(({ text }) => text),
  )
}

async function configPut(input: HandlerInput<typeof agentConfigRoutes.configPut>, deps: Dependencies) {
  const { db, caller, params, body, world } = input
  const before = await changeableOwn(db, caller, params.agentId)
  if (body.agentMd !== undefined) checkHash(before, caller, body.agentMdHash)
  const configured = withRuleChanges(withConfig(before, body.config ?? {}), body)
  const after = body.agentMd === undefined ? configured : withAgentMd(configured, body.agentMd)
  checkRules(before, after)
  const keys = changedKeys(before, after)
  if (caller.kind === 'agent' && !mayChangeItself({ before, after, keys }))
    return raisePlatformChange(input, {
      caller,
      routeId: agentConfigRoutes.configPut.id,
      params: { agentId: before.id },
    })
  const { agent, revision } =
    keys.length === 0 ? { agent: before, revision: null } : await storeAgent(db, { before, after, caller, world })
  const workspace = await workspaceOf(db, caller)
  const audit = await deps.audit(db, { agent, workspace }, world.now())
  return { ...presentSettings(agent), revision: revision && presentRevision(revision), audit }
}

function withRuleChanges(
  agent: AgentRow,
  { addRules, removeRules }: BodyOf<typeof agentConfigRoutes.configPut>,
): AgentRow {
  const missing = missingRule(agent.tools, removeRules ?? {})
  if (missing !== null) fail('validation_error', missing)
  return { ...agent, tools: changedLists(agent.tools, { add: addRules, remove: removeRules }) }
}

/** An agent must prove that it knows the text it replaces; a person's hash is checked only when it is sent. */
function checkHash(agent: AgentRow, caller: Caller, hash: string | undefined): void {
  if (hash?.toLowerCase() === agent.agentMdHash) return
  if (hash === undefined && caller.kind === 'person') return
  fail('agent_md_stale', {
    param: 'agentMdHash',
    details: { agentMd: agent.agentMd, agentMdHash: agent.agentMdHash },
    ...(hash === undefined ? { message: 'Send agentMdHash, the hash of the AGENT.md you read.' } : {}),
  })
}

const withAgentMd = (agent: AgentRow, text: string): AgentRow => ({
  ...agent,
  agentMd: text,
  agentMdHash: hashAgentMd(text),
})
