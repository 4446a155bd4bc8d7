import { z } from 'zod'
import { agentId, approvalId, conversationId, learningId, runId, taskId, timestamp, userPublicId } from './ids.ts'
import { bytesOf } from './wiki-fields.ts'

/** Learnings: sourced proposals for the wiki, as clients read and send them. */

export const learningStatuses = ['proposed', 'accepted', 'rejected'] as const

export const learningLimits = {
  topicBytes: 200,
  bullets: 5,
  bulletWords: 25,
  bulletBytes: 1_024,
  sources: 10,
  sourceBytes: 2_048,
  entities: 6,
  entityTypeBytes: 64,
  entityNameBytes: 128,
} as const

const text = (maxBytes: number) =>
  z
    .string()
    .trim()
    .min(1)
    // A character has a byte at least.
    .max(maxBytes)
    .refine((value) => bytesOf(value) <= maxBytes, `has more than ${maxBytes} bytes`)

const wordsOf = (value: string): number => value.split(/\s+/u).filter(Boolean).length

const internalLink = /^pinework:\/\/[a-z][a-z0-9_]{0,63}\/[0-9A-Za-z_-]{1,200}$/

/** What may stand behind a claim: a page of the web by https, or a thing of the workspace. */
export function isSourceUrl(url: string): boolean {
  if (internalLink.test(url)) return true
  if (!/^https:\/\/[^\s/?#@]+/.test(url) || /\s/.test(url)) return false
  return URL.canParse(url) && new URL(url).protocol === 'https:'
}

const sourceUrl = text(learningLimits.sourceBytes).refine(
  isSourceUrl,
  'is neither an https:// URL nor a link as pinework://<object>/<id>',
)

const bulletInput = z.object({
  text: text(learningLimits.bulletBytes)
    .refine(
      (value) => wordsOf(value) <= learningLimits.bulletWords,
      `has more than ${learningLimits.bulletWords} words`,
    )
    .describe(`One instruction, at most ${learningLimits.bulletWords} words.`),
  sources: z
    .array(z.union([sourceUrl, z.object({ url: sourceUrl })]))
    .min(1)
    .max(learningLimits.sources)
    .describe('What it is known from: `https://` URLs, or `pinework://<object>/<id>`.'),
})

const entityInput = z.object({
  type: text(learningLimits.entityTypeBytes).toLowerCase(),
  name: text(learningLimits.entityNameBytes).toLowerCase(),
})

export const learningKeys = {
  topic: text(learningLimits.topicBytes).describe('The one subject of all bullets.'),
  bullets: z.array(bulletInput).min(1).max(learningLimits.bullets).describe('One instruction each, with sources.'),
  entities: z.array(entityInput).max(learningLimits.entities).describe('Tags: what it is about. Stored in lower case.'),
} as const

export const storedBullets = z.array(
  z.object({
    ord: z.number().int(),
    text: z.string(),
    sources: z.array(z.object({ url: z.string(), ord: z.number().int() })),
  }),
)
export const storedEntities = z.array(z.object({ type: z.string(), name: z.string() }))

export const learning = z
  .object({
    object: z.literal('learning'),
    id: learningId,
    topic: z.string(),
    status: z.enum(learningStatuses),
    bullets: storedBullets,
    entities: storedEntities,
    conversationId: conversationId.nullable(),
    createdByAgentId: agentId.nullable().describe('null: a person filed it.'),
    createdByUserId: userPublicId.nullable().describe('Always null.'),
    runId: runId.nullable(),
    taskId: taskId.nullable(),
    approvalId: approvalId.nullable().describe('The `learning_review` approval that decides about it.'),
    rejectedReason: z.string().nullable().describe("The reviewer's note; null unless it is rejected."),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Learning' })
export type Learning = z.infer<typeof learning>
