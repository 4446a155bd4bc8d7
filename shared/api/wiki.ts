import { z } from 'zod'
import { fileFlag } from './command.ts'
import { taskRef, wikiRevisionId } from './ids.ts'
import { idsParam, listOf, listOrBatchOf, pageParams } from './paging.ts'
import { defineRoute, peopleOnly } from './route.ts'
import {
  embeddingStatus,
  pageKeys,
  pageRef,
  publishChecks,
  publishedRevision,
  wikiPage,
  wikiPageRow,
  wikiPageSummary,
  wikiRelation,
  wikiRevision,
  wikiRevisionWithBody,
  wikiSource,
} from './wiki-fields.ts'

// The wiki: pages of a workspace with their revisions, and how they refer to one another.

const params = z.object({ id: pageRef })
const ofPage = { params, errors: ['wiki_page_not_found'] } as const
const revisionParams = z.object({ id: pageRef, revisionId: wikiRevisionId })
const positionals = [{ name: 'page', target: 'params.id' }] as const
const both = [...positionals, { name: 'other', target: 'body.toPageId' }] as const
const bodyFile = fileFlag('body.body', 'its text')
const paged = { flags: { after: { aliases: ['cursor'] } } } as const
const exampleRevision = 'wrev_8cN3jH6wLzR1pX7s'
const checks =
  'A body that is not published is refused with the code of the first check that fails; `details.failed` has all.'
const archiving = (archived: boolean) => ({
  slug: null,
  archived: { target: 'body.archived', default: archived, hidden: true },
})

