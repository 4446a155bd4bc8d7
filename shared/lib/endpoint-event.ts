/** A server that has named no address in so many bytes is not waited for. */
const mostBytes = 64 * 1024

/**
 * The older transport `sse` of MCP begins with an event `endpoint`: the address for messages, seen from that of the stream. In its place
 * the client gets one of ours. What is returned takes the pieces of one stream, a character for each byte, and answers what is passed on;
 * it throws where there is no such address. `addressFor` throws where it takes none.
 */
export function endpointReplacer(addressFor: (said: string) => string): (piece: string) => string {
  let held = ''
  let isDone = false
  return (piece) => {
    if (isDone) return piece
    held += piece
    const out: string[] = []
    for (let event = firstEvent(held); event !== null && !isDone; event = firstEvent(held)) {
      held = held.slice(event.length)
      isDone = /^event: ?endpoint\r?$/m.test(event)
      out.push(isDone ? replaced(event, addressFor) : event)
    }
    if (isDone) out.push(held)
    else if (held.length > mostBytes) throw new Error('the stream does not begin with an address')
    return out.join('')
  }
}

const firstEvent = (text: string): string | null => /^[\s\S]*?(?:\r\n\r\n|\n\n|\r\r)/.exec(text)?.[0] ?? null

function replaced(event: string, addressFor: (said: string) => string): string {
  const said = /^data: ?(.*?)\r?$/m.exec(event)?.[1] ?? ''
  const bytes = Uint8Array.from(said, (character) => character.charCodeAt(0))
  return `event: endpoint\ndata: ${addressFor(new TextDecoder().decode(bytes))}\n\n`
}
