import { toTimestamp } from '../../../../shared/api/ids.ts'
import type { Entity, Learning } from '../../../../shared/api/learning-fields.ts'
import type { LearningRow } from '../store.ts'

/** The conversation, task and run that a learning comes from, as far as its reader sees them. */
export type Origin = Pick<Learning, 'conversationId' | 'taskId' | 'runId'>

export function presentLearning(
  learning: LearningRow,
  { entities, origin }: { entities: readonly Entity[]; origin: Origin },
): Learning {
  const { id, topic, status, bullets, agentRef, approvalId, rejectedReason, createdAt, updatedAt } = learning
  return {
    object: 'learning',
    id,
    topic,
    status,
    bullets: bullets.map(({ text, sources }, ord) => ({
      ord,
      text,
      sources: sources.map((url, at) => ({ url, ord: at })),
    })),
    entities: [...entities],
    ...origin,
    createdByAgentId: agentRef,
    createdByUserId: null,
    approvalId,
    rejectedReason,
    createdAt: toTimestamp(createdAt),
    updatedAt: toTimestamp(updatedAt),
  }
}
