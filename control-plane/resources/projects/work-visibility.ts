import type { PersonRef, PersonUuid } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import type { Db } from '../../db/open.ts'
import type { Caller } from '../../http/callers.ts'
import { viewerOfAgents } from '../agents/rules.ts'
import { onlyGranted, type GrantedAgent } from './visibility.ts'

// Rules of who sees the work of agents: runs, and what these ask and note. People see it who see the agent and what it works
// on: a private project's task, a dm, the private agent itself. Its agent, and that agent's owner, see all of its work.

/** A viewer who does not see everything; a person or an agent. */
export type WorkViewer = { personUuid: PersonUuid; personRef: PersonRef } | GrantedAgent

/** The tables of work; `r` is `runs` in a query that joins them. All have `agent_id`, `task_id` and `conversation_id`. */
type WorkTable = 'runs' | 'r' | 'removed_runs' | 'approvals' | 'questions' | 'learnings'

/** The viewer for whom a list is made; undefined: they see everything. */
export function workViewerOf(caller: Caller): WorkViewer | undefined {
  if (caller.kind === 'agent') return { agentRef: caller.agentRef, agentUuid: caller.agentUuid }
  return viewerOfAgents(caller).seesAll ? undefined : { personUuid: caller.personUuid, personRef: caller.personRef }
}

/** Keeps the rows that are of work which this viewer sees. */
export function onlyVisibleWork(
  query: Knex.QueryBuilder,
  { viewer, table }: { viewer: WorkViewer; table: WorkTable },
): void {
  void query.where((any) => {
    if ('agentRef' in viewer) void any.where(`${table}.agent_id`, viewer.agentRef)
    else
      void any.whereIn(
        `${table}.agent_id`,
        (own) => void own.from('agents').select('id').where({ owner_user_id: viewer.personUuid }),
      )
    void any.orWhere((open) => {
      void open
        .whereNotExists((hidden) => privateAgent(hidden, table))
        .whereNotExists((hidden) => hiddenTask(hidden, { viewer, table }))
        .whereNotExists((hidden) => hiddenDm(hidden, { viewer, table }))
    })
  })
}

/** Returns whether the caller sees this row of work. */
export async function seesWork(
  db: Db,
  caller: Caller,
  { table, id }: { table: Exclude<WorkTable, 'r'>; id: string },
): Promise<boolean> {
  const viewer = workViewerOf(caller)
  if (viewer === undefined) return true
  const query = db(table).where(`${table}.id`, id)
  onlyVisibleWork(query, { viewer, table })
  return (await query.first('id')) !== undefined
}

function privateAgent(query: Knex.QueryBuilder, table: WorkTable): void {
  void query
    .from('agents')
    .select('agents.id')
    .whereRaw(`agents.id = ${table}.agent_id`)
    .where({ visibility: 'private' })
}

/** Selects the task of a row if it belongs to a private project that the viewer does not see, and is not assigned to them. */
export function hiddenTask(
  query: Knex.QueryBuilder,
  {
    viewer,
    table,
  }: { viewer: { personUuid: PersonUuid } | GrantedAgent; table: WorkTable | 'workflow_runs' | 'conversations' },
): void {
  void query
    .from('tasks')
    .join('projects', 'projects.id', 'tasks.project_id')
    .select('tasks.id')
    .whereRaw(`tasks.id = ${table}.task_id`)
    .where('projects.visibility', 'private')
  lookedUpByRow(query, `${table}.task_id`)
  if ('personUuid' in viewer) void query.where((other) => isNot(other, 'projects.owner_user_id', viewer.personUuid))
  else
    void query
      .where((other) => isNot(other, 'tasks.assignee_agent_id', viewer.agentRef))
      .whereNotIn('projects.id', (seen) => onlyGranted(seen.from('projects').select('id'), viewer))
}

/**
 * Has the rows looked for one after another. PostgreSQL would look for those of all workspaces at once, for a page of a list: it
 * reckons with all rows of the list. It does so where nothing but an equality links an `exists` to the row.
 */
function lookedUpByRow(query: Knex.QueryBuilder, column: string): void {
  void query.whereNotNull(column)
}

function isNot(query: Knex.QueryBuilder, column: string, value: string): void {
  void query.whereNull(column).orWhereNot(column, value)
}

/** Selects the conversation of a row if it is a dm, of no task, in which the viewer does not take part. */
function hiddenDm(query: Knex.QueryBuilder, { viewer, table }: { viewer: WorkViewer; table: WorkTable }): void {
  const self =
    'personUuid' in viewer
      ? { type: 'user', subject_id: viewer.personRef }
      : { type: 'agent', subject_id: viewer.agentRef }
  void query
    .from('conversations')
    .select('conversations.id')
    .whereRaw(`conversations.id = ${table}.conversation_id`)
    .where({ kind: 'dm' })
    .whereNull('task_id')
    .whereNotExists((own) => {
      void own
        .from('conversation_participants')
        .select('subject_id')
        .whereRaw('conversation_participants.conversation_id = conversations.id')
        .where(self)
    })
  lookedUpByRow(query, `${table}.conversation_id`)
}
