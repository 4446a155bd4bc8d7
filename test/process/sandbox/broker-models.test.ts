import { request as ask, type IncomingMessage } from 'node:http'
import { describe, expect, test } from 'vitest'
import { waitFor } from '../../kit/programs.ts'
import { get, key, post, startBroker, startProvider, statusOf, textOf } from './broker-kit.ts'

const echo = async (request: IncomingMessage) => {
  let body = ''
  for await (const chunk of request) body += String(chunk)
  const { headers, method, url } = request
  return JSON.stringify({ method, url, body, headers: { ...headers, 'x-api-key': headers['x-api-key'] === key } })
}

describe('a model behind the broker', () => {
  test('is asked with the key in place of what the sandbox gave', async () => {
    const { permit } = await startProvider((request, response) => void echo(request).then((text) => response.end(text)))
    const { say, counted } = await startBroker({ permit })
    const answer = await say(
      post('/model/anthropic/v1/messages?beta=true', '{"model":"m"}', [
        'x-api-key: the-broker-adds-the-key',
        'authorization: Bearer of-the-sandbox',
        'cookie: a=b',
        'x-forwarded-for: 10.0.0.1',
        'proxy-authorization: Basic x',
        'openai-organization: others',
        'anthropic-version: 2023-06-01',
      ]),
    )
    expect(statusOf(answer)).toBe(200)
    const seen = JSON.parse(answer.slice(answer.indexOf('{'), answer.lastIndexOf('}') + 1)) as Record<string, unknown>
    expect(seen).toMatchObject({ method: 'POST', url: '/v1/messages?beta=true', body: '{"model":"m"}' })
    expect(seen['headers']).toMatchObject({ 'x-api-key': true, 'anthropic-version': '2023-06-01' })
    for (const name of ['authorization', 'cookie', 'x-forwarded-for', 'proxy-authorization', 'openai-organization'])
      expect(seen['headers']).not.toHaveProperty(name)
    expect(await counted()).toEqual([{ host: '127.0.0.1', decision: 'allowed', requests: 1 }])
  })

  test('takes a key as a bearer where the provider wants it so', async () => {
    const { url } = await startProvider((request, response) => response.end(request.headers.authorization ?? 'none'))
    const model = { provider: 'openai', url, key: { value: 'sk-other', header: 'bearer' } } as const
    const { say } = await startBroker({ permit: { egress: new Set(), model, repo: null, secrets: [] } })
    // It is told by the provider, so it does not come in.
    expect(await say(post('/model/openai/v1/responses'))).not.toContain('sk-other')
    expect(statusOf(await say(post('/model/anthropic/v1/messages')))).toBe(403)
  })

  test('answers event by event, while the answer still goes on', async () => {
    let more = () => {}
    const { permit } = await startProvider((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: one\n\n')
      more = () => response.end('data: two\n\n')
    })
    const { socket } = await startBroker({ permit })
    const answer = await new Promise<IncomingMessage>((resolve) =>
      ask({ socketPath: socket, path: '/model/anthropic/v1/messages', method: 'POST' }, resolve).end('{}'),
    )
    const first = await new Promise<Buffer>((resolve) => answer.once('data', resolve))
    expect(first.toString()).toBe('data: one\n\n')
    more()
    let rest = ''
    for await (const chunk of answer) rest += String(chunk)
    expect(rest).toBe('data: two\n\n')
  })

  test.each([
    '/model/anthropic/../../../api/v1/agents',
    '/model/anthropic/v1/messages/../files',
    '/model/anthropic/v1/messages/%2e%2e/files',
    '/model/anthropic//v1/messages',
    '/model/anthropic/v1/models/..',
    '/model/anthropic/v1/models/../organizations',
    '/model/anthropic/v1/files',
    '/model/anthropic/v1/messages/batches',
    '/model/anthropic/v1/messages#x',
    '/model/anthropic/v1/messages?a=b?c',
    '/model/anthropic/v1/messages?a=http://evil',
    '/model/anthropic@evil.example/v1/messages',
    '/model/openai/v1/responses',
    '/model/none/v1/messages',
    '/model/../api/v1/agents',
    '/MODEL/anthropic/v1/messages',
    'model/anthropic/v1/messages',
  ])('is no way to %s', async (path) => {
    const { permit, server } = await startProvider((_request, response) => response.end())
    const { say, asked } = await startBroker({ permit })
    expect([400, 403]).toContain(statusOf(await say(post(path))))
    expect([server.asked, asked]).toEqual([0, []])
  })

  test.each(['TRACE', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'GET'])('is not asked by %s', async (method) => {
    const { permit, server } = await startProvider((_request, response) => response.end())
    const { say } = await startBroker({ permit })
    expect(statusOf(await say(get('/model/anthropic/v1/messages').replace('GET', method)))).toBe(403)
    expect(server.asked).toBe(0)
  })

  test.each([301, 302, 307, 308])(
    'that redirects (%i) is not followed, and nobody else gets the key',
    async (status) => {
      const { url: elsewhere, server } = await startProvider((_request, response) => response.end('stolen'))
      const { permit } = await startProvider((_request, response) => {
        response.writeHead(status, { location: `${elsewhere}/v1/messages` })
        response.end()
      })
      const { say, counted } = await startBroker({ permit })
      const answer = await say(post('/model/anthropic/v1/messages'))
      expect(statusOf(answer)).toBe(502)
      expect(answer).not.toContain(elsewhere)
      expect(server.asked).toBe(0)
      expect(await counted()).toMatchObject([{ decision: 'failed' }])
    },
  )

  test('that tells the key, in its head or cut into pieces of its body, is cut off before', async () => {
    const { permit } = await startProvider((request, response) => {
      if (request.url?.includes('head') === true) {
        response.setHeader('x-debug', `key ${key}`)
        return void response.end('x')
      }
      response.write(`before ${key.slice(0, 9)}`)
      setImmediate(() => response.end(`${key.slice(9)} behind`))
    })
    const { say } = await startBroker({ permit })
    const inBody = await say(post('/model/anthropic/v1/messages'))
    expect(inBody).toContain('before ')
    expect(inBody).not.toContain(key.slice(0, 9))
    expect(inBody).not.toContain('behind')
    const inHead = await say(post('/model/anthropic/v1/messages?head'))
    expect(statusOf(inHead)).toBe(502)
    expect(inHead).not.toContain(key)
  })

  test('that ends with what only begins like the key tells all of it', async () => {
    const { permit } = await startProvider((_request, response) => response.end(`end ${key.slice(0, -1)}`))
    const { say } = await startBroker({ permit })
    expect(await say(post('/model/anthropic/v1/messages'))).toContain(`end ${key.slice(0, -1)}`)
  })

  test('takes bodies up to a limit, told or not', async () => {
    const { permit, server } = await startProvider((request, response) => {
      request.resume().on('end', () => response.end('whole'))
      request.on('error', () => undefined)
    })
    const { say, open } = await startBroker({ permit, limits: { models: { sentBytes: 1_000 } } })
    const told = post('/model/anthropic/v1/messages').replace('content-length: 2', 'content-length: 1000000000')
    expect(statusOf(await say(told))).toBe(413)
    expect(server.asked).toBe(0)
    const socket = await open()
    const said = textOf(socket)
    socket.write('POST /model/anthropic/v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n')
    for (let n = 0; n < 3; n++) socket.write(`200\r\n${'x'.repeat(512)}\r\n`)
    expect(statusOf(await said)).toBe(413)
  })

  test('answers up to a limit of bytes and of time, and so many requests at once', async () => {
    let hangs = 0
    const { permit } = await startProvider((request, response) => {
      if (request.url?.includes('hang') === true) return void hangs++
      response.end('y'.repeat(5_000))
    })
    const limits = { models: { answerBytes: 1_000, timeMs: 300, open: 1 } }
    const { say } = await startBroker({ permit, limits })
    const slow = say(post('/model/anthropic/v1/messages?hang'))
    await waitFor(() => (hangs > 0 ? true : null), 'the request that hangs')
    expect(statusOf(await say(post('/model/anthropic/v1/messages')))).toBe(429)
    const late = await slow
    expect(statusOf(late)).toBe(502)
    expect(late).toContain('took too long')
    expect((await say(post('/model/anthropic/v1/messages'))).length).toBeLessThan(2_000)
  })

  test('is not asked when the run is over, or its key was taken away', async () => {
    const { permit, server } = await startProvider((_request, response) => response.end())
    const over = await startBroker({ permit: null })
    expect(statusOf(await over.say(post('/model/anthropic/v1/messages')))).toBe(403)
    const keyless = await startBroker({ permit: { ...permit, model: { ...permit.model!, key: null } } })
    expect(await keyless.say(post('/model/anthropic/v1/messages'))).toContain('was taken away')
    expect(server.asked).toBe(0)
  })

  test('is not asked at an address that is private, whatever its name means', async () => {
    const { permit, server } = await startProvider((_request, response) => response.end())
    for (const url of ['https://models.test', 'https://169.254.169.254', 'http://models.test', 'https://[::1]']) {
      const resolveHost = () => Promise.resolve(['169.254.169.254'])
      const { say, counted } = await startBroker({
        permit: { ...permit, model: { ...permit.model!, url } },
        outbound: { allowHosts: [], resolveHost },
      })
      expect(statusOf(await say(post('/model/anthropic/v1/messages')))).toBe(502)
      expect(await counted()).toMatchObject([{ decision: 'refused' }])
    }
    expect(server.asked).toBe(0)
  })
})
