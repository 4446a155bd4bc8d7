import type { IncomingMessage } from 'node:http'
import { ApiFailure, CliError } from '../errors/cli-error.ts'
import { idleMs, readReply } from './client.ts'

/**
 * Asks for the bytes at a URL that says who may have them: no token goes with it. The answer breaks off when nothing comes for
 * `silentMs`.
 */
export async function openBytes(url: string, silentMs = idleMs): Promise<IncomingMessage> {
  const http = process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http')
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const request = http.get(url, { agent: false, timeout: silentMs }).on('error', reject)
    let begun: IncomingMessage | null = null
    request.on('response', (response) => resolve((begun = response)))
    // Whoever reads the answer is told by the answer.
    request.on('timeout', () => (begun ?? request).destroy(new Error(`nothing came for ${silentMs / 1000} seconds`)))
  }).catch((error: unknown) => {
    throw new CliError('server_unreachable', `The file cannot be reached: ${(error as Error).message}.`, {
      exit: 'unreachable',
      remediation: 'Check that this machine reaches the address that the server has for itself (SVC_PUBLIC_URL).',
      cause: error,
    })
  })
  if (answer.statusCode === 200) return answer
  const reply = await readReply(answer)
  throw new ApiFailure(reply.status, reply.body ?? reply.text)
}
