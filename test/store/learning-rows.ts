import type { WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { insertLearning, type LearningRow } from '../../control-plane/resources/learnings/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { at } from './seed.ts'

const id = <Prefix extends string>(prefix: Prefix) => realWorld.id(prefix)

/** A proposed learning of a person, stored. */
export async function seedLearning(
  db: Db,
  workspaceId: WorkspaceUuid,
  changes: Partial<LearningRow> = {},
): Promise<LearningRow> {
  const row: LearningRow = {
    id: id('lrn_'),
    workspaceId,
    topic: 'Builds',
    status: 'proposed',
    bullets: [{ text: 'Run make clean.', sources: ['https://example.com/builds'] }],
    agentRef: null,
    runId: null,
    taskId: null,
    conversationId: null,
    approvalId: id('apr_'),
    rejectedReason: null,
    version: 1,
    createdAt: at,
    updatedAt: at,
    ...changes,
  }
  await insertLearning(db, row)
  return row
}
