import { agentHistoryRoutes } from '../../../../shared/api/agent-history.ts'
import { fail, failPlain } from '../../../../shared/api/errors.ts'
import { uuid } from '../../../../shared/api/ids.ts'
import { timeAndId, beforeOf, pageByTime } from '../../../../shared/api/paging.ts'
import type { Db } from '../../../db/open.ts'
import { implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { raisePlatformChange } from '../../platform-changes/steps/raise.ts'
import { findHistory, listHistory } from '../own/history-store.ts'
import { lookUpAgent, changeableOwn, readableOwn } from '../lookup.ts'
import { presentHistory, presentRevision, presentSettings } from '../present.ts'
import { findRevision, listRevisions, type RevisionRow } from '../own/revision-store.ts'
import { isRevertible, keptConfig, withRevised } from '../own/revision-rules.ts'
import { changedKeys } from '../rules.ts'
import type { AgentRow } from '../store.ts'
import { mayChangeItself } from '../trust-rules.ts'
import { storeAgent } from '../steps/store-agent.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'

type Routes = typeof agentHistoryRoutes

const cursorKey = timeAndId(uuid)

export function agentHistoryHandlers(): ImplementedRoute[] {
  return implement(agentHistoryRoutes, {
    async revisionsList({ db, caller, params, query }) {
      const agent = await readableOwn(db, caller, params.agentId)
      const rows = await listRevisions(db, { agentRef: agent.id, limit: query.limit, ...beforeOf(query, cursorKey) })
      return pageByTime(rows, query.limit, presentRevision)
    },

    async revisionsGet({ db, caller, params }) {
      const agent = await readableOwn(db, caller, params.agentId)
      return presentRevision(await revisionOf(db, agent, params.revisionId))
    },

    revisionsRollback: rollback,

    async historyList({ db, caller, params, query }) {
      const agent = await readableOwn(db, caller, params.agentId)
      const { kind: kinds, limit } = query
      const rows = await listHistory(db, {
        agentRef: agent.id,
        ...withoutUndefined({ kinds }),
        limit,
        ...beforeOf(query, cursorKey),
      })
      return pageByTime(rows, limit, presentHistory)
    },

    historyRevert: revert,
  })
}

async function revisionOf(db: Db, agent: AgentRow, id: string): Promise<RevisionRow> {
  const param = 'revisionId'
  return (await findRevision(db, agent.id, id)) ?? fail('resource_not_found', { param, message: 'No such revision.' })
}

async function rollback(input: HandlerInput<Routes['revisionsRollback']>) {
  const { db, caller, params, world } = input
  const before = await changeableOwn(db, caller, params.agentId)
  const chosen = await revisionOf(db, before, params.revisionId)
  const after = withRevised(before, keptConfig(chosen.afterConfig))
  const keys = changedKeys(before, after)
  if (keys.length === 0) return failPlain('plain.revision_matches')
  if (caller.kind === 'agent' && !mayChangeItself({ before, after, keys })) {
    const change = { agentId: before.id, revisionId: chosen.id }
    return raisePlatformChange(
      { ...input, body: null },
      { caller, routeId: agentHistoryRoutes.revisionsRollback.id, params: change },
    )
  }
  const description = `Rolled back to the revision of ${new Date(chosen.createdAt).toISOString()}.`
  const { agent, revision } = await storeAgent(db, { before, after, caller, world, source: 'rollback', description })
  // Something changed, so there is a revision.
  return { ...presentSettings(agent), revision: presentRevision(revision!) }
}

async function revert(input: HandlerInput<Routes['historyRevert']>) {
  const { db, caller, world } = input
  const { agent: before, entry } = await entryToRevert(input)
  if (!isRevertible(entry.kind)) fail('config_revert_unsupported', { param: 'entryId' })
  const revision = await revisionOf(db, before, entry.id)
  const after = withRevised(before, keptConfig(revision.beforeConfig, entry.changedKeys))
  if (caller.kind === 'agent' && !mayChangeItself({ before, after, keys: entry.changedKeys }))
    fail('agent_config_human_only', { param: 'entryId', details: { changedKeys: entry.changedKeys } })
  const keys = changedKeys(before, after)
  if (keys.length === 0) return { ...presentSettings(before), entry: null }
  const description = `Undid: ${entry.description}`
  const { agent, entry: made } = await storeAgent(db, { before, after, caller, world, description, reverts: entry.id })
  return { ...presentSettings(agent), entry: made && presentHistory(made) }
}

/** A person may leave the agent out (`me`): the entry names its agent. */
async function entryToRevert({ db, caller, params }: HandlerInput<Routes['historyRevert']>) {
  const entry = await findHistory(db, params.entryId)
  if (params.agentId === 'me' && caller.kind === 'person') {
    const agent = entry && (await lookUpAgent(db, caller, entry.agentRef))
    return agent && agent.deletedAt === null ? { agent, entry } : unknownEntry()
  }
  const agent = await changeableOwn(db, caller, params.agentId)
  return entry?.agentRef === agent.id ? { agent, entry } : unknownEntry()
}

const unknownEntry = (): never =>
  fail('resource_not_found', { param: 'entryId', message: 'There is no such entry in the history.' })
