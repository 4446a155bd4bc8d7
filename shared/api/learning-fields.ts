import { z } from 'zod'
import { byteLength } from '../lib/byte-length.ts'
import { agentId, approvalId, conversationId, learningId, runId, taskId, timestamp, userPublicId } from './ids.ts'

// Learnings as clients write and read them.

export const learningStatuses = ['proposed', 'accepted', 'rejected'] as const
export const learningLimits = {
  topicBytes: 200,
  bullets: 5,
  bulletWords: 25,
  bulletBytes: 1_024,
  sources: 10,
  sourceBytes: 2_048,
  entities: 6,
  entityBytes: 128,
} as const

/** Text of 1 to `bytes` bytes of UTF-8, without blanks at its ends. */
const boundedText = (bytes: number) =>
  z
    .string()
    .max(bytes * 2)
    .trim()
    .min(1)
    .refine((text) => byteLength(text) <= bytes, `longer than ${bytes} bytes`)

/** Words are separated by any white space. */
const countWords = (text: string): number => text.split(/\s+/u).filter((word) => word !== '').length

const internalLink = /^pinework:\/\/[a-z][a-z0-9_-]*\/[^\s<>/?#\p{Cc}]+$/u
const webLink = /^https:\/\/[^\s<>/?#\\\p{Cc}][^\s<>\p{Cc}]*$/u
const isSource = (url: string): boolean => internalLink.test(url) || (webLink.test(url) && URL.canParse(url))

const sourceUrl = boundedText(learningLimits.sourceBytes)
  .refine(isSource, 'neither an https:// URL with a host nor pinework://<object>/<id>')
  .describe('`https://` URL, or `pinework://<object>/<id>`.')

const bulletInput = z
  .object({
    text: boundedText(learningLimits.bulletBytes)
      .refine((text) => countWords(text) <= learningLimits.bulletWords, `more than ${learningLimits.bulletWords} words`)
      .describe('One instruction, of at most 25 words.'),
    sources: z
      .array(z.union([sourceUrl, z.object({ url: sourceUrl })]))
      .min(1)
      .max(learningLimits.sources)
      .describe('What shows that it is so.'),
  })
  .meta({ id: 'LearningBullet' })

const entityWord = z
  .string()
  .max(learningLimits.entityBytes * 2)
  .trim()
  .toLowerCase()
  .min(1)
  .refine((text) => byteLength(text) <= learningLimits.entityBytes, `longer than ${learningLimits.entityBytes} bytes`)
export const entityKeys = {
  type: entityWord.describe('What kind of thing it is about, for example `repo`.'),
  name: entityWord.describe('Its name; kept in lower case.'),
} as const

const entityInput = z.object(entityKeys).meta({ id: 'LearningEntity' })

export type BulletInput = z.infer<typeof bulletInput>

export const learningKeys = {
  topic: boundedText(learningLimits.topicBytes)
    .regex(/^\P{Cc}*$/u, 'no control characters')
    .describe('The one subject of all bullets.'),
  bullets: z.array(bulletInput).min(1).max(learningLimits.bullets).describe('What was learned.'),
  entities: z.array(entityInput).max(learningLimits.entities).describe('What it is about.'),
} as const

/** A bullet as it is stored; its place and those of its sources are their numbers. */
export const storedBullet = z.object({ text: z.string(), sources: z.array(z.string()) })
export type Bullet = z.infer<typeof storedBullet>
export type Entity = z.infer<z.ZodObject<typeof entityKeys>>

export const learning = z
  .object({
    object: z.literal('learning'),
    id: learningId,
    topic: z.string(),
    status: z.enum(learningStatuses),
    bullets: z.array(
      z.object({
        ord: z.number().int().describe('From 0.'),
        text: z.string(),
        sources: z.array(z.object({ url: z.string(), ord: z.number().int() })),
      }),
    ),
    entities: z.array(z.object({ type: z.string(), name: z.string() })),
    conversationId: conversationId
      .nullable()
      .describe('null also when you do not see it; so are the run and the task.'),
    createdByAgentId: agentId.nullable().describe('null when a person filed it.'),
    createdByUserId: userPublicId.nullable().describe('Always null at present.'),
    runId: runId.nullable(),
    taskId: taskId.nullable().describe('The task on which it was learned.'),
    approvalId: approvalId.nullable().describe('Whoever resolves it accepts or rejects the learning.'),
    rejectedReason: z.string().nullable(),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Learning' })
export type Learning = z.infer<typeof learning>
