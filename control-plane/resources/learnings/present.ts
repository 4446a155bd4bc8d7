import { toTimestamp } from '../../../shared/api/ids.ts'
import type { Learning } from '../../../shared/api/learning-fields.ts'
import type { LearningRow } from './store.ts'

export function presentLearning(learning: LearningRow): Learning {
  const { id, topic, status, bullets, entities, conversationId, agentId, runId, taskId, approvalId } = learning
  return {
    object: 'learning',
    id,
    topic,
    status,
    bullets,
    entities,
    conversationId,
    createdByAgentId: agentId,
    createdByUserId: null,
    runId,
    taskId,
    approvalId,
    rejectedReason: learning.rejectedReason,
    createdAt: toTimestamp(learning.createdAt),
    updatedAt: toTimestamp(learning.updatedAt),
  }
}
