// How rows are made like one that is there.

export interface Growth {
  count: number
  /** Values of columns, in which `n.i` counts from 1 and `t` is the row that is there; all others are as in that row. */
  set: Readonly<Record<string, string>>
  /** Which row they are like; default: any. null: none is there, and all columns that must be are set. */
  like?: string | null
}

/** Of a column that the database fills. */
export const byDatabase = 'by the database'

const first = 100_000_000_000_000
/** An id of the form that ids have, by its number. */
export const grown = (prefix: string, number: string) => `'${prefix}g' || (${first} + ${number})`
export const grownId = (prefix: string, number: number): string => `${prefix}g${first + number}`
/** Rows that a sweep removes at this time. */
export const future = Date.UTC(2100)
export const uuid = (number: string) => `'00000000-0000-4000-8000-' || (100000000000 + ${number})`

/** How many of each there are. */
export interface Counts {
  agents: number
  projects: number
  tasks: number
  runs: number
  conversations: number
  messages: number
  files: number
  pages: number
  learnings: number
  automations: number
  workflowRuns: number
}

export const usualCounts: Counts = {
  agents: 60,
  projects: 40,
  tasks: 8_000,
  runs: 12_000,
  conversations: 6_000,
  messages: 12_000,
  files: 4_000,
  pages: 5_000,
  learnings: 6_000,
  automations: 100,
  workflowRuns: 4_000,
}
/** Things of which there is more than of others of their kind. */
export const long = {
  run: grownId('run_', 1),
  task: grownId('tsk_', 1),
  conversation: grownId('cnv_', 1),
  file: grownId('file_', 1),
  page: grownId('wik_', 1),
}

export interface Owners {
  workspaceId: string
  /** Has a third of the rows. */
  elsewhere: string
  counts: Counts
}

/** What rows of many tables have in common. */
export function columnsOf({ workspaceId, elsewhere, counts }: Owners) {
  const like = `workspace_id = '${workspaceId}'`
  const workspace_id = `case when n.i % 3 = 0 then '${elsewhere}' else '${workspaceId}' end`
  const created_at = 't.created_at + n.i'
  const times = { created_at, updated_at: created_at }
  const one = (prefix: string, many: number) => grown(prefix, `n.i % ${many} + 1`)
  /** Every fourth is of the same thing. */
  const often = (id: string, prefix: string, many: number) =>
    `case when n.i % 4 = 0 then '${id}' else ${one(prefix, many)} end`
  const agent_id = one('agt_', counts.agents)
  const task_id = often(long.task, 'tsk_', counts.tasks)
  const run_id = grown('run_', 'n.i')
  const file_id = often(long.file, 'file_', counts.files)
  const page_id = often(long.page, 'wik_', counts.pages)
  const ofRun = { workspace_id, run_id, task_id, conversation_id: 'null', agent_id }
  return { like, workspace_id, created_at, times, one, often, agent_id, task_id, run_id, file_id, page_id, ofRun }
}
