import type { Learning } from '../../../../../shared/api/learning-fields.ts'
import type { Db } from '../../../../db/open.ts'
import type { Caller } from '../../../../http/callers.ts'
import { onlyVisibleEntities } from '../../../files/steps/entities.ts'
import { presentLearning } from '../../own/present.ts'
import { listEntities, type LearningRow } from '../../store.ts'

const originTypes = { conversationId: 'conversation', taskId: 'task', runId: 'run' } as const
const keys = Object.keys(originTypes) as (keyof typeof originTypes)[]

/** Whoever does not see a conversation, a task or a run does not see that a learning comes from it. */
export async function presentLearnings(db: Db, caller: Caller, learnings: readonly LearningRow[]): Promise<Learning[]> {
  const entities = await listEntities(
    db,
    learnings.map(({ id }) => id),
  )
  const origins = learnings.flatMap((learning) =>
    keys.flatMap((key) => {
      const entityId = learning[key]
      return entityId === null ? [] : [{ learning, key, entityType: originTypes[key], entityId }]
    }),
  )
  const seen = await onlyVisibleEntities(db, caller, origins)
  return learnings.map((learning) => {
    const isSeen = (key: keyof typeof originTypes) => seen.some((one) => one.learning === learning && one.key === key)
    const shown = <Key extends keyof typeof originTypes>(key: Key) => (isSeen(key) ? learning[key] : null)
    return presentLearning(learning, {
      entities: entities.get(learning.id) ?? [],
      origin: { conversationId: shown('conversationId'), taskId: shown('taskId'), runId: shown('runId') },
    })
  })
}
