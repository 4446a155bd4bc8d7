import { CliError } from '../errors/cli-error.ts'
import type { ApiCall, ApiReply } from '../calls/api-call.ts'

// Tells answers of the server from others that a network puts in their place, such as the sign-in page of a hotel, or
// the empty or cut answer of a proxy. Their status is 200, and trusting it would report a write as done that never
// arrived.

export const notOurServer = 'cli.not_our_server'

/**
 * Fails with exit status 3 when a good status comes without what the server sends with it: JSON, or nothing with 204.
 */
export function checkUsable(server: string, call: ApiCall, reply: ApiReply): void {
  if (reply.status >= 400 || (reply.status === 204 && reply.text === '')) return
  if (typeof reply.body === 'object' && reply.body !== null) return
  if (call.mayBeText === true && isTextOfOurs(reply)) return
  throw notOurAnswer(server, call, whatItIs(reply))
}

/** A stream is recognised by its type. */
export function checkStream(server: string, call: ApiCall, headers: ApiReply['headers']): void {
  if (/^text\/event-stream\b/i.test(headers['content-type'] ?? '')) return
  throw notOurAnswer(server, call, `is no stream of events (${headers['content-type'] ?? 'without a type'})`)
}

/** Every answer of the server names its request; a page in its place does not. */
function isTextOfOurs({ headers, status, text }: ApiReply): boolean {
  const isTyped = !/\b(json|html)\b/i.test(headers['content-type'] ?? '')
  return status < 300 && headers['request-id'] !== undefined && isTyped && text !== ''
}

function whatItIs({ status, text, headers }: ApiReply): string {
  if (status >= 300) return `leads elsewhere (status ${status})`
  if (text.trim() === '') return `is empty (status ${status})`
  if (/^\s*</.test(text) || /\bhtml\b/i.test(headers['content-type'] ?? '')) return 'is a web page'
  return /^\s*[{[]/.test(text) ? 'is JSON that breaks off' : 'is no JSON'
}

function notOurAnswer(server: string, call: ApiCall, what: string): CliError {
  const doubt = call.method === 'GET' ? '' : ' Whether the call was carried out is not known.'
  return new CliError(
    'not_our_server',
    `The answer that came from ${server} ${what}, so it is not the server's.${doubt}`,
    {
      exit: 'unreachable',
      remediation: 'Check the network: a sign-in page or a proxy may stand between this machine and the server.',
    },
  )
}
