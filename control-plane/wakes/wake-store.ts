import type { Knex } from 'knex'
import { z } from 'zod'
import { triggerSources } from '../../shared/api/runs.ts'
import { allowedCall } from '../../shared/runs/spec.ts'
import { int, json, nullableText, nullableTime, text, time, toJson } from '../db/columns.ts'
import { lockRows } from '../db/dialect.ts'
import type { Db } from '../db/open.ts'

/** Wakes that wait to become runs (wakes.ts). */

const row = z
  .object({
    seq: int,
    id: text,
    workspace_id: text,
    agent_id: text,
    trigger_source: z.enum(triggerSources),
    requested_by: nullableText,
    caused_by_user_id: nullableText,
    prompt: text,
    task_id: nullableText,
    conversation_id: nullableText,
    continues_run_id: nullableText,
    allow_calls: json(z.array(allowedCall)),
    wake_key: nullableText,
    state: z.enum(['waiting', 'done']),
    answer: nullableText,
    created_at: time,
    taken_at: nullableTime,
  })
  .transform((r) => ({
    /** Orders what came within one millisecond. */
    seq: r.seq,
    id: r.id,
    workspaceId: r.workspace_id,
    agentId: r.agent_id,
    triggerSource: r.trigger_source,
    requestedBy: r.requested_by,
    causedByUserId: r.caused_by_user_id,
    prompt: r.prompt,
    taskId: r.task_id,
    conversationId: r.conversation_id,
    continuesRunId: r.continues_run_id,
    allowCalls: r.allow_calls,
    key: r.wake_key,
    state: r.state,
    /** What became of it, as JSON. */
    answer: r.answer,
    createdAt: r.created_at,
    takenAt: r.taken_at,
  }))
export type WakeRow = z.infer<typeof row>
export type NewWake = Omit<WakeRow, 'seq' | 'state' | 'answer' | 'takenAt'>

/** False when a wake with this key is there already. */
export async function insertWake(db: Db, wake: NewWake): Promise<boolean> {
  const inserted: unknown[] = await db('wakes')
    .insert({
      id: wake.id,
      workspace_id: wake.workspaceId,
      agent_id: wake.agentId,
      trigger_source: wake.triggerSource,
      requested_by: wake.requestedBy,
      caused_by_user_id: wake.causedByUserId,
      prompt: wake.prompt,
      task_id: wake.taskId,
      conversation_id: wake.conversationId,
      continues_run_id: wake.continuesRunId,
      allow_calls: toJson(wake.allowCalls),
      wake_key: wake.key,
      state: 'waiting',
      created_at: wake.createdAt,
    })
    .onConflict(['workspace_id', 'wake_key'])
    .ignore()
    .returning('id')
  return inserted.length === 1
}

export async function findWake(db: Db, id: string): Promise<WakeRow | null> {
  const found: unknown = await db('wakes').where({ id }).first()
  return found === undefined ? null : row.parse(found)
}

/** Written out: with a bound value SQLite compiles the statement anew each time, for the index has it as a constant. */
const waiting = "state = 'waiting'"

/** The wake if it still waits, locked until the transaction ends; null too when another replica is at it. */
export async function claimWake(db: Db, id: string): Promise<WakeRow | null> {
  const found: unknown[] = await lockRows(db('wakes').where({ id }).whereRaw(waiting), true)
  return found.length === 0 ? null : row.parse(found[0])
}

/** All that waits for one agent in one conversation, oldest first, locked until the transaction ends. */
export async function claimConversationWakes(
  db: Db,
  of: { agentId: string; conversationId: string; taskId: string | null },
): Promise<WakeRow[]> {
  const rowsOf = db('wakes')
    .where({ agent_id: of.agentId, conversation_id: of.conversationId, task_id: of.taskId })
    .whereRaw(waiting)
    .orderBy([{ column: 'created_at' }, { column: 'seq' }])
  const rows: unknown[] = await lockRows(rowsOf)
  return rows.map((each) => row.parse(each))
}

/** All that waits to go on with one run outside of a conversation, oldest first, locked until the transaction ends. */
export async function claimWakesOfRun(
  db: Db,
  of: { agentId: string; continuesRunId: string; taskId: string | null },
): Promise<WakeRow[]> {
  const rowsOf = db('wakes')
    .where({ agent_id: of.agentId, continues_run_id: of.continuesRunId, task_id: of.taskId })
    .whereRaw(waiting)
    .whereNull('conversation_id')
    .orderBy([{ column: 'created_at' }, { column: 'seq' }])
  const rows: unknown[] = await lockRows(rowsOf)
  return rows.map((each) => row.parse(each))
}

/** What waits, oldest first; with `ended` only what may have waited for that run: to go on with it, or to speak after it. */
export async function listWaitingWakes(
  db: Db,
  filter: {
    limit: number
    /** The last one of the page before. */
    after?: Pick<WakeRow, 'createdAt' | 'seq'>
    ended?: { runId: string; conversationId: string | null }
  },
): Promise<WakeRow[]> {
  const query = db('wakes').whereRaw(waiting)
  if (filter.after) void query.whereRaw('(created_at, seq) > (?, ?)', [filter.after.createdAt, filter.after.seq])
  if (filter.ended) {
    const { runId, conversationId } = filter.ended
    void query.where((any) => {
      void any.where({ continues_run_id: runId })
      // The run may have gone on with a session that the wake is for, too.
      void any.orWhere((same) => {
        void same.whereNotNull('continues_run_id')
        void same.where(
          'agent_id',
          (run: Knex.QueryBuilder) => void run.from('runs').select('agent_id').where({ id: runId }),
        )
      })
      if (conversationId !== null) void any.orWhere({ conversation_id: conversationId })
    })
  }
  const rows: unknown[] = await query.orderBy([{ column: 'created_at' }, { column: 'seq' }]).limit(filter.limit)
  return rows.map((each) => row.parse(each))
}

export async function answerWakes(
  db: Db,
  done: { ids: readonly string[]; answer: unknown; at: number },
): Promise<void> {
  await db('wakes')
    .whereIn('id', [...done.ids])
    .update({ state: 'done', answer: toJson(done.answer), taken_at: done.at })
}

/** Wakes that were answered before `before` and are no longer of use. */
export async function removeOldWakes(db: Db, before: number): Promise<number> {
  return db('wakes').where({ state: 'done' }).where('taken_at', '<', before).delete()
}
