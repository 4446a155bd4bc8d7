import { Transform } from 'node:stream'
import { endpointReplacer } from '../../../shared/lib/endpoint-event.ts'

/** Puts the proxy's addresses in place of those that a stream of the transport `sse` names. It fails as `addressFor` does. */
export function endpointRewriter(addressFor: (said: string) => string): Transform {
  const replace = endpointReplacer(addressFor)
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      try {
        done(null, Buffer.from(replace(chunk.toString('latin1')), 'latin1'))
      } catch (error) {
        done(error as Error)
      }
    },
  })
}
