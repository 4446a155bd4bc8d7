import { z } from 'zod'
import { isSourcePath, maxSourcePath, sourceKind } from '../lib/source-path.ts'
import { maxIngestBytes, maxIngestFiles } from '../lib/wiki-limits.ts'
import { defineRoute, mebibyte, peopleOnly } from './route.ts'
import { pageKeys, publishChecks } from './wiki-fields.ts'

// Pages that come from files: which of them the server lacks, and how they are brought.

/** Texts of one request; each is published by itself. */
export const maxIngestBodies = 500

const path = z
  .string()
  .max(maxSourcePath)
  .refine(isSourcePath, 'must be relative, without . and .. and backslashes')
  .refine((text) => sourceKind(text) !== null, 'must end with .md, .markdown or .csv')
  .describe('Of the file, relative to the root.')
const sha256 = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits')
  .describe('Of the bytes of the file, as 64 hex digits.')
// The handler refuses a bad root, with a code of its own.
const root = z.string().max(10_000).describe('The name under which the directory is ingested, such as `docs`.')
const file = z.object({ path, sha256 }).meta({ id: 'WikiIngestFile' })

const unlike = (rows: readonly { path: string }[]): boolean => new Set(rows.map((row) => row.path)).size === rows.length
const twice = 'names a path twice'

const body = {
  bodyLimit: 12 * mebibyte,
  softLimit: { bytes: maxIngestBytes, code: 'wiki_ingest_request_too_large' },
} as const
const errors = ['wiki_ingest_request_too_large', 'wiki_ingest_invalid_root'] as const
const count = z.number().int()

export const wikiIngestRoutes = {
  plan: defineRoute({
    id: 'wiki.ingest.plan',
    endpoint: 'POST /wiki/ingest/plan',
    summary: 'Say which texts of a directory of files the server lacks',
    callers: peopleOnly,
    ...body,
    body: z
      .object({ root, files: z.array(file).max(maxIngestFiles).refine(unlike, twice) })
      .meta({ id: 'WikiIngestPlan' }),
    reply: z
      .object({
        missing: z.array(z.string()).describe('Paths whose texts are to be sent.'),
        archived: z.array(z.string()).describe('Paths whose pages a complete ingest of these files archives.'),
      })
      .meta({ id: 'WikiIngestPlanned' }),
    errors,
  }),

  run: defineRoute({
    id: 'wiki.ingest.run',
    endpoint: 'POST /wiki/ingest',
    summary: 'Bring the texts of files, and with the last of them archive the pages whose files are gone',
    description:
      'A request beyond 8 MiB is refused: send several, each with all `files` and some of `pages`, and `complete` with the last one alone. Without `files`, `pages` are all there are, and the request is complete. Texts that fail a check are kept and not published.',
    callers: peopleOnly,
    ...body,
    body: z
      .object({
        root,
        files: z
          .array(file)
          .max(maxIngestFiles)
          .refine(unlike, twice)
          .optional()
          .describe('All files of the directory; default: those of `pages`.'),
        pages: z
          .array(
            file.extend({
              title: pageKeys.title.optional().describe('Default: its first heading, or the name of the file.'),
              body: pageKeys.body.optional().describe('May be left out where the server has it.'),
            }),
          )
          .max(maxIngestFiles)
          .refine(unlike, twice)
          .refine(
            (pages) => pages.filter((page) => page.body !== undefined).length <= maxIngestBodies,
            `has more than ${maxIngestBodies} texts`,
          ),
        complete: z
          .boolean()
          .optional()
          .describe('Archives the pages of this root whose files are not listed; default: true without `files`.'),
      })
      .meta({ id: 'WikiIngest' }),
    reply: z
      .object({
        created: count,
        updated: count.describe('Pages with a new text, or live again.'),
        archived: count,
        unchanged: count.describe('Listed files whose pages were as they are.'),
        missing: z.array(z.string()).describe('Listed paths whose texts the server still lacks.'),
        failed: z
          .array(z.object({ path: z.string(), checks: z.array(z.enum(publishChecks)) }))
          .describe('Texts that were kept and not published.'),
      })
      .meta({ id: 'WikiIngested' }),
    errors,
    cli: {
      command: 'wiki ingest',
      positionals: [
        { name: 'dir', target: null, default: '.', description: 'The directory: its .md, .markdown and .csv files.' },
      ],
      flags: {
        root: {
          target: 'body.root',
          required: false,
          description: 'The name under which it is ingested; default: that of the directory.',
        },
        'dry-run': { kind: 'boolean', description: 'Tells what would be done, and does nothing.' },
        files: null,
        pages: null,
        complete: null,
      },
      flow: true,
      example: 'svc wiki ingest docs',
    },
  }),
} as const
