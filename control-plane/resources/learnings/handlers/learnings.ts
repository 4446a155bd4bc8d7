import { fail } from '../../../../shared/api/errors.ts'
import { learningId } from '../../../../shared/api/ids.ts'
import { learningRoutes } from '../../../../shared/api/learnings.ts'
import { beforeOf, pageByTime, pageOf, timeAndId } from '../../../../shared/api/paging.ts'
import { given } from '../../../../shared/lib/given.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { answer, implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { digestOf, raiseApproval } from '../../approvals/steps/raise.ts'
import { isConversationVisible, readableConversation } from '../../conversations/lookup.ts'
import { findConversation } from '../../conversations/store.ts'
import { authoredBy } from '../../tasks/steps/authored.ts'
import { presentLearning } from '../present.ts'
import { bulletsOf, entitiesOf, reviewPrompt } from '../rules.ts'
import { findLearning, insertLearning, listLearnings, replaceLearning, type LearningRow } from '../store.ts'

type Routes = typeof learningRoutes

/** Learnings are there for everybody in their workspace, as the wiki is for which they are proposed. */
export function learningHandlers(): ImplementedRoute[] {
  return implement(learningRoutes, {
    list,
    create,

    async get({ db, caller, params }) {
      return presentLearning(await namedLearning(db, caller.workspaceId, params.id))
    },

    async update({ db, caller, params, body, world }) {
      const before = await namedLearning(db, caller.workspaceId, params.id)
      if (before.status !== 'proposed') fail('learning_not_editable')
      const { topic, bullets, entities } = body
      const changed = given({
        topic,
        bullets: bullets && bulletsOf(bullets),
        entities: entities && entitiesOf(entities),
      })
      const after = { ...before, ...changed, updatedAt: world.now() }
      await replaceLearning(db, before, after)
      return presentLearning(after)
    },
  })
}

async function namedLearning(db: Db, workspaceId: string, id: string): Promise<LearningRow> {
  return (await findLearning(db, workspaceId, id)) ?? fail('learning_not_found', { param: 'id' })
}

const cursor = timeAndId(learningId)

async function list({ db, caller, query }: HandlerInput<Routes['list']>) {
  const { status, conversationId, approvalId, limit } = query
  if (conversationId !== undefined && !(await seesConversation(db, caller, conversationId)))
    return pageOf({ rows: [], limit, keyOf: () => [], present: presentLearning })
  const filter = {
    workspaceId: caller.workspaceId,
    ...given({
      status,
      conversationId,
      approvalId,
      entityType: query.entityType?.toLowerCase(),
      entityName: query.entityName?.toLowerCase(),
    }),
    ...beforeOf(query, cursor),
    limit,
  }
  return pageByTime(await listLearnings(db, filter), limit, presentLearning)
}

async function seesConversation(db: Db, caller: Caller, id: string): Promise<boolean> {
  const conversation = await findConversation(db, id)
  return conversation !== null && isConversationVisible(db, caller, conversation)
}

/** Stores it with the approval that decides about it, which holds no run and outlives the run that files it. */
async function create({ db, caller, body, world }: HandlerInput<Routes['create']>) {
  const { author, taskId, runId, ...own } = await authoredBy(db, caller, body)
  const conversationId =
    body.conversationId == null ? own.conversationId : (await readableConversation(db, caller, body.conversationId)).id
  const agentId = author.type === 'agent' ? author.id : null
  const { workspaceId } = caller
  const { topic } = body
  const bullets = bulletsOf(body.bullets)
  const approvalId = await raiseApproval(
    db,
    {
      workspaceId,
      agentId,
      runId: null,
      taskId,
      conversationId,
      sessionId: null,
      trigger: 'learning_review',
      prompt: reviewPrompt({ topic, bullets }),
      gatedThing: {
        kind: 'learning_review',
        name: 'learning',
        inputDigest: digestOf({ topic, bullets }),
        safeSummary: topic,
        scope: 'once',
      },
    },
    world,
  )
  const now = world.now()
  const learning: LearningRow = {
    id: world.id('lrn_'),
    workspaceId,
    topic,
    status: 'proposed',
    bullets,
    entities: entitiesOf(body.entities ?? []),
    conversationId,
    agentId,
    runId,
    taskId,
    approvalId,
    rejectedReason: null,
    version: 1,
    createdAt: now,
    updatedAt: now,
  }
  await insertLearning(db, learning)
  return answer(201, presentLearning(learning))
}
