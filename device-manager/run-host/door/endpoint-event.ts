import { Transform } from 'node:stream'

/** A server that says no address in so many bytes is none. */
const mostBytes = 64 * 1024

/**
 * The older transport `sse` begins with an event `endpoint`: the address for messages, seen from that of the stream. In its place
 * the harness gets one of the door. `addressFor` throws where there is none.
 */
export function endpointRewriter(addressFor: (said: string) => string): Transform {
  let held = ''
  let isDone = false
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (isDone) return done(null, chunk)
      held += chunk.toString('latin1')
      try {
        const out: string[] = []
        for (let event = firstEvent(held); event !== null && !isDone; event = firstEvent(held)) {
          held = held.slice(event.length)
          isDone = /^event: ?endpoint\r?$/m.test(event)
          out.push(isDone ? rewritten(event, addressFor) : event)
        }
        if (isDone) out.push(held)
        else if (held.length > mostBytes) throw new Error('the stream does not begin with an address')
        done(null, Buffer.from(out.join(''), 'latin1'))
      } catch (error) {
        done(error as Error)
      }
    },
  })
}

const firstEvent = (text: string): string | null => /^[\s\S]*?(?:\r\n\r\n|\n\n|\r\r)/.exec(text)?.[0] ?? null

function rewritten(event: string, addressFor: (said: string) => string): string {
  const said = /^data: ?(.*?)\r?$/m.exec(event)?.[1] ?? ''
  return `event: endpoint\ndata: ${addressFor(Buffer.from(said, 'latin1').toString('utf8'))}\n\n`
}
