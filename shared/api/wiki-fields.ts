import { z } from 'zod'
import { byteLength } from '../lib/byte-length.ts'
import { asPageSlug, maxSlugLength } from '../lib/page-slug.ts'
import { maxPageBytes } from '../lib/wiki-limits.ts'
import { runId, taskId, timestamp, wikiPageId, wikiRevisionId } from './ids.ts'
import { refersTo } from './references.ts'

// The wiki as clients read it.

/** Links of one body that are stored; what is beyond them is no source and no backlink. */
export const maxPageLinks = 1_000
export const maxLinkChars = 2_048
export const pageKinds = ['markdown', 'csv'] as const
export type PageKind = (typeof pageKinds)[number]

/** The checks of a body before it is published, in the order in which the first that fails is the answer's code. */
export const publishChecks = [
  'wiki_stale_base_revision',
  'wiki_body_truncated',
  'wiki_body_shrunk',
  'wiki_citation_style',
  'wiki_publish_failed',
] as const
export type PublishCheck = (typeof publishChecks)[number]

/** Path and body keys that name a page: never malformed, only unknown. */
export const pageRef = refersTo(
  z.string().min(1).max(maxSlugLength).describe('A page: `wik_` id or slug.'),
  'wiki page',
  'a `wik_` id, or a slug',
)

export const pageKeys = {
  title: z
    .string()
    .trim()
    .min(1)
    .max(300)
    .regex(/^[^\p{Cc}]+$/u, 'no control characters')
    .describe('Its title.'),
  body: z
    .string()
    // A character has a byte at least.
    .max(maxPageBytes)
    .refine((text) => byteLength(text) <= maxPageBytes, `has more than ${maxPageBytes} bytes`)
    .describe(`Its text, at most ${maxPageBytes} bytes.`),
  kind: z.enum(pageKinds),
  slug: z
    .string()
    .min(1)
    .max(maxSlugLength)
    .refine((text) => asPageSlug(text) !== null, 'has other characters than letters, digits, - and _')
    .describe('Letters, digits, `-` and `_`.'),
} as const

const named = z.object({ id: wikiPageId, slug: z.string(), title: z.string() })

export const wikiPageSummary = z
  .object({
    object: z.literal('wiki_page'),
    id: wikiPageId,
    slug: z.string(),
    title: z.string(),
    kind: pageKeys.kind,
    archivedAt: timestamp.nullable(),
    sourceRef: z.string().nullable().describe('The path of the file from which it comes.'),
    currentRevisionId: wikiRevisionId.nullable().describe('null: never published.'),
    isPublished: z.boolean().describe('false: readers have not seen a text of it yet.'),
    tokenCount: z.number().int().nullable().describe('About what reading it costs.'),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'WikiPageSummary' })
export type WikiPageSummary = z.infer<typeof wikiPageSummary>

const pageMatch = z
  .object({
    heading: z.string().describe('The headings above it, the highest first, as in `Deploy > Roll back`.'),
    text: z.string().describe('As the page has it.'),
    offset: z.number().int().describe('Where it begins in the text of the page, in UTF-16 units.'),
    ranges: z
      .array(z.object({ start: z.number().int(), end: z.number().int() }))
      .describe(
        'Where words of the search stand in it, in UTF-16 units; none when the page is about it in other words.',
      ),
  })
  .meta({ id: 'WikiPageMatch' })

export const wikiPageRow = wikiPageSummary
  .extend({
    match: pageMatch.nullable().optional().describe('With `q`: the best place of the page; null when it has no text.'),
  })
  .meta({ id: 'WikiPageRow' })

export const wikiPage = wikiPageSummary
  .extend({
    body: z.string().nullable().describe('null: never published.'),
    supersedes: z.array(named).describe('Live pages only.'),
    supersededBy: z.array(named).describe('Live pages only.'),
  })
  .meta({ id: 'WikiPage' })
export type WikiPage = z.infer<typeof wikiPage>

export const wikiRevision = z
  .object({
    object: z.literal('wiki_revision'),
    id: wikiRevisionId,
    pageId: wikiPageId,
    title: z.string(),
    baseRevisionId: wikiRevisionId.nullable().describe('The revision that was current before.'),
    sourceRef: z.string().nullable(),
    author: z.object({ type: z.enum(['user', 'agent']), id: z.string(), name: z.string() }),
    taskId: taskId.nullable().describe('The task on which it was written; null also when you do not see it.'),
    runId: runId.nullable().describe('null also when you do not see it.'),
    tokenCount: z.number().int(),
    isPublished: z.boolean().describe('Whether it is or was what readers see.'),
    failedChecks: z.array(z.enum(publishChecks)).describe('Why it was not published.'),
    createdAt: timestamp,
  })
  .meta({ id: 'WikiRevision' })
export type WikiRevision = z.infer<typeof wikiRevision>

export const wikiRevisionWithBody = wikiRevision.extend({ body: z.string() }).meta({ id: 'WikiRevisionWithBody' })

export const publishedRevision = wikiRevisionWithBody
  .extend({ page: wikiPageSummary.describe('The page as it is now.') })
  .meta({ id: 'WikiPublishedRevision' })

export const wikiRelation = z
  .object({
    object: z.literal('wiki_relation'),
    kind: z.literal('supersedes'),
    fromPageId: wikiPageId,
    toPageId: wikiPageId,
    createdAt: timestamp,
  })
  .meta({ id: 'WikiRelation' })
export type WikiRelation = z.infer<typeof wikiRelation>

export const wikiSource = z
  .object({
    object: z.literal('wiki_source'),
    ord: z.number().int().describe('Its place in the body, from 0.'),
    url: z.string().describe('As it is written; `/wiki/<slug>` for `[[slug]]`.'),
    text: z.string(),
    page: named
      .extend({ archivedAt: timestamp.nullable() })
      .nullable()
      .describe('The page to which it leads; null when it leads elsewhere or there is none.'),
  })
  .meta({ id: 'WikiSource' })
export type WikiSource = z.infer<typeof wikiSource>

export const embeddingStatus = z
  .object({
    object: z.literal('wiki_embedding_status'),
    isConfigured: z.boolean().describe('Whether this server has a model for embeddings.'),
    pages: z.number().int().describe('Live pages that were published.'),
    embeddedPages: z.number().int().describe('Those of them whose current text is embedded as a whole.'),
    chunks: z.number().int().describe('The pieces of their texts.'),
    embeddedChunks: z.number().int().describe('Those of them that are embedded.'),
  })
  .meta({ id: 'WikiEmbeddingStatus' })
