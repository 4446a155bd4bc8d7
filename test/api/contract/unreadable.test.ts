import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { errorEnvelope } from '../../../shared/api/errors.ts'
import { TestServer } from '../../kit/server.ts'

// Bytes that are no request get the envelope too.

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

/** All that is answered to these bytes until the connection ends. */
function answerTo(bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    let text = ''
    socket.setEncoding('utf8')
    socket.on('data', (chunk: string) => (text += chunk))
    socket.on('error', reject)
    socket.on('end', () => resolve(text))
    socket.write(bytes)
  })
}

test.each([
  [400, 'hello\r\n\r\n'],
  [400, 'GET /api/v1/agents HTTP/1.1\r\nHost: x\r\nBad Header: y\r\n\r\n'],
  [431, `GET /api/v1/agents?q=${'x'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
  [400, 'GET /api/v1/agents HTTP/1.1\r\nConnection: close\r\n\r\n'],
  [417, 'GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: more\r\nConnection: close\r\n\r\n'],
  [400, 'POST /api/v1/agents HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n'],
])('%i', async (status, bytes) => {
  const answer = await answerTo(bytes)
  const [head, body] = answer.split('\r\n\r\n') as [string, string]
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  const { error } = errorEnvelope.parse(JSON.parse(body))
  expect(error).toMatchObject({ code: 'http_exception', type: 'invalid_request_error' })
  expect(head).toContain(`Request-Id: ${error.requestId}`)
})

const upgrade = (path: string, protocol: string) =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: ${protocol}\r\n\r\n`

test.each(['h2c', 'websocket'])('a wish to upgrade to %s is ignored where there is no link', async (protocol) => {
  const answer = await answerTo(upgrade('/healthz', protocol))
  expect(answer).toMatch(/^HTTP\/1.1 200 /)
  expect(answer).toContain('{"status":"ok"}')
})

test.each(['/api/v1/agents', '/api/device/link'])(
  'who asks %s for an upgrade and resets ends nothing',
  async (path) => {
    for (let round = 0; round < 20; round++) await resetAfter(upgrade(path, 'websocket'))
    expect(await answerTo('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toContain('{"status":"ok"}')
  },
)

/** An error that nobody listens for ends the process, and here the tests. */
function resetAfter(bytes: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.on('error', () => undefined)
    socket.on('close', () => resolve())
    socket.write(bytes, () => setImmediate(() => socket.resetAndDestroy()))
  })
}
