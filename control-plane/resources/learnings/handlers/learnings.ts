import { isDeepStrictEqual } from 'node:util'
import { changedRow } from '../../../db/changed-row.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { learningId } from '../../../../shared/api/ids.ts'
import type { Learning } from '../../../../shared/api/learning-fields.ts'
import { learningRoutes } from '../../../../shared/api/learnings.ts'
import { beforeOf, pageByTime, timeAndId } from '../../../../shared/api/paging.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { answer, implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { workViewerOf } from '../../projects/work-visibility.ts'
import { digestOf, raiseApproval } from '../../approvals/steps/raise.ts'
import { lookUpConversation } from '../../conversations/lookup.ts'
import { readableLearning, unknownLearning } from '../own/lookup.ts'
import { bulletsOf, entitiesOf, isProposed, reviewPrompt } from '../own/rules.ts'
import { presentLearnings } from '../steps/own/present.ts'
import {
  findLearning,
  insertLearning,
  listEntities,
  listLearnings,
  replaceEntities,
  replaceLearning,
  type LearningRow,
} from '../store.ts'
import { originOf } from './origin.ts'

type Routes = typeof learningRoutes

export function learningHandlers(): ImplementedRoute[] {
  return implement(learningRoutes, {
    list,
    create,

    async get({ db, caller, params }) {
      return shown(db, caller, await readableLearning(db, caller, params.id))
    },

    async update({ db, caller, params, body, world }) {
      const before = await readableLearning(db, caller, params.id)
      if (!isProposed(before)) fail('learning_not_editable')
      const { topic, bullets, entities } = body
      const changes = withoutUndefined({ topic, bullets: bullets && bulletsOf(bullets) })
      const wanted = entities && entitiesOf(entities)
      const has = (await listEntities(db, [before.id])).get(before.id) ?? []
      const isAboutOther = wanted !== undefined && !isDeepStrictEqual(wanted, has)
      const after = changedRow(before, changes, world.now())
      await replaceLearning(db, before, isAboutOther ? { ...after, updatedAt: world.now() } : after)
      if (isAboutOther) await replaceEntities(db, before, wanted)
      return shown(db, caller, (await findLearning(db, before.workspaceId, before.id)) ?? unknownLearning())
    },
  })
}

const listCursor = timeAndId(learningId)

async function list({ db, caller, query }: HandlerInput<Routes['list']>) {
  const { limit, status, entityType, entityName, conversationId, approvalId } = query
  const before = beforeOf(query, listCursor)
  // A conversation that the caller does not see has no learnings, also when they see the learnings themselves.
  const isHidden = conversationId !== undefined && (await lookUpConversation(db, caller, conversationId)) === null
  const filter = withoutUndefined({
    visibleTo: workViewerOf(caller),
    status,
    entityType,
    entityName,
    conversationId,
    approvalId,
  })
  const rows = isHidden ? [] : await listLearnings(db, { workspaceId: caller.workspaceId, ...filter, ...before, limit })
  const byId = new Map((await presentLearnings(db, caller, rows.slice(0, limit))).map((one) => [one.id, one]))
  return pageByTime(rows, limit, ({ id }) => byId.get(id)!)
}

/** The approval belongs to no run, so that it outlives the one that files. */
async function create({ db, caller, body, world }: HandlerInput<Routes['create']>) {
  const origin = await originOf(db, caller, body)
  const now = world.now()
  const learning: LearningRow = {
    id: world.id('lrn_'),
    workspaceId: caller.workspaceId,
    topic: body.topic,
    status: 'proposed',
    bullets: bulletsOf(body.bullets),
    agentRef: caller.kind === 'agent' ? caller.agentRef : null,
    ...origin,
    approvalId: world.id('apr_'),
    rejectedReason: null,
    version: 1,
    createdAt: now,
    updatedAt: now,
  }
  const { id, topic, bullets, agentRef, taskId, conversationId } = learning
  await raiseApproval(
    db,
    {
      id: learning.approvalId,
      workspaceId: caller.workspaceId,
      agentRef,
      runId: null,
      taskId,
      conversationId,
      sessionId: null,
      trigger: 'learning_review',
      prompt: reviewPrompt(learning),
      gatedThing: {
        kind: 'learning_review',
        name: id,
        inputDigest: digestOf([id, topic, bullets]),
        safeSummary: topic,
        scope: 'once',
      },
    },
    world,
  )
  await insertLearning(db, learning)
  await replaceEntities(db, learning, entitiesOf(body.entities))
  return answer(201, await shown(db, caller, learning))
}

async function shown(db: Db, caller: Caller, learning: LearningRow): Promise<Learning> {
  return (await presentLearnings(db, caller, [learning]))[0]!
}
