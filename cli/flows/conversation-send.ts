import { howItEnded } from '../output/run-ending.ts'
import { backoffMs } from '../../shared/lib/backoff.ts'
import type { CommandContext, Flow } from '../context/context.ts'
import { ApiFailure, CliError } from '../errors/cli-error.ts'
import { exitStatus } from '../errors/exit-codes.ts'
import { parseJsonText } from '../../shared/lib/lines.ts'
import { fieldAt, textAt } from '../replies/fields.ts'
import { callOf } from '../http/route-call.ts'
import type { SseMessage } from '../replies/sse.ts'
import { notOurServer } from '../replies/usable-reply.ts'
import { streamMessages } from '../http/stream.ts'

/**
 * `conversation send`: prints the agent's words as they come (as JSON: one line per message of the stream) and returns
 * how its run ended as the exit status. A stream that breaks is opened again with the id of its last message and the
 * same key, so the text is posted once and nothing of the reply is missed.
 */
export const conversationSend: Flow = async (context) => {
  const client = await context.connect()
  const turn = { lastId: null as string | null, last: null as SseMessage | null, hasText: false }
  const key = context.world.uuid()
  for (let failures = 0; turn.last === null;) {
    const before = turn.lastId
    const headers = {
      Accept: 'text/event-stream',
      'Idempotency-Key': key,
      ...(before === null ? {} : { 'Last-Event-ID': before }),
    }
    try {
      const call = { ...callOf(context), headers }
      for await (const message of streamMessages({ client, world: context.world, call })) take(context, turn, message)
    } catch (error) {
      if (error instanceof ApiFailure && error.status < 500) throw error
      if (error instanceof CliError && error.exit !== 'unreachable') throw error
      if (error instanceof CliError && error.code === notOurServer && turn.lastId === null) throw error
      if (failures >= maxFailures) throw error
      context.out.message(`svc: ${(error as Error).message} Opening the stream again.`)
    }
    if (turn.last !== null) break
    failures = turn.lastId === before ? failures + 1 : 0
    if (failures > maxFailures) throw new Error('The stream ends again and again before the reply does.')
    await context.world.sleep(backoffMs(failures, { minMs: 250, maxMs: 10_000, random: context.world.random() }))
  }
  return finish(context, turn.last, turn.hasText)
}

const maxFailures = 30

interface Turn {
  lastId: string | null
  last: SseMessage | null
  hasText: boolean
}

function take({ out }: CommandContext, turn: Turn, message: SseMessage): void {
  if (message.id !== null) turn.lastId = message.id
  const data = parseJsonText(message.data)
  if (out.format === 'json') out.jsonLine({ event: message.event, data })
  else if (message.event === 'delta') {
    turn.hasText = true
    out.piece(textAt(data, 'text') ?? '')
  }
  if (message.event === 'done' || message.event === 'error') turn.last = message
}

function finish({ out }: CommandContext, last: SseMessage, hasText: boolean): number {
  const data = parseJsonText(last.data)
  if (out.format !== 'json') {
    const reply = textAt(data, 'message', 'body')
    // A harness that sends no deltas has its answer only in the reply.
    if (hasText) out.piece('\n')
    else if (reply !== null) out.text(reply)
  }
  const exitReason = textAt(data, 'exitReason')
  if (last.event === 'done') {
    if (exitReason !== null && exitReason !== 'completed') out.message(`svc: the run ended: ${exitReason}`)
    return exitStatus('ok')
  }
  const status = fieldAt(data, 'status')
  out.message(`svc: ${howItEnded(String(status))}: ${textAt(data, 'error', 'message') ?? exitReason ?? 'not said why'}`)
  return exitStatus(status === 'cancelled' ? 'run_cancelled' : 'run_failed')
}
