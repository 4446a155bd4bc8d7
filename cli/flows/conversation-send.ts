import { backoffMs } from '../../shared/lib/backoff.ts'
import type { CommandContext, Flow } from '../context.ts'
import { ApiFailure, CliError } from '../errors/cli-error.ts'
import { exitStatus } from '../errors/exit-codes.ts'
import { fieldAt, parseJsonText, textAt } from '../replies/fields.ts'
import type { Client } from '../http/client.ts'
import { callOf } from '../http/route-call.ts'
import { SseReader, type SseMessage } from '../replies/sse.ts'
import { notOurServer } from '../replies/usable-reply.ts'

/**
 * `conversation send`: prints what the agent says as it comes (as JSON: one line per message of the stream) and tells by
 * the exit status how its run ended. A stream that breaks is opened again with the id of its last message and the same
 * key, so the text is posted once and nothing of the reply is missed.
 */
export const conversationSend: Flow = async (context) => {
  const client = await context.connect()
  const turn = { lastId: null as string | null, last: null as SseMessage | null, hasText: false }
  const key = context.world.uuid()
  for (let failures = 0; turn.last === null;) {
    const before = turn.lastId
    try {
      for await (const message of messagesOf(context, { client, key, lastId: turn.lastId }))
        take(context, turn, message)
    } catch (error) {
      if (error instanceof ApiFailure && error.status < 500) throw error
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
/** The server sends something every 15 s; after this much silence the connection is dead. */
const silenceMs = 45_000

async function* messagesOf(
  context: CommandContext,
  { client, key, lastId }: { client: Client; key: string; lastId: string | null },
): AsyncGenerator<SseMessage> {
  const silence = new AbortController()
  let stopTimer = () => {}
  const listen = () => {
    stopTimer()
    stopTimer = context.world.after(silenceMs, () => silence.abort(new Error('the stream fell silent')))
  }
  listen()
  const headers = {
    Accept: 'text/event-stream',
    'Idempotency-Key': key,
    ...(lastId === null ? {} : { 'Last-Event-ID': lastId }),
  }
  try {
    const response = await client.stream({ ...callOf(context), headers }, silence.signal)
    const reader = new SseReader()
    for await (const chunk of response as AsyncIterable<Buffer>) {
      listen()
      yield* reader.push(chunk)
    }
  } finally {
    stopTimer()
  }
}

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
    // A harness that says nothing on the way has its answer in the reply alone.
    if (hasText) out.piece('\n')
    else if (reply !== null) out.text(reply)
  }
  const exitReason = textAt(data, 'exitReason')
  if (last.event === 'done') {
    if (exitReason !== null && exitReason !== 'completed') out.message(`svc: the run ended: ${exitReason}`)
    return exitStatus('ok')
  }
  const status = fieldAt(data, 'status')
  out.message(`svc: the run ${String(status)}: ${textAt(data, 'error', 'message') ?? exitReason ?? 'not said why'}`)
  return exitStatus(status === 'cancelled' ? 'run_cancelled' : 'run_failed')
}
