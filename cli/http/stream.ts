import type { World } from '../../shared/lib/world.ts'
import type { SseMessage } from '../replies/sse.ts'
import type { ApiCall } from '../calls/api-call.ts'
import type { Client } from '../calls/client.ts'

/** The server sends something every 15 s; after this much silence the connection is dead. */
const silenceMs = 45_000

export interface StreamOptions {
  client: Client
  world: World
  call: ApiCall
  signal?: AbortSignal
  onOpen?(): void
}

/** Yields the messages of a stream of server-sent events. Fails when the server falls silent. */
export async function* streamMessages({ client, world, call, ...options }: StreamOptions): AsyncGenerator<SseMessage> {
  const silence = new AbortController()
  const signal = AbortSignal.any([silence.signal, ...(options.signal === undefined ? [] : [options.signal])])
  let stopTimer = () => {}
  const listen = () => {
    stopTimer = world.after(silenceMs, () => silence.abort(new Error('the stream fell silent')))
  }
  listen()
  try {
    const response: AsyncIterable<Buffer> = await client.stream(call, signal)
    options.onOpen?.()
    // Only what follows a stream loads the reader.
    const { SseReader } = await import('../replies/sse.ts')
    const reader = new SseReader()
    for await (const chunk of response) {
      // While the caller works on the messages it is not the server that is slow.
      stopTimer()
      yield* reader.push(chunk)
      listen()
    }
  } finally {
    stopTimer()
  }
}
