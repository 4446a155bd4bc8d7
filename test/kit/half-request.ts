import { request } from 'node:http'
import type { Reply, TestServer } from './server.ts'

/**
 * A request whose body comes late: `between` happens after the server has accepted the caller's token and before it has
 * read the body, so that a test can change the world under a request that is under way.
 */
export async function halfRequest(
  server: TestServer,
  path: string,
  options: {
    method?: string
    token: string
    body: unknown
    headers?: Record<string, string>
    between: () => Promise<void>
  },
): Promise<Reply> {
  const text = JSON.stringify(options.body)
  const accepted = new Promise<void>((resolve) => {
    const { roots } = server
    // The queries by which the kernel finds the agent of a run token, or the person of a login token.
    const onAnswer = (_answer: unknown, { sql }: { sql: string }) => {
      if (!sql.includes('as token_generation') && !sql.includes('from login_tokens t')) return
      for (const root of roots) root.off('query-response', onAnswer)
      resolve()
    }
    for (const root of roots) root.on('query-response', onAnswer)
  })
  const call = request(`${server.nextUrl()}/api/v1${path}`, {
    method: options.method ?? 'POST',
    headers: {
      ...options.headers,
      authorization: `Bearer ${options.token}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    },
  })
  const answered = new Promise<Reply>((resolve, reject) => {
    call.once('error', reject)
    call.once('response', (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (body += chunk))
      response.once('error', reject)
      response.once('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: new Headers({ 'request-id': String(response.headers['request-id']) }),
          body: body === '' ? null : JSON.parse(body),
        }),
      )
    })
  })
  call.write(text.slice(0, 1))
  await accepted
  await options.between()
  call.end(text.slice(1))
  return answered
}
