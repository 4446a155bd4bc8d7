import type { FailureKind, HarnessOutcome } from '../adapter.ts'

/** A failure as a harness tells it. */
export interface Failure {
  /** Without secrets. */
  message: string
  httpStatus?: number | null
  /** The kind that the harness names itself; it counts before status and message. */
  kind?: FailureKind | null
}

/** A provider's fault, after which a backup model, a fallback harness and the breaker of the provider have their turn. */
export const isProvidersFault = (kind: FailureKind | undefined): boolean => kind === 'connection' || kind === 'provider'

/** Returns what kind of failure it is: by the harness's own name for it, then its status, then its words. */
export function failureKind({ kind, httpStatus, message }: Failure): FailureKind {
  return kind ?? byStatus(httpStatus ?? statusIn(message), message) ?? byWords(message) ?? 'other'
}

function byStatus(status: number | null, message: string): FailureKind | null {
  if (status === null) return null
  if (status === 429) return 'rate_limit'
  if (status === 401 || status === 403) return 'unauthorised'
  if (status === 408) return 'connection'
  if (status >= 500) return 'provider'
  if (status === 413) return 'context_full'
  // What is wrong with a request that was refused, only its words tell. No request that was answered is a broken connection.
  const told = byWords(message)
  return told === 'connection' || told === 'provider' ? 'other' : told
}

/** The status in a message of a harness that does not tell it apart: `unexpected status 503`, `API Error: 529`. */
function statusIn(message: string): number | null {
  const found = /\b(?:status|error|https?|code)\b[^\w\n]{0,4}(?:code[^\w\n]{0,3})?([45]\d\d)\b/i.exec(message)
  return found === null ? null : Number(found[1])
}

/** The first that fits. Providers tell of limits in a stream that ends, which counts as the limit and not as the end of the stream. */
const words: readonly [FailureKind, RegExp][] = [
  ['output_limit', /max_(output_)?tokens|output[ _]?token (limit|maximum)|output limit/i],
  [
    'context_full',
    /context[ _](length|window|limit)|(prompt|input|request) is too long|too many tokens|maximum context|context.?overflow/i,
  ],
  [
    'rate_limit',
    /\b429\b|rate.?limit|too many requests|usage limit|(?<!disk )quota|resource.?exhausted|free usage|limit (has been )?reached/i,
  ],
  [
    'unauthorised',
    /not (logged|signed) in|please (log|sign) ?in\b|run \S*\/?login\b|\[unauthenticated\]|unauthori[sz]ed|authentication (is )?(required|failed)|invalid[^\n]{0,20}api.?key/i,
  ],
  ['unknown_model', /model[^\n]{0,80}(not found|not exist|not available to|may not have access)|unknown model/i],
  [
    'connection',
    /\bE(CONN(REFUSED|RESET|ABORTED)|NOTFOUND|AI_AGAIN|TIMEDOUT|PIPE|HOSTUNREACH|NETUNREACH)\b|socket hang up|fetch failed|error sending request|stream (disconnected|closed)|network (error|is unreachable)|\[unavailable\]|(unable|cannot|could not|failed) to connect|socket connection was closed|connection (was )?(refused|reset|closed|dropped|lost|error|timed out|terminated|aborted|failed)/i,
  ],
  ['provider', /overloaded|at capacity|internal server error|service unavailable|bad gateway/i],
]
const byWords = (message: string): FailureKind | null => words.find(([, said]) => said.test(message))?.[0] ?? null

/** The words of a harness for its people. */
export interface SignInWords {
  /** A sentence: nobody is signed in, and how to. */
  signInHint: string
  /** Follows "sign in again with". */
  signInWith: string
}
export type Ending = Pick<HarnessOutcome, 'exitReason' | 'message' | 'limitResetsAt' | 'failure'> & { sessionId?: null }

/**
 * Returns how a run ended whose request to the model failed. Why each:
 *
 * - A limit is `rate_limited`; `resetsAt`: when it is over, where the harness says so.
 * - No credentials, or refused ones before anything was done: `harness_start_failed`, since a retry cannot help.
 * - A session that is full is not gone on with, since it could only fail the same way.
 * - Everything else is `error`.
 */
export function failureEnding(
  told: Failure,
  { didWork, resetsAt = null, ...signIn }: SignInWords & { didWork: boolean; resetsAt?: number | null },
): Ending {
  const failure = failureKind(told)
  const error = { exitReason: 'error', message: told.message, failure } as const
  switch (failure) {
    case 'rate_limit':
      return { ...error, exitReason: 'rate_limited', ...(resetsAt !== null && { limitResetsAt: resetsAt }) }
    case 'unauthorised': {
      const message = signedOutMessage(told.message, signIn)
      return { ...error, exitReason: didWork ? 'error' : 'harness_start_failed', message }
    }
    case 'context_full':
      return { ...error, sessionId: null }
    case 'output_limit':
      return cutOff(told.message)
    default:
      return error
  }
}

/** An answer that is not whole is none. `said`: what the harness says of it, where it says anything. */
export const cutOff = (said = ''): Ending => ({
  exitReason: 'error',
  message: `The model's answer was cut off at its output limit${said === '' ? '.' : `: ${said}`}`,
  failure: 'output_limit',
})

/** What programs tell people at a terminal of their own, which nobody sees here. */
const forTerminals = /please (?:run |use |try )?`?\/?log ?in\b/i
const maxSaidChars = 1_000

function signedOutMessage(message: string, { signInHint, signInWith }: SignInWords): string {
  const [before = ''] = message.slice(0, maxSaidChars).split(forTerminals, 1)
  const said = before.replace(/[\s\u{b7}.:;,-]+$/u, '').trim()
  if (said === '' || /^not (logged|signed) in$/i.test(said)) return signInHint
  return `The provider refused the sign-in (${said}): sign in again with ${signInWith}.`
}