export const wikiRoutes = {
  list: defineRoute({
    id: 'wiki.pages.list',
    endpoint: 'GET /wiki/pages',
    summary: 'List the pages of the wiki, newest first, or find them by their words, best first',
    query: z.object({
      archived: z.boolean().optional().describe('Archived pages instead of live ones.'),
      neverPublished: z.boolean().optional().describe('Only those that were never published; false: only others.'),
      q: z
        .string()
        .trim()
        .min(1)
        .max(100)
        .optional()
        .describe('Words of live pages, the last one perhaps only begun: best first, at most 200.'),
      ids: idsParam,
      ...pageParams,
    }),
    reply: listOrBatchOf(wikiPageRow),
    cli: [
      { command: 'wiki list', ...paged, example: 'svc wiki list --archived' },
      {
        command: 'wiki search',
        positionals: [{ name: 'q', target: 'query.q' }],
        flags: { ...paged.flags, archived: null, 'never-published': null },
        example: 'svc wiki search "roll back"',
      },
    ],
  }),

  create: defineRoute({
    id: 'wiki.pages.create',
    endpoint: 'POST /wiki/pages',
    summary: 'Write a new page',
    description: checks,
    body: z
      .object({
        title: pageKeys.title,
        body: pageKeys.body,
        kind: pageKeys.kind.default('markdown').describe('Default `markdown`; `csv` must parse.'),
        slug: pageKeys.slug.optional().describe('Its name in links; default: made from the title.'),
        taskId: taskRef.nullable().optional().describe('The task it is about; within a run, that of the run.'),
        runId: z.string().min(1).max(100).nullable().optional().describe('`run_` id; within a run, that one.'),
      })
      .meta({ id: 'WikiPageCreate' }),
    reply: wikiPage,
    status: 201,
    errors: [
      'resource_not_found',
      'wiki_body_truncated',
      'wiki_citation_style',
      'wiki_page_slug_conflict',
      'wiki_publish_failed',
    ],
    cli: {
      command: 'wiki create',
      flags: {
        'body-file': bodyFile,
        task: { target: 'body.taskId' },
        run: { target: 'body.runId' },
      },
      example: 'svc wiki create --title "How we deploy" --body-file - < deploy.md',
    },
  }),

  get: defineRoute({
    id: 'wiki.pages.get',
    endpoint: 'GET /wiki/pages/{id}',
    summary: 'Read one page with its text',
    ...ofPage,
    reply: wikiPage,
    cli: {
      command: 'wiki get',
      positionals,
      flags: {
        revision: { description: 'Its revision with this `wrev_` id.' },
        out: { aliases: ['o'], description: 'File into which its text is written (`-`: standard output).' },
      },
      flow: true,
      example: 'svc wiki get how-we-deploy --out deploy.md',
    },
  }),

  update: defineRoute({
    id: 'wiki.pages.update',
    endpoint: 'PATCH /wiki/pages/{id}',
    summary: 'Archive a page, unarchive it, or give it another slug',
    callers: peopleOnly,
    params,
    body: z
      .object({ archived: z.boolean().describe('Whether it is archived.'), slug: pageKeys.slug })
      .partial()
      .meta({ id: 'WikiPageUpdate' }),
    reply: wikiPage,
    errors: ['wiki_page_not_found', 'wiki_page_slug_conflict', 'wiki_source_page_immutable'],
    cli: [
      { command: 'wiki archive', positionals, flags: archiving(true), example: 'svc wiki archive how-we-deploy' },
      { command: 'wiki unarchive', positionals, flags: archiving(false), example: 'svc wiki unarchive how-we-deploy' },
      {
        command: 'wiki rename',
        positionals: [...positionals, { name: 'slug', target: 'body.slug' }],
        flags: { archived: null },
        example: 'svc wiki rename how-we-deploy deploying',
      },
    ],
  }),

  delete: defineRoute({
    id: 'wiki.pages.delete',
    endpoint: 'DELETE /wiki/pages/{id}',
    summary: 'Delete a page with all of its revisions; its slug is free again',
    callers: peopleOnly,
    ...ofPage,
    cli: { command: 'wiki delete', asks: true, positionals, example: 'svc wiki delete how-we-deploy' },
  }),

  revisions: defineRoute({
    id: 'wiki.pages.revisions.list',
    endpoint: 'GET /wiki/pages/{id}/revisions',
    summary: 'List the revisions of a page, newest first',
    ...ofPage,
    query: z.object(pageParams),
    reply: listOf(wikiRevision),
    cli: { command: 'wiki history', positionals, ...paged, example: 'svc wiki history how-we-deploy' },
  }),

  publish: defineRoute({
    id: 'wiki.pages.revisions.publish',
    endpoint: 'POST /wiki/pages/{id}/revisions',
    summary: 'Publish a new text of a page',
    description: checks,
    params,
    body: z
      .object({
        body: pageKeys.body,
        title: pageKeys.title.optional().describe('Its new title; its slug stays.'),
        baseRevisionId: wikiRevisionId
          .nullable()
          .optional()
          .describe('The revision that was changed: refused when another one is current by now.'),
        allowShrink: z.boolean().default(false).describe('Takes a text that is much shorter than the current one.'),
      })
      .meta({ id: 'WikiRevisionPublish' }),
    reply: publishedRevision,
    status: 201,
    errors: ['wiki_page_not_found', 'wiki_revision_not_found', ...publishChecks],
    cli: {
      command: 'wiki update',
      positionals,
      flags: {
        'body-file': bodyFile,
        base: { target: 'body.baseRevisionId', aliases: ['base-revision-id'] },
      },
      example: `svc wiki update how-we-deploy --base ${exampleRevision} --body-file - < deploy.md`,
    },
  }),

  revision: defineRoute({
    id: 'wiki.pages.revisions.get',
    endpoint: 'GET /wiki/pages/{id}/revisions/{revisionId}',
    summary: 'Read one revision of a page with its text',
    params: revisionParams,
    reply: wikiRevisionWithBody,
    errors: ['wiki_page_not_found', 'wiki_revision_not_found'],
  }),

  restore: defineRoute({
    id: 'wiki.pages.revisions.restore',
    endpoint: 'POST /wiki/pages/{id}/revisions/{revisionId}/restore',
    summary: 'Publish the text and the title of an earlier revision again, or of one that was never published',
    callers: peopleOnly,
    params: revisionParams,
    reply: publishedRevision,
    errors: ['wiki_page_not_found', 'wiki_revision_not_found', 'wiki_publish_failed'],
    cli: {
      command: 'wiki restore',
      positionals: [
        ...positionals,
        {
          name: 'revision',
          target: 'params.revisionId',
          description: '`wrev_` id; default: the newest that is not current.',
          isOptional: true,
        },
      ],
      flow: true,
      example: `svc wiki restore how-we-deploy ${exampleRevision}`,
    },
  }),

  supersede: defineRoute({
    id: 'wiki.pages.relations.add',
    endpoint: 'POST /wiki/pages/{id}/relations',
    summary: 'Say that a page supersedes another one, which is archived then unless files say what it is',
    callers: peopleOnly,
    params,
    body: z.object({ toPageId: pageRef }).meta({ id: 'WikiRelationAdd' }),
    reply: wikiRelation,
    status: 201,
    errors: ['wiki_page_not_found', 'wiki_relation_self', 'wiki_relation_exists', 'wiki_relation_workspace_mismatch'],
    cli: {
      command: 'wiki supersede',
      positionals: both,
      example: 'svc wiki supersede how-we-deploy how-we-deployed',
    },
  }),

  unsupersede: defineRoute({
    id: 'wiki.pages.relations.remove',
    endpoint: 'DELETE /wiki/pages/{id}/relations',
    summary: 'Take back that a page supersedes another one, which stays archived',
    description: '`toPageId` is sent in the query or in the body.',
    callers: peopleOnly,
    ...ofPage,
    query: z.object({ toPageId: pageRef.optional() }),
    body: z.object({ toPageId: pageRef.optional() }).meta({ id: 'WikiRelationRemove' }),
    cli: {
      command: 'wiki unsupersede',
      positionals: [...positionals, { name: 'other', target: 'query.toPageId' }],
      flags: { 'to-page-id': null },
      example: 'svc wiki unsupersede how-we-deploy how-we-deployed',
    },
  }),

  backlinks: defineRoute({
    id: 'wiki.pages.backlinks',
    endpoint: 'GET /wiki/pages/{id}/backlinks',
    summary: 'List the live pages that link to a page, newest first',
    ...ofPage,
    query: z.object(pageParams),
    reply: listOf(wikiPageSummary),
    cli: { command: 'wiki backlinks', positionals, ...paged, example: 'svc wiki backlinks how-we-deploy' },
  }),

  sources: defineRoute({
    id: 'wiki.pages.sources',
    endpoint: 'GET /wiki/pages/{id}/sources',
    summary: 'List the links in the text of a page, in their order',
    ...ofPage,
    query: z.object(pageParams),
    reply: listOf(wikiSource),
    cli: { command: 'wiki sources', positionals, ...paged, example: 'svc wiki sources how-we-deploy' },
  }),

  embeddingStatus: defineRoute({
    id: 'wiki.embeddingStatus',
    endpoint: 'GET /wiki/embedding-status',
    summary: 'Count the pages that are embedded for search',
    reply: embeddingStatus,
    cli: { command: 'wiki embed-status', example: 'svc wiki embed-status' },
  }),
} as const
