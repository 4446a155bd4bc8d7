/** Reads server-sent events (WHATWG HTML, "Server-sent events") from bytes that are cut anywhere. */
export interface SseMessage {
  id: string | null
  event: string
  data: string
}

/** The longest message, in characters; the server never sends longer ones. */
const maxChars = 64 * 1024 * 1024

/** Looks at each character once, however many pieces a line comes in. */
export class SseReader {
  private readonly decoder = new TextDecoder()
  /** The pieces of the line that is not complete yet. */
  private pieces: string[] = []
  /** Of the message so far. */
  private chars = 0
  private wasReturn = false
  private fields = noFields()

  push(chunk: Uint8Array): SseMessage[] {
    const text = this.decoder.decode(chunk, { stream: true })
    if (text === '') return []
    const messages: SseMessage[] = []
    // The second half of a line end that was cut in two.
    let from = this.wasReturn && text.startsWith('\n') ? 1 : 0
    this.wasReturn = text.endsWith('\r')
    const lineEnd = /\r\n|\n|\r/g
    lineEnd.lastIndex = from
    for (let end = lineEnd.exec(text); end !== null; end = lineEnd.exec(text)) {
      this.take(text.slice(from, end.index))
      from = lineEnd.lastIndex
      const message = this.endLine()
      if (message !== null) messages.push(message)
    }
    this.take(text.slice(from))
    return messages
  }

  private take(piece: string): void {
    // Also an empty line takes room among the others.
    this.chars += piece.length + 1
    if (this.chars > maxChars) throw new Error('a message of the stream is too long')
    if (piece !== '') this.pieces.push(piece)
  }

  private endLine(): SseMessage | null {
    const line = this.pieces.join('')
    this.pieces = []
    if (line !== '') {
      addField(this.fields, line)
      return null
    }
    const { id, event, data } = this.fields
    this.fields = noFields()
    this.chars = 0
    // A message without data is not dispatched.
    return data.length === 0 ? null : { id, event, data: data.join('\n') }
  }
}

interface Fields {
  id: string | null
  event: string
  data: string[]
}

const noFields = (): Fields => ({ id: null, event: 'message', data: [] })

function addField(fields: Fields, line: string): void {
  const at = line.indexOf(':')
  const name = at === -1 ? line : line.slice(0, at)
  const value = at === -1 ? '' : line.slice(at + 1).replace(/^ /, '')
  if (name === 'data') fields.data.push(value)
  else if (name === 'id' && !value.includes('\0')) fields.id = value
  else if (name === 'event') fields.event = value
}
