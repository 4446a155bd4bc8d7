import type { Walk } from './asked.ts'

/** Walks that may be, each with its reason. */
export interface Exception {
  /** What was done: `GET /tasks?q=`, the id of a route that writes, or `sweeps`. */
  on: RegExp
  tables: readonly string[]
  /** Default: both. */
  database?: 'sqlite' | 'postgres'
  why: string
}

export const exceptions: readonly Exception[] = [
  {
    on: /^GET .*[?&]q=/,
    tables: ['tasks', 'conversations', 'files'],
    why: 'A text within a text has no index; the search has, and is asked by words. It ends where the page is full.',
  },
  {
    on: /workspaces\/stats|workspaces\.stats/,
    tables: ['tasks', 'files', 'wiki_pages', 'learnings'],
    why: 'It answers how many there are.',
  },
  {
    on: /workflows\/records|workflows\.records/,
    tables: ['workflow_runs'],
    why: 'It answers how many runs each has, which it counts in the index alone.',
  },
  {
    on: /embedding-status|embeddingStatus/,
    tables: ['search_chunks', 'wiki_pages'],
    why: 'It answers how many there are.',
  },
  {
    on: /^GET \/automations\/runs\?.*status=(?:failed|cancelled|succeeded)/,
    tables: ['automation_fires'],
    database: 'sqlite',
    why: 'The order is that of the fires, and how a run ended is of the run. It ends where the page is full; what is live is looked up by itself.',
  },
  {
    on: /^GET \/learnings\?(?!.*entityName).*entityType=/,
    tables: ['learning_entities'],
    database: 'sqlite',
    why: 'There are a few types, so that a type alone names a large part of all learnings.',
  },
  {
    on: /^GET \/conversations/,
    tables: ['messages'],
    why: 'It answers how many messages of a conversation somebody has not read, and counts up to 1,000.',
  },
  {
    on: /wiki\.ingest\.run/,
    tables: ['wiki_pages'],
    database: 'postgres',
    why: 'It looks for hundreds of slugs at once; where there are many more pages PostgreSQL does so by the index.',
  },
  {
    on: /runs|events/,
    tables: ['run_frames'],
    database: 'sqlite',
    why: 'A largest number is one step in an index, and a part of a statement with a limit ends there; the plan says neither.',
  },
  {
    on: /^retention$/,
    tables: ['run_frames'],
    database: 'sqlite',
    why: 'Of the events of a removed run a few go at a time, which the plan does not say.',
  },
  {
    on: /^retention$/,
    tables: ['file_relations'],
    database: 'sqlite',
    why: 'What a file was put to in the time of one version is a range of the index, and the first ends it.',
  },
]

export const isExcused = (walk: Walk, { on, tables }: Exception): boolean =>
  on.test(walk.asked.on) && tables.includes(walk.table)
