/** Reads server-sent events (WHATWG HTML, "Server-sent events") from bytes that are cut anywhere. */
export interface SseMessage {
  id: string | null
  event: string
  data: string
}

/** Limit of a line, and of a message of many lines; the server never sends longer ones. */
const maxChars = 64 * 1024 * 1024

export class SseReader {
  private readonly decoder = new TextDecoder()
  private rest = ''
  private lines: string[] = []

  push(chunk: Uint8Array): SseMessage[] {
    this.rest += this.decoder.decode(chunk, { stream: true })
    if (this.rest.length > maxChars) throw new Error('a message of the stream is too long')
    const messages: SseMessage[] = []
    for (;;) {
      const end = /\r\n|\n|\r(?!$)/.exec(this.rest)
      if (end === null) return messages
      const line = this.rest.slice(0, end.index)
      this.rest = this.rest.slice(end.index + end[0].length)
      if (line !== '') this.lines.push(line)
      else {
        const message = messageOf(this.lines)
        this.lines = []
        if (message !== null) messages.push(message)
      }
    }
  }
}

function messageOf(lines: readonly string[]): SseMessage | null {
  const message: SseMessage = { id: null, event: 'message', data: '' }
  const data: string[] = []
  for (const line of lines) {
    const at = line.indexOf(':')
    const name = at === -1 ? line : line.slice(0, at)
    const value = at === -1 ? '' : line.slice(at + 1).replace(/^ /, '')
    if (name === 'data') data.push(value)
    else if (name === 'id' && !value.includes('\0')) message.id = value
    else if (name === 'event') message.event = value
  }
  // A message without data is not dispatched.
  return data.length === 0 ? null : { ...message, data: data.join('\n') }
}
