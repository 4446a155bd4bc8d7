import { z } from 'zod'
import { harnessNames } from '../runs/harnesses.ts'
import { reasoningEfforts, speeds } from '../runs/spec.ts'
import { authorTypes, conversationKinds } from './conversation-fields.ts'
import { conversationId, messageId, taskId, timestamp, workspacePublicId } from './ids.ts'
import { message, named } from './messages.ts'
import { taskSummary } from './task-shapes.ts'

// Conversations as clients read them, and the ways to name their participants.

export const participant = z
  .object({
    type: z.enum(['user', 'agent']),
    id: z.string().describe('`usr_` or `agt_` id.'),
  })
  .meta({ id: 'Participant' })

export const conversationRuntime = z
  .object({
    modelId: z.string().nullable(),
    harness: z.enum(harnessNames).nullable(),
    reasoningEffort: z.enum(reasoningEfforts).nullable(),
    speed: z.enum(speeds).nullable(),
    changedAt: timestamp.nullable().describe('Turns after it begin with a fresh harness session.'),
  })
  .meta({ id: 'ConversationRuntime' })

export const conversation = z
  .object({
    object: z.literal('conversation'),
    id: conversationId,
    workspaceId: workspacePublicId,
    companyId: z.string(),
    title: z.string().nullable(),
    taskId: taskId.nullable(),
    kind: z.enum(conversationKinds),
    triggerMode: z
      .enum(['respond_to_all', 'mention_to_wake'])
      .describe('Which messages wake its agents; follows from the kind.'),
    capabilities: z
      .object({ canEdit: z.boolean(), canArchive: z.boolean(), canDelete: z.boolean() })
      .describe('What you may do with it.'),
    participants: z.array(participant),
    agentParticipantCount: z.number().int(),
    lastMessageId: messageId.nullable(),
    lastMessagePreview: z.string().nullable().describe('One flat line.'),
    lastActivityAt: timestamp.nullable(),
    messageCount: z.number().int().describe('Messages that are not deleted.'),
    createdBy: z.object({ type: z.enum(authorTypes), id: z.string().nullable() }),
    archivedAt: timestamp.nullable(),
    lastReadAt: timestamp.nullable(),
    unreadCount: z
      .number()
      .int()
      .describe('Messages of others since you last read, counted up to 1,000; 0 for an agent.'),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Conversation' })
export type Conversation = z.infer<typeof conversation>

export const conversationDetail = conversation
  .extend({
    messages: z.array(message).optional().describe('With `include=messages`: the last 25, oldest first.'),
    task: taskSummary.nullable().optional().describe('With `include=task`.'),
    participantsExpanded: z
      .array(participant.extend(named.shape))
      .optional()
      .describe('With `include=participantsExpanded`.'),
    runtime: conversationRuntime.optional().describe('With `include=runtime`.'),
  })
  .meta({ id: 'ConversationDetail' })
export type ConversationDetail = z.infer<typeof conversationDetail>

export const reference = z.string().min(1).max(200)
export const participantInput = z.union([
  reference.describe('`usr_` id, or any reference to an agent.'),
  z.object({ type: z.enum(['user', 'agent']), id: reference }),
])
export type ParticipantInput = z.infer<typeof participantInput>
