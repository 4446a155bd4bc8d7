import { createParser } from 'eventsource-parser'

/** A server-sent event, as streams of the API send it. */
export interface SseMessage {
  id: string | null
  event: string
  data: string
}

/** The longest message, in characters: ten times the longest event of a run. */
const maxChars = 20 * 1024 * 1024

/** Reads server-sent events from bytes that are cut anywhere, also within a character. */
export class SseReader {
  private readonly decoder = new TextDecoder()
  private messages: SseMessage[] = []
  private readonly parser = createParser({
    maxBufferSize: maxChars,
    onEvent: ({ id = null, event = 'message', data }) => this.messages.push({ id, event, data }),
    // Other errors are fields that a later release may send.
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') throw new Error('A message of the stream is too long.')
    },
  })

  /** Returns the messages that are complete with this chunk. Throws when one is too long: then the stream cannot be read on. */
  push(chunk: Uint8Array): SseMessage[] {
    this.messages = []
    this.parser.feed(this.decoder.decode(chunk, { stream: true }))
    return this.messages
  }
}
