import type { LearningRow } from '../../control-plane/resources/learnings/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { at } from './seed.ts'

/** A learning that is proposed, not stored yet. */
export const learningRow = (workspaceId: string, changes: Partial<LearningRow> = {}): LearningRow => ({
  id: realWorld.id('lrn_'),
  workspaceId,
  topic: 'Releases',
  status: 'proposed',
  bullets: [{ ord: 0, text: 'Tag it first.', sources: [{ url: 'https://example.com/', ord: 0 }] }],
  entities: [{ type: 'tool', name: 'git' }],
  conversationId: null,
  agentId: null,
  runId: null,
  taskId: null,
  approvalId: realWorld.id('apr_'),
  rejectedReason: null,
  version: 1,
  createdAt: at,
  updatedAt: at,
  ...changes,
})
