import { count, flag, person, ref, say, status, text, thing, time, word, type Look, type Looks } from './look.ts'

// The wiki and learnings.

const page: Look = {
  columns: [
    ['SLUG', ref('slug')],
    ['TITLE', text('title')],
    ['UPDATED', time('updatedAt')],
    ['PUBLISHED', flag('isPublished', 'yes', 'no')],
    ['TOKENS', count('tokenCount')],
    ['ID', ref('id')],
  ],
  title: text('title'),
  under: [ref('slug'), flag('isPublished', 'published', 'not published'), word('kind')],
  facts: [
    ['ID', ref('id')],
    ['Tokens', count('tokenCount')],
    ['Revision', ref('currentRevisionId')],
    ['Source', ref('sourceRef')],
    ['Created', time('createdAt')],
    ['Changed', time('updatedAt')],
    ['Archived', time('archivedAt')],
  ],
}

const revision: Look = {
  columns: [
    ['ID', ref('id')],
    ['TITLE', text('title')],
    ['AUTHOR', person('author')],
    ['WHEN', time('createdAt')],
    ['PUBLISHED', flag('isPublished', 'yes', 'no')],
    ['FAILED CHECKS', word('failedChecks')],
    ['TOKENS', count('tokenCount')],
  ],
  title: text('title'),
  under: [flag('isPublished', 'published', 'not published'), person('author'), time('createdAt')],
  facts: [
    ['ID', ref('id')],
    ['Page', ref('pageId')],
    ['Based on', ref('baseRevisionId')],
    ['Failed checks', word('failedChecks')],
    ['Task', thing('task', 'taskId')],
    ['Run', ref('runId')],
  ],
}

const learning: Look = {
  columns: [
    ['ID', ref('id')],
    ['STATUS', status('status')],
    ['TOPIC', text('topic')],
    ['ABOUT', text('entities.name')],
    ['WHEN', time('createdAt')],
    ['BY', person('createdByAgentId', 'createdByUserId')],
  ],
  title: text('topic'),
  under: [status('status'), person('createdByAgentId', 'createdByUserId'), time('createdAt')],
  facts: [
    ['ID', ref('id')],
    ['About', text('entities.name')],
    ['Approval', ref('approvalId')],
    ['Rejected because', text('rejectedReason')],
    ['Task', thing('task', 'taskId')],
    ['Run', ref('runId')],
    ['Conversation', ref('conversationId')],
    ['Changed', time('updatedAt')],
  ],
  sections: [
    {
      heading: '',
      rows: 'bullets',
      columns: [
        ['NO', count('ord')],
        ['BULLET', text('text')],
        ['SOURCES', text('sources.url')],
      ],
    },
  ],
  next: [
    {
      say: 'svc learning accept {id}',
      more: { word: 'or', say: 'svc learning reject {id}' },
      when: { at: 'status', is: ['proposed'] },
    },
  ],
}

export const wikiLooks: Looks = {
  WikiPageRow: { ...page, columns: [...page.columns, ['FOUND', text('match.text')]] },
  WikiPageSummary: page,
  WikiPage: {
    ...page,
    sections: [
      { heading: '', text: 'body' },
      {
        heading: 'Takes the place of',
        rows: 'supersedes',
        columns: [
          ['SLUG', ref('slug')],
          ['TITLE', text('title')],
        ],
      },
      {
        heading: 'Replaced by',
        rows: 'supersededBy',
        columns: [
          ['SLUG', ref('slug')],
          ['TITLE', text('title')],
        ],
      },
    ],
    next: [{ say: 'svc wiki history {slug}' }],
  },
  WikiRevision: revision,
  WikiPublishedRevision: { ...revision, sections: [{ heading: '', text: 'body' }] },
  WikiRelation: {
    columns: [],
    title: say('{fromPageId} {kind} {toPageId}'),
    facts: [['Since', time('createdAt')]],
  },
  WikiSource: {
    columns: [
      ['NO', count('ord')],
      ['SOURCE', text('text')],
      ['PAGE', ref('page.slug')],
      ['ADDRESS', ref('url')],
    ],
  },
  WikiEmbeddingStatus: {
    columns: [],
    title: flag('isConfigured', 'Embeddings are configured', 'Embeddings are not configured'),
    facts: [
      ['Pages', say('{embeddedPages} of {pages}')],
      ['Chunks', say('{embeddedChunks} of {chunks}')],
    ],
  },
  WikiIngested: {
    columns: [],
    facts: [
      ['Created', count('created')],
      ['Updated', count('updated')],
      ['Archived', count('archived')],
      ['Unchanged', count('unchanged')],
    ],
    sections: [
      { heading: 'Missing', text: 'missing' },
      {
        heading: 'Failed',
        rows: 'failed',
        columns: [
          ['PATH', ref('path')],
          ['CHECKS', word('checks')],
        ],
      },
    ],
  },
  Learning: learning,
}
