import type { AgentRef, ConversationId, RunId, TaskId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { triggerSources } from '../../../shared/api/runs.ts'
import { allowedCall } from '../../../shared/runs/spec.ts'
import { int, json, nullableText, nullableTime, text, time, toJson } from '../../db/columns.ts'
import { actorRef, agentRef, conversationId, personUuid, runId, taskId, workspaceUuid } from '../../db/id-columns.ts'
import { deleteInBatches, lockRows } from '../../db/dialect.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

// Wakes that wait to become runs (wakes.ts).

const wakes = table(
  'wakes',
  {
    /** Orders what came within one millisecond. */
    seq: int,
    id: text,
    workspaceId: workspaceUuid,
    agentRef,
    triggerSource: z.enum(triggerSources),
    requestedByRef: actorRef.nullable(),
    causedByUuid: personUuid.nullable(),
    wordsBy: json(z.array(personUuid.nullable())),
    prompt: text,
    taskId: taskId.nullable(),
    conversationId: conversationId.nullable(),
    parentRunId: runId.nullable(),
    allowCalls: json(z.array(allowedCall)),
    key: nullableText,
    state: z.enum(['waiting', 'done']),
    /** The answer to the wake, as JSON. */
    answer: nullableText,
    createdAt: time,
    takenAt: nullableTime,
  },
  {
    columns: {
      agentRef: 'agent_id',
      requestedByRef: 'requested_by',
      causedByUuid: 'caused_by_user_id',
      key: 'wake_key',
      parentRunId: 'continues_run_id',
    },
  },
)
export type WakeRow = RowOf<typeof wakes>
export type NewWake = Omit<WakeRow, 'seq' | 'state' | 'answer' | 'takenAt'>

const idOnly = z.object({ id: text })

/** A few hundred at most. Returns the ids of those whose key no other wake has. */
export async function insertWakes(db: Db, rows: readonly NewWake[]): Promise<Set<string>> {
  if (rows.length === 0) return new Set()
  const inserted: unknown[] = await db('wakes')
    .insert(rows.map((wake) => wakes.toColumns({ ...wake, state: 'waiting' })))
    .onConflict(['workspace_id', 'wake_key'])
    .ignore()
    .returning('id')
  return new Set(inserted.map((row) => idOnly.parse(row).id))
}

export async function findWake(db: Db, id: string): Promise<WakeRow | null> {
  return wakes.first(wakes.from(db).where({ id }))
}

/** The condition is written out: with a bound value SQLite compiles the statement anew each time, for the index has it as a constant. */
const waiting = "state = 'waiting'"

/** The wake if it still waits, locked until the transaction ends; null too when another replica is at it. */
export async function claimWake(db: Db, id: string): Promise<WakeRow | null> {
  return wakes.first(lockRows(wakes.from(db).where({ id }).whereRaw(waiting), true))
}

/** Lists the wakes that wait for one agent in one conversation, oldest first, `limit` at most, locked until the transaction ends. */
export async function claimConversationWakes(
  db: Db,
  of: { agentRef: AgentRef; conversationId: ConversationId; taskId: TaskId | null; limit: number },
): Promise<WakeRow[]> {
  const rowsOf = wakes
    .from(db)
    .where({ agent_id: of.agentRef, conversation_id: of.conversationId, task_id: of.taskId })
    .whereRaw(waiting)
    .orderBy(['created_at', 'seq'])
    .limit(of.limit)
  return wakes.list(lockRows(rowsOf))
}

/** Lists all wakes that wait to go on with one run outside of a conversation, oldest first, locked until the transaction ends. */
export async function claimWakesOfRun(
  db: Db,
  of: { agentRef: AgentRef; parentRunId: RunId; taskId: TaskId | null },
): Promise<WakeRow[]> {
  const rowsOf = wakes
    .from(db)
    .where({ agent_id: of.agentRef, continues_run_id: of.parentRunId, task_id: of.taskId })
    .whereRaw(waiting)
    .whereNull('conversation_id')
    .orderBy(['created_at', 'seq'])
  return wakes.list(lockRows(rowsOf))
}

const { seq, id, workspaceId, createdAt, conversationId: inConversation, taskId: ofTask, parentRunId } = wakes.columns
/** The columns by which wakes are found: their prompts together would not fit into memory. */
const listed = table(
  'wakes',
  { seq, id, workspaceId, createdAt, conversationId: inConversation, taskId: ofTask, parentRunId },
  { columns: { parentRunId: 'continues_run_id' } },
)
export type ListedWake = RowOf<typeof listed>

const waitingAfter = (and: string) =>
  listed.query(`where ${waiting} and (created_at, seq) > (?, ?) ${and} order by created_at, seq limit ?`)
const allWaiting = waitingAfter('')
// The run may have gone on with a session that a wake is for, too.
const waitingFor = waitingAfter(
  `and (
     continues_run_id = ?
     or (continues_run_id is not null and agent_id = (select agent_id from runs where id = ?))
     or conversation_id = ?
   )`,
)

/** Wakes that wait, oldest first. `ended`: only those that may have waited for that run, to continue it or to speak after it. */
export async function listWaitingWakes(
  db: Db,
  filter: {
    limit: number
    /** The last one of the page before. */
    after?: Pick<WakeRow, 'createdAt' | 'seq'>
    ended?: { runId: RunId; conversationId: ConversationId | null }
  },
): Promise<ListedWake[]> {
  const { limit, after, ended } = filter
  const from = [after?.createdAt ?? -1, after?.seq ?? -1]
  if (ended === undefined) return allWaiting.list(db, [...from, limit])
  const { runId, conversationId } = ended
  // An empty id matches no conversation.
  return waitingFor.list(db, [...from, runId, runId, conversationId ?? '', limit])
}

const waitingByIds = listed.query(`where ${waiting} and id in ? order by created_at, seq`)

/** The ones of these wakes that wait, oldest first. */
export async function listWakesToTake(db: Db, ids: readonly string[]): Promise<ListedWake[]> {
  return waitingByIds.list(db, [ids])
}

export async function answerWakes(
  db: Db,
  done: { ids: readonly string[]; answer: unknown; at: number },
): Promise<void> {
  await db('wakes')
    .whereIn('id', [...done.ids])
    .update(wakes.toColumns({ state: 'done', answer: toJson(done.answer), takenAt: done.at }))
}

const refusal = z.object({ kind: z.literal('not_dispatched'), reason: text, message: text })

/** Returns why the last of these wakes, given by their keys, was not let through; null: it was, or there is none. */
export async function findRefusedWake(
  db: Db,
  { workspaceId, keys }: { workspaceId: WorkspaceUuid; keys: readonly string[] },
): Promise<z.output<typeof refusal> | null> {
  const answered = wakes
    .from(db)
    .where({ workspace_id: workspaceId, state: 'done' })
    .whereIn('wake_key', [...keys])
  const last = await wakes.first(answered.orderByRaw('taken_at desc, seq desc'))
  return last?.answer == null ? null : (refusal.safeParse(JSON.parse(last.answer)).data ?? null)
}

/** Wakes that were answered before `before` and are no longer of use. */
export async function removeOldWakes(db: Db, before: number): Promise<number> {
  return deleteInBatches(db, 'wakes', db('wakes').where({ state: 'done' }).where('taken_at', '<', before))
}
