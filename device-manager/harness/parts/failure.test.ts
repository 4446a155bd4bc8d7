import { expect, it } from 'vitest'
import type { FailureKind } from '../adapter.ts'
import { cutOff, failureEnding, failureKind, isProvidersFault, type Failure } from './failure.ts'
import { cpuMsOf } from '../../../test/kit/cpu-time.ts'

const words = { signInHint: 'x is not signed in; run `x login`.', signInWith: '`x login`' }
const ending = (told: Failure, didWork = false) => failureEnding(told, { ...words, didWork })

it.each([
  ['other', { message: 'Something.' }],
  ['other', { message: 'Bad request', httpStatus: 400 }],
  ['provider', { message: 'Whatever', httpStatus: 529 }],
  ['provider', { message: 'API Error: 503 No.' }],
  ['provider', { message: 'The server is overloaded' }],
  ['rate_limit', { message: 'exceeded retry limit, last status: 429 Too Many Requests' }],
  ['rate_limit', { message: 'stream disconnected before completion: Rate limit reached for gpt-x, try again in 1 s' }],
  ['rate_limit', { message: 'Error: [resource_exhausted] slow down' }],
  ['unauthorised', { message: 'No', httpStatus: 403 }],
  ['unauthorised', { message: 'Internal error: 401 {"type":"error"}' }],
  ['unauthorised', { message: 'Error: Authentication required.' }],
  ['context_full', { message: 'prompt is too long: 3 tokens > 2 maximum', httpStatus: 400 }],
  ['context_full', { message: "This model's maximum context length is 8 tokens" }],
  ['output_limit', { message: 'Incomplete response returned, reason: max_output_tokens' }],
  ['unknown_model', { message: 'The model `x` does not exist or you may not have access to it', httpStatus: 404 }],
  ['connection', { message: 'stream disconnected before completion: error sending request' }],
  ['connection', { message: 'Cannot connect to API: The socket connection was closed unexpectedly.' }],
  ['connection', { message: 'Unable to connect. Is the computer able to access the url?' }],
  ['connection', { message: 'API Error: Connection refused (ECONNREFUSED)' }],
  ['connection', { message: 'getaddrinfo ENOTFOUND api.example.com' }],
  // The harness knows better than its words.
  ['context_full', { message: 'Connection refused', httpStatus: 429, kind: 'context_full' }],
  // A request that was answered has reached its provider.
  ['other', { message: 'The connection was closed by a policy', httpStatus: 400 }],
  ['context_full', { message: 'Request exceeds the maximum size', httpStatus: 413 }],
  ['unauthorised', { message: 'Error: please log in first' }],
  ['other', { message: 'Cannot write the log in /var: disk quota exceeded' }],
  // A number that is no status.
  ['other', { message: 'It took 500 ms' }],
] as const)('%s: %j', (kind, told) => {
  expect(failureKind(told)).toBe(kind)
})

it('has each kind end in one way', () => {
  const ends: Record<FailureKind, readonly [exitReason: string, losesSession: boolean, isProvidersFault: boolean]> = {
    output_limit: ['error', false, false],
    context_full: ['error', true, false],
    rate_limit: ['rate_limited', false, false],
    unauthorised: ['harness_start_failed', false, false],
    unknown_model: ['error', false, false],
    connection: ['error', false, true],
    provider: ['error', false, true],
    other: ['error', false, false],
  }
  for (const [kind, expected] of Object.entries(ends) as [FailureKind, (typeof ends)[FailureKind]][]) {
    const { exitReason, sessionId, failure } = ending({ message: 'M', kind })
    expect([exitReason, sessionId === null, isProvidersFault(failure)], kind).toEqual(expected)
  }
  expect(ending({ message: 'M', kind: 'unauthorised' }, true).exitReason).toBe('error')
})

it.each([
  ['', words.signInHint],
  ['Not logged in', words.signInHint],
  ['Not logged in · Please run /login', words.signInHint],
  [
    'Invalid API key · Please run /login',
    'The provider refused the sign-in (Invalid API key): sign in again with `x login`.',
  ],
  ['401 No.', 'The provider refused the sign-in (401 No): sign in again with `x login`.'],
])('says in one sentence how to sign in: %s', (message, expected) => {
  expect(ending({ message, kind: 'unauthorised' }).message).toBe(expected)
})

it('says of an answer that was cut off what the harness says of it', () => {
  expect(cutOff().message).toBe("The model's answer was cut off at its output limit.")
  expect(ending({ message: 'max_tokens' }).message).toBe(
    "The model's answer was cut off at its output limit: max_tokens",
  )
})

it('reads a costly message in no time', () => {
  const costly = [' '.repeat(64_000), 'model '.repeat(10_000), 'error: '.repeat(9_000), 'invalid'.repeat(9_000)]
  expect(cpuMsOf(() => costly.map((message) => ending({ message, httpStatus: 401 })))).toBeLessThan(1_000)
})
