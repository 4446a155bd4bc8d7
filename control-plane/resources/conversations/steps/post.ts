import type {
  ActorRef,
  AgentRef,
  AutomationId,
  FileId,
  MessageId,
  PersonUuid,
  RunId,
} from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { MessageSource } from '../../../../shared/api/conversation-fields.ts'
import { secretIn } from '../../../../shared/lib/secret-shapes.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { viewerOfAgents, type Viewer } from '../../agents/rules.ts'
import { findAutomationOfRun } from '../../automations/fire-store.ts'
import { checkAttachments } from '../attachments.ts'
import { fileViewerOf } from '../../files/rules.ts'
import { findMentions } from '../own/mentions.ts'
import { previewOfMessage } from '../own/message-rules.ts'
import { findMessage, findThreadStart, insertMessage, type MessageRow } from '../message-store.ts'
import { findMemberByReference } from '../../members/store.ts'
import { answerFromReply } from '../../questions/steps/answer.ts'
import { insertParticipants } from '../participant-store.ts'
import { recordPost, type ConversationRow } from '../store.ts'
import { wakeForMessage } from './own/wakes.ts'

export interface Post {
  conversation: ConversationRow
  /** `usr_` or `agt_` id; null for the system. */
  author: { type: 'user' | 'agent' | 'system'; id: ActorRef | null }
  body: string
  /** The request's name for the text; default `body`. */
  textParam?: string
  parentMessageId?: MessageId | null
  source?: MessageSource
  externalRef?: string | null
  attachmentIds?: readonly FileId[]
  /** The caller, who cannot mention what they may not see. */
  caller?: Caller
  world: World
  /** The run whose final text this is. */
  replyOfRun?: RunId
  /** UUID of the responsible person, if the author does not determine it. */
  causedByUuid?: PersonUuid | null
  /** The idempotency key with which `send` sent it. */
  sendKey?: string | null
  /** The agent that gets its turn in another way than by a wake from this message. */
  exceptAgentRef?: AgentRef
}

/**
 * Posts a message in the caller's transaction and wakes those it concerns. The caller must check that the author may
 * post there. Fails with `empty_message`, `secret_in_message`, `parent_not_in_conversation`, `resource_not_found` (an
 * attachment) and `conversation_not_found` (deleted meanwhile).
 */
export async function postMessage(tx: Db, post: Post): Promise<MessageRow> {
  const { conversation, author, world } = post
  checkText(post.body, post.textParam)
  const attachmentIds = await checkedAttachments(tx, post)
  await checkParent(tx, post)
  const now = world.now()
  const id = world.id('msg_')
  const preview = previewOfMessage(post.body)
  const seq = await recordPost(tx, { conversationId: conversation.id, messageId: id, preview, at: now })
  if (seq === null) return fail('conversation_not_found')
  const message: MessageRow = {
    id,
    conversationId: conversation.id,
    seq,
    authorType: author.type,
    authorRef: author.id,
    body: post.body,
    source: post.source ?? 'in_app',
    externalRef: post.externalRef ?? null,
    automationId: await automationOf(tx, post),
    mentions: await findMentions(tx, conversation.workspaceId, { body: post.body, viewer: writerOf(post) }),
    parentMessageId: post.parentMessageId ?? null,
    attachmentIds,
    replyOfRun: post.replyOfRun ?? null,
    turnRun: null,
    sendKey: post.sendKey ?? null,
    editedAt: null,
    deletedAt: null,
    createdAt: now,
    updatedAt: now,
  }
  await insertMessage(tx, message)
  // Whoever comments on a task becomes a participant.
  if (conversation.taskId !== null && author.type !== 'system' && author.id !== null)
    await insertParticipants(tx, conversation.id, { participants: [{ type: author.type, id: author.id }], at: now })
  const isAnswer = await answersQuestion(tx, message, post)
  const { exceptAgentRef, causedByUuid } = post
  const more = {
    ...(exceptAgentRef !== undefined && { exceptAgentRef }),
    ...(causedByUuid !== undefined && { causedByUuid }),
  }
  await wakeForMessage(tx, { conversation, message, world, isAnswer, ...more })
  return message
}

/** The automation behind the run in which an agent writes. */
async function automationOf(tx: Db, { author, caller, replyOfRun }: Post): Promise<AutomationId | null> {
  const runId = caller?.kind === 'agent' ? caller.runId : author.type === 'agent' ? replyOfRun : undefined
  return runId === undefined ? null : findAutomationOfRun(tx, runId)
}

/** A person's reply in the thread of an open question's message answers it, whichever message of the thread it replies to. */
async function answersQuestion(tx: Db, message: MessageRow, { conversation, world }: Post): Promise<boolean> {
  const { parentMessageId, authorType, authorRef, body } = message
  if (parentMessageId === null || authorType !== 'user' || authorRef === null) return false
  const person = await findMemberByReference(tx, conversation.workspaceId, authorRef)
  const threadStart = await findThreadStart(tx, parentMessageId)
  if (person === null || threadStart === null) return false
  const answerer = { personRef: person.publicId, name: person.name }
  return answerFromReply(tx, { threadStart, body, person: answerer, world })
}

/** Fails with `empty_message` or `secret_in_message`. `param`: what the request calls the text. */
export function checkText(body: string, param = 'body'): void {
  if (body.trim() === '') fail('empty_message', { param })
  const secret = secretIn(body)
  if (secret !== null)
    fail('secret_in_message', {
      param,
      message: `The text looks like it holds a secret (${secret}). Nothing was stored.`,
      details: { kind: secret },
    })
}

/** Returns the files that the caller attaches, who needs to see them. Messages without a caller have none. */
async function checkedAttachments(tx: Db, { conversation, caller, attachmentIds = [] }: Post): Promise<FileId[]> {
  if (caller === undefined || attachmentIds.length === 0) return []
  const { workspaceId } = conversation
  return checkAttachments(tx, { workspaceId, viewer: fileViewerOf(caller), ids: attachmentIds })
}

async function checkParent(tx: Db, { conversation, parentMessageId }: Post): Promise<void> {
  if (parentMessageId == null) return
  const parent = await findMessage(tx, parentMessageId)
  if (parent?.conversationId !== conversation.id) fail('parent_not_in_conversation', { param: 'parentMessageId' })
}

export function writerOf({ author, caller }: Pick<Post, 'author' | 'caller'>): Viewer | null {
  if (caller) return viewerOfAgents(caller)
  return author.type === 'agent' ? { seesAll: false, personUuid: null, agentRef: author.id } : null
}
