import type { FileId, MessageId } from '../lib/ids.ts'
import { idIn } from '../lib/id-schema.ts'
import { z } from 'zod'
import { authorTypes, conversationKinds, messageSources } from './conversation-fields.ts'
import { idPageParams } from './id-paging.ts'
import { automationId, conversationId, messageId, taskId, timestamp } from './ids.ts'
import { listOf, includeParam } from './paging.ts'
import { defineRoute } from './route.ts'
import { fileFlag } from './command.ts'

export const maxAttachments = 20

/** A file that a message names. */
export const attachment = z
  .object({
    id: z.string(),
    name: z.string(),
    contentType: z.string(),
    sizeBytes: z.number().int(),
  })
  .meta({ id: 'Attachment' })
export type Attachment = z.infer<typeof attachment>

/** A person, an agent, or the platform itself. */
export const author = z
  .object({
    type: z.enum(authorTypes),
    id: z.string().nullable().describe('null for the system.'),
  })
  .meta({ id: 'Author' })

export const message = z
  .object({
    object: z.literal('message'),
    id: messageId,
    conversationId,
    taskId: taskId.nullable(),
    author,
    body: z.string().describe('Markdown as it is now; empty once deleted.'),
    source: z.enum(messageSources),
    externalRef: z.string().nullable(),
    automationId: automationId.nullable(),
    mentions: z
      .array(z.object({ type: z.enum(['user', 'agent']), id: z.string() }))
      .describe('Users and agents that the server found @mentioned in the body.'),
    parentMessageId: messageId.nullable(),
    attachments: z.array(attachment).describe('Files that you can see.'),
    editedAt: timestamp.nullable(),
    deletedAt: timestamp.nullable(),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Message' })
export type Message = z.infer<typeof message>

export const named = z.object({ handle: z.string(), name: z.string() })

/** A message has at most this many characters: longer texts belong in files. */
const text = z.string().max(100_000)
/** The text of a request: `body`, or one of its other names. `sentText` returns the one that was sent. */
export const textKeys = {
  body: text.optional().describe('The text, as Markdown.'),
  content: text.optional().describe('Another name for `body`.'),
  text: text.optional().describe('Another name for `body`.'),
}

/** The text of a body with `textKeys`; undefined when none was sent. */
export function sentText(sent: z.infer<z.ZodObject<typeof textKeys>>): string | undefined {
  return sent.body ?? sent.content ?? sent.text
}

/** The name under which that text was sent. */
export const sentTextKey = (sent: { body?: unknown; content?: unknown }): 'body' | 'content' | 'text' =>
  sent.body !== undefined ? 'body' : sent.content !== undefined ? 'content' : 'text'

export const attachmentIds = z
  .array(idIn<FileId>(z.string().min(1).max(100)))
  .max(maxAttachments)
  .optional()
  .describe(`Ids of files, at most ${maxAttachments}.`)
export const parentMessageId = idIn<MessageId>(z.string().min(1).max(100)).describe('The message it replies to.')

/** Flags of a command that sends a text, which is given as a word or read from a file. */
export const textFlags = {
  body: { target: 'body.body' },
  content: null,
  text: null,
  'body-file': fileFlag('body.body', 'the text'),
} as const
export const textPositional = { name: 'text', target: 'body.body', isOptional: true } as const

const conversationParams = z.object({ id: conversationId })
const conversationPositional = { name: 'conversation', target: 'params.id' } as const
const messageParams = z.object({ id: messageId })
const messagePositional = { name: 'message', target: 'params.id' } as const
const exampleConversation = 'cnv_4yI8oP2cLhS6jB0d'
const exampleMessage = 'msg_2kX5vB8nQwE1rT4y'

const aroundCount = (side: string) =>
  z.number().int().min(0).max(100).optional().describe(`With \`around\`: number of messages ${side} it. Default: 12.`)

export const messageRoutes = {
  post: defineRoute({
    id: 'conversations.messages.create',
    endpoint: 'POST /conversations/{id}/messages',
    summary: 'Post a message to a conversation you are in',
    description:
      'In a dm the agent wakes on every message, in a channel only when it is @mentioned. A reply in the thread of an open question answers it.',
    idempotency: 'required',
    params: conversationParams,
    body: z
      .object({
        ...textKeys,
        parentMessageId: parentMessageId.nullable().optional(),
        source: z.enum(messageSources).default('in_app').describe('Where it was written.'),
        externalRef: z.string().min(1).max(500).nullable().optional().describe('Reference to an outside message.'),
        attachmentIds,
      })
      .meta({ id: 'MessageCreate' }),
    reply: message,
    status: 201,
    errors: [
      'conversation_not_found',
      'not_a_participant',
      'empty_message',
      'secret_in_message',
      'parent_not_in_conversation',
    ],
    cli: {
      command: 'conversation message post',
      positionals: [conversationPositional, textPositional],
      flags: {
        ...textFlags,
        parent: { target: 'body.parentMessageId' },
        attach: { target: 'body.attachmentIds', repeatable: true, description: 'Id of a file.' },
      },
      example: `svc conversation message post ${exampleConversation} "The build is green again."`,
    },
  }),

  list: defineRoute({
    id: 'conversations.messages.list',
    endpoint: 'GET /conversations/{id}/messages',
    summary: 'List the messages of a conversation, oldest first',
    description:
      '`around` returns the page around one message: `before` messages older than it and `after` newer ones.',
    params: conversationParams,
    query: z.object({
      ...idPageParams,
      around: z.string().max(200).optional().describe('Id of the message in the middle.'),
      before: aroundCount('before'),
      after: aroundCount('after'),
      includeDeleted: z.boolean().optional().describe('Deleted ones too, without their text.'),
    }),
    reply: listOf(message).extend({
      hasMoreBefore: z.boolean().optional().describe('With `around`: whether there are older ones than these.'),
    }),
    errors: ['conversation_not_found', 'message_not_found'],
    cli: {
      command: 'conversation message list',
      positionals: [conversationPositional],
      example: `svc conversation message list ${exampleConversation} --limit 100`,
    },
  }),

  get: defineRoute({
    id: 'messages.get',
    endpoint: 'GET /messages/{id}',
    summary: 'Read one message',
    params: messageParams,
    query: z.object({ include: includeParam('conversation', 'author', 'editHistory') }),
    queryCodes: { invalid: { include: 'invalid_include' } },
    reply: message.extend({
      author: author.extend(named.partial().shape),
      conversation: z
        .object({ id: conversationId, kind: z.enum(conversationKinds), title: z.string().nullable() })
        .optional()
        .describe('With `include=conversation`.'),
      editHistory: z
        .array(z.object({ body: z.string(), replacedAt: timestamp }))
        .optional()
        .describe('With `include=editHistory`: what it said before the last 100 edits, oldest first.'),
    }),
    errors: ['message_not_found'],
    cli: {
      command: 'conversation message get',
      positionals: [messagePositional],
      example: `svc conversation message get ${exampleMessage} --include editHistory`,
    },
  }),

  edit: defineRoute({
    id: 'messages.edit',
    endpoint: 'POST /messages/{id}',
    summary: 'Change the text of a message you wrote; an edit wakes nobody',
    params: messageParams,
    body: z.object(textKeys).meta({ id: 'MessageEdit' }),
    reply: message,
    errors: ['message_not_found', 'not_authorized', 'message_deleted', 'empty_message', 'secret_in_message'],
    cli: {
      command: 'conversation message edit',
      positionals: [messagePositional, textPositional],
      flags: textFlags,
      example: `svc conversation message edit ${exampleMessage} "The build is red again."`,
    },
  }),

  delete: defineRoute({
    id: 'messages.delete',
    endpoint: 'POST /messages/{id}/delete',
    summary: 'Delete a message: one you wrote, or as a workspace admin any',
    idempotency: 'required',
    params: messageParams,
    reply: message,
    errors: ['message_not_found', 'not_authorized', 'message_deleted'],
    cli: {
      command: 'conversation message delete',
      asks: true,
      positionals: [messagePositional],
      example: `svc conversation message delete ${exampleMessage}`,
    },
  }),
} as const
