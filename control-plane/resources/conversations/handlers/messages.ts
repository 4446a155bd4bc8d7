import { idFrom, type MessageId } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { idCursorOf, idPageOf } from '../../../../shared/api/id-paging.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import { messageRoutes, type Message, sentText, sentTextKey } from '../../../../shared/api/messages.ts'
import type { Db } from '../../../db/open.ts'
import { actorOf, type Caller, hasRole } from '../../../http/callers.ts'
import { answer, implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { viewerOfAgents } from '../../agents/rules.ts'
import { isConversationVisible, participantOnly, readableConversation } from '../lookup.ts'
import { loadNames } from '../names.ts'
import { checkText, postMessage } from '../steps/post.ts'
import { claimConversation, findConversation, recordRemoval, replacePreview, type ConversationRow } from '../store.ts'
import { requiredText } from '../text.ts'
import { findMentions } from '../own/mentions.ts'
import { presentMessages } from '../present-message.ts'
import { previewOfMessage } from '../own/message-rules.ts'
import {
  findLastMessage,
  findMessage,
  listEdits,
  listMessages,
  removeMessage,
  replaceBody,
  type MessageRow,
} from '../message-store.ts'

export function messageHandlers(): ImplementedRoute[] {
  return implement(messageRoutes, {
    async post(input) {
      const { db, caller, params, body, world } = input
      const conversation = await readableConversation(db, caller, params.id)
      await participantOnly(db, caller, conversation)
      const { parentMessageId, source, externalRef, attachmentIds } = body
      const message = await postMessage(db, {
        conversation,
        author: actorOf(caller),
        body: requiredText(sentText(body)),
        textParam: sentTextKey(body),
        source,
        caller,
        world,
        ...(parentMessageId == null ? {} : { parentMessageId }),
        ...(externalRef == null ? {} : { externalRef }),
        ...(attachmentIds === undefined ? {} : { attachmentIds }),
      })
      return answer(201, await presentOne(input, { message, conversation }))
    },

    list,
    get,
    edit,

    async delete(input) {
      const { db, caller, params, world } = input
      const { message, conversation } = await changeableMessage(db, caller, params.id)
      if (message.authorRef !== actorOf(caller).id && !hasRole(caller, 'admin'))
        fail('not_authorized', { message: 'Only who wrote it, or a workspace admin, deletes a message.' })
      const at = world.now()
      if (!(await removeMessage(db, message.id, at))) fail('message_deleted')
      const last = await findLastMessage(db, conversation.id)
      const shown = last && { messageId: last.id, preview: previewOfMessage(last.body) }
      await recordRemoval(db, { conversationId: conversation.id, last: shown, at })
      return presentOne(input, { message: { ...message, deletedAt: at, updatedAt: at }, conversation })
    },
  })
}

async function presentOne(
  { db, caller }: Pick<HandlerInput<typeof messageRoutes.get>, 'db' | 'caller'>,
  { message, conversation }: { message: MessageRow; conversation: ConversationRow },
): Promise<Message> {
  const [shown] = await presentMessages(db, caller, { conversation, messages: [message] })
  return shown!
}

type List = HandlerInput<typeof messageRoutes.list>
const aroundDefault = 12

async function list(input: List) {
  const { db, caller, params, query } = input
  const conversation = await readableConversation(db, caller, params.id)
  if (query.around !== undefined) return listAround(input, conversation)
  const count = query.before === undefined ? (query.after === undefined ? null : 'after') : 'before'
  if (count !== null)
    fail('validation_error', { param: count, message: `\`${count}\` is a number of messages beside \`around\`.` })
  const cursor = idCursorOf(query)
  const at = cursor === null ? null : await findMessage(db, idFrom(cursor.id))
  if (cursor !== null && at?.conversationId !== conversation.id) fail('invalid_cursor', { param: cursor.param })
  const rows = await listMessages(db, {
    conversationId: conversation.id,
    withDeleted: query.includeDeleted === true,
    limit: query.limit,
    ...(cursor === null || at === null ? {} : { place: { direction: cursor.direction, seq: at.seq } }),
  })
  const shown = await presentMessages(db, caller, { conversation, messages: rows })
  const byId = new Map(shown.map((message) => [message.id, message]))
  return idPageOf({ rows, limit: query.limit, cursor, present: ({ id }) => byId.get(id)! })
}

/** The message with the requested number before and after it, oldest first. */
async function listAround({ db, caller, query }: List, conversation: ConversationRow) {
  if (query.startingAfter !== undefined || query.endingBefore !== undefined)
    fail('invalid_cursor', { param: 'around', message: '`around` goes with neither startingAfter nor endingBefore.' })
  const withDeleted = query.includeDeleted === true
  const middle = await findMessage(db, idFrom(query.around ?? ''))
  const isShown = middle !== null && (withDeleted || middle.deletedAt === null)
  if (!isShown || middle.conversationId !== conversation.id) return fail('message_not_found', { param: 'around' })
  const side = async (direction: 'before' | 'after', limit: number) => {
    const place = { direction, seq: middle.seq }
    const rows = await listMessages(db, { conversationId: conversation.id, withDeleted, limit, place })
    return { rows: rows.slice(0, limit), hasMore: rows.length > limit }
  }
  const older = await side('before', query.before ?? aroundDefault)
  const newer = await side('after', query.after ?? aroundDefault)
  const shown = [...older.rows.toReversed(), middle, ...newer.rows]
  const nextCursor = newer.hasMore ? (shown.at(-1)?.id ?? null) : null
  return {
    object: 'list' as const,
    data: await presentMessages(db, caller, { conversation, messages: shown }),
    hasMore: newer.hasMore,
    hasMoreBefore: older.hasMore,
    nextCursor,
    cursor: nextCursor,
  }
}

const includedEdits = 100

async function get({ db, caller, params, query }: HandlerInput<typeof messageRoutes.get>) {
  const { message, conversation } = await readableMessage(db, caller, params.id)
  const shown = await presentOne({ db, caller }, { message, conversation })
  const include = query.include ?? []
  const nameOf = include.includes('author') ? await loadNames(db, conversation.workspaceId, [shown.author]) : null
  const { id, kind, title } = conversation
  // A deleted text must not be readable in its history.
  const isEditsShown = message.deletedAt === null && include.includes('editHistory')
  const edits = isEditsShown ? await listEdits(db, message.id, includedEdits) : []
  return {
    ...shown,
    author: { ...shown.author, ...nameOf?.(shown.author) },
    ...(include.includes('conversation') ? { conversation: { id, kind, title } } : {}),
    ...(include.includes('editHistory')
      ? { editHistory: edits.map(({ body, replacedAt }) => ({ body, replacedAt: toTimestamp(replacedAt) })) }
      : {}),
  }
}

async function edit({ db, caller, params, body, world }: HandlerInput<typeof messageRoutes.edit>) {
  const { message, conversation } = await changeableMessage(db, caller, params.id)
  if (message.authorRef !== actorOf(caller).id)
    fail('not_authorized', { message: 'Only who wrote it changes a message.' })
  if (message.deletedAt !== null) fail('message_deleted')
  const text = requiredText(sentText(body))
  checkText(text, sentTextKey(body))
  if (text === message.body) return presentOne({ db, caller }, { message, conversation })
  const mentions = await findMentions(db, conversation.workspaceId, { body: text, viewer: viewerOfAgents(caller) })
  const at = world.now()
  await replaceBody(db, message, { body: text, mentions, at })
  const preview = previewOfMessage(text)
  await replacePreview(db, { conversationId: conversation.id, messageId: message.id, preview })
  const edited = { ...message, body: text, mentions, editedAt: at, updatedAt: at }
  return presentOne({ db, caller }, { message: edited, conversation })
}

/** A message is visible to those who see its conversation. Fails with `message_not_found`. */
async function readableMessage(
  db: Db,
  caller: Caller,
  id: MessageId,
): Promise<{ message: MessageRow; conversation: ConversationRow }> {
  const message = await findMessage(db, id)
  const conversation = message && (await findConversation(db, message.conversationId))
  const isVisible = conversation !== null && (await isConversationVisible(db, caller, conversation))
  return message !== null && isVisible ? { message, conversation } : fail('message_not_found', { param: 'id' })
}

/**
 * The message to change, with its conversation locked first, as for a post, so that the stored last message stays
 * right.
 */
async function changeableMessage(db: Db, caller: Caller, id: MessageId) {
  const { conversation } = await readableMessage(db, caller, id)
  const gone = () => fail('message_not_found', { param: 'id' })
  const held = (await claimConversation(db, conversation.id)) ?? gone()
  return { conversation: held, message: (await findMessage(db, id)) ?? gone() }
}
