import type { RunId } from '../../../../shared/lib/ids.ts'
import { outputData } from '../../../../shared/runs/events.ts'
import { encodeCursor } from '../../../../shared/lib/cursor.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import type { StreamMessage } from '../../../http/sse.ts'
import type { Bus } from '../../../db/bus.ts'
import { presentMessages } from '../present-message.ts'
import { findReplyOfRun, type MessageRow } from '../message-store.ts'
import type { AnswerRoom } from '../../../http/answer-room.ts'
import { followRun } from '../../runs/follow.ts'
import { findRun } from '../../runs/store.ts'
import type { ConversationRow } from '../store.ts'

/**
 * A turn as a stream: `message`, `run`, `delta`..., and `done` or `error` as the last. The id of a message says how far
 * its reader has got, as (message, number): -1 after `message`, else the run's last event that was sent. It is read
 * from the run's log, so the same position gives the same rest on every replica.
 */
export type TurnPlace = 'start' | number

export interface TurnOptions {
  /** The root handle: the stream outlives every transaction. */
  db: Db
  bus: Pick<Bus, 'on' | 'onSignal'>
  world: World
  signal: AbortSignal
  room: AnswerRoom
  /** The one who reads it. */
  caller: Caller
  conversation: ConversationRow
  message: MessageRow
  runId: RunId
  place: TurnPlace
}

export async function* followTurn(options: TurnOptions): AsyncGenerator<StreamMessage> {
  const { db, message, runId, place } = options
  const idAt = (seq: number) => encodeCursor([message.id, seq])
  if (place === 'start') yield { id: idAt(-1), event: 'message', data: await shown(options, message) }
  const afterSeq = place === 'start' || place < 0 ? 0 : place
  if (place === 'start' || place < 0) yield { id: idAt(0), event: 'run', data: await runFacts(db, runId) }
  let seq = afterSeq
  for await (const { event, data } of followRun({ ...options, afterSeq })) {
    if (event === 'end') {
      yield { id: idAt(seq), ...(await lastWord(options)) }
      return
    }
    const told = data as { seq: number; data: Record<string, unknown> }
    seq = told.seq
    if (event === 'started') yield { id: idAt(seq), event: 'run', data: await runFacts(db, runId) }
    if (event !== 'text' || told.data['parentToolCallId'] !== undefined) continue
    const text = textOf(told.data)
    if (text !== '') yield { id: idAt(seq), event: 'delta', data: { runId, seq, text } }
  }
}

async function shown({ db, caller, conversation }: TurnOptions, message: MessageRow) {
  const [one] = await presentMessages(db, caller, { conversation, messages: [message] })
  return one!
}

async function runFacts(db: Db, runId: RunId) {
  const run = await findRun(db, runId)
  return { runId, status: run?.status ?? null, agentId: run?.agentRef ?? null }
}

/** Output that is not text, with unreadable bytes replaced. */
function textOf(data: Record<string, unknown>): string {
  const parsed = outputData.safeParse(data)
  if (!parsed.success) return ''
  const { text, base64 } = parsed.data
  return text ?? (base64 === undefined ? '' : Buffer.from(base64, 'base64').toString('utf8'))
}

async function lastWord(options: TurnOptions) {
  const { db, runId } = options
  const [run, reply] = [await findRun(db, runId), await findReplyOfRun(db, runId)]
  const [status, exitReason] = [run?.status ?? null, run?.exitReason ?? null]
  const message = reply && (await shown(options, reply))
  if (status === 'succeeded') return { event: 'done', data: { runId, status, exitReason, message } }
  const why = run?.errorMessage ?? `The run ${status ?? 'is gone'}: ${exitReason ?? 'not said why'}.`
  const error = { code: run?.errorCode ?? exitReason ?? 'error', message: why }
  return { event: 'error', data: { runId, status, exitReason, error, message } }
}
