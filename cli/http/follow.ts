import type { World } from '../../shared/lib/world.ts'
import { backoffMs } from '../../shared/lib/backoff.ts'
import { ApiFailure, CliError } from '../errors/cli-error.ts'
import { parseJsonText } from '../../shared/lib/lines.ts'
import { textAt } from '../replies/fields.ts'
import type { Client } from '../calls/client.ts'
import { pathSegment } from './path-segment.ts'
import type { SseMessage } from '../replies/sse.ts'
import { notOurServer } from '../replies/usable-reply.ts'
import { streamMessages } from './stream.ts'

/**
 * Follows the events of a run over a stream that may break at any time. It resumes with the id of the last event, so no
 * event is missed or repeated.
 *
 *       connecting --200--> reading --`ended`--> over
 *            ^                 |
 *            |                 v  end of stream, silence, broken connection
 *            +---back off--- asking whether the run is over
 *
 * The question matters because a run that never reached a device has no `ended` event. Such a run is over when a stream
 * that was opened after the answer has ended; otherwise events stored in between would be missed.
 */
export interface FollowOptions {
  client: Client
  world: World
  runId: string
  /** Starts after this event; null: at the first. */
  after: string | null
  signal: AbortSignal
  onEvent(event: unknown): void
  /** Reading pauses until this resolves. */
  drained?(): Promise<void>
  /** Called when the stream has to be opened again. */
  onTrouble?(error: Error): void
}

/** The number of failures in a row, without an event between, after which following fails. */
const maxFailures = 30

interface Place {
  lastId: string | null
  hasBegun: boolean
  hasEnded: boolean
}

/** Resolves when the run is over. Fails with the signal's reason when aborted, and with the server's refusal. */
export async function followRun(options: FollowOptions): Promise<void> {
  const { client, world, signal } = options
  const place: Place = { lastId: options.after, hasBegun: false, hasEnded: false }
  let failures = 0
  let isKnownOver = false
  for (;;) {
    const idBefore = place.lastId
    try {
      await readStream(options, place)
      if (place.hasEnded || isKnownOver) return
      isKnownOver = await isOver(client, options.runId)
      if (isKnownOver) continue
      failures = place.lastId === idBefore ? failures + 1 : 0
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (error instanceof ApiFailure && error.status < 500 && error.status !== 429) throw error
      if (error instanceof CliError && error.exit !== 'unreachable') throw error
      // A network that changed on the way may change back; one in which the stream never began may not.
      if (error instanceof CliError && error.code === notOurServer && !place.hasBegun) throw error
      failures = place.lastId === idBefore ? failures + 1 : 1
      if (failures >= maxFailures) throw error
      options.onTrouble?.(error as Error)
    }
    await world.sleep(backoffMs(failures, { minMs: 250, maxMs: 10_000, random: world.random() }), signal)
  }
}

async function readStream(options: FollowOptions, place: Place): Promise<void> {
  const { client, world, signal } = options
  const call = {
    method: 'GET',
    path: `/api/v1/runs/${pathSegment(options.runId)}/events`,
    headers: {
      Accept: 'text/event-stream',
      ...(place.lastId === null ? {} : { 'Last-Event-ID': place.lastId }),
    },
  }
  const onOpen = () => (place.hasBegun = true)
  for await (const message of streamMessages({ client, world, call, signal, onOpen })) {
    take(options, place, message)
    if (place.hasEnded) return
    await options.drained?.()
  }
}

function take(options: FollowOptions, place: Place, message: SseMessage): void {
  if (message.id !== null) place.lastId = message.id
  // The server's last message is about the run and is not one of its events.
  if (message.event === 'end') {
    place.hasEnded = true
    return
  }
  const event = parseJsonText(message.data)
  if (typeof event === 'object' && event !== null) options.onEvent(event)
  if (message.event === 'ended') place.hasEnded = true
}

export async function isOver(client: Client, runId: string): Promise<boolean> {
  const { body } = await client.call({ method: 'GET', path: `/api/v1/runs/${pathSegment(runId)}` })
  return isEnded(textAt(body, 'status'))
}

export const isEnded = (status: string | null) =>
  status === 'succeeded' || status === 'failed' || status === 'cancelled'
