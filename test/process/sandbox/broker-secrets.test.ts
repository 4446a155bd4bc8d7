import { execFile } from 'node:child_process'
import { connect, createServer } from 'node:net'
import type { RequestListener } from 'node:http'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { BrokeredSecret } from '../../../control-plane/resources/secrets/in-cloud.ts'
import { startServer, testCertificate } from '../../kit/hostile-server.ts'
import { get, post, startBroker, statusOf, textOf } from './broker-kit.ts'

const value = 'npm_real/0123456789+abcdef"x'
const placeholder = `brokered-${'a1'.repeat(20)}`
const otherPlaceholder = `brokered-${'b2'.repeat(20)}`

/** A host with TLS, and a broker of a run with secrets for it. What the host saw never comes in, so it is kept here. */
async function startHost({
  answer = (_request, response) => response.end('from the host'),
  secrets = [{}],
  ...options
}: {
  answer?: RequestListener
  secrets?: Partial<BrokeredSecret>[]
  limits?: Parameters<typeof startBroker>[0]['limits']
  egress?: string[]
} = {}) {
  const tls = testCertificate()
  const seen: { method: string; url: string; body: string; headers: Record<string, unknown> }[] = []
  const server = await startServer(
    (request, response) => {
      let body = ''
      request.on('data', (chunk) => (body += String(chunk)))
      request.on('end', () => {
        seen.push({ method: request.method!, url: request.url!, body, headers: request.headers })
        answer(request, response)
      })
    },
    { tls },
  )
  onTestFinished(() => server.close())
  const place = `a.test:${server.port}`
  const broker = await startBroker({
    permit: {
      egress: new Set(options.egress ?? []),
      model: null,
      repo: null,
      secrets: secrets.map((secret) => ({
        name: 'NPM_TOKEN',
        placeholder,
        value,
        hosts: new Set([place]),
        ...secret,
      })),
    },
    outbound: { allowHosts: ['a.test', 'b.test'], ca: tls.cert, resolveHost: () => Promise.resolve(['127.0.0.1']) },
    ...(options.limits && { limits: options.limits }),
  })
  return { ...broker, server, seen, place, url: `http://${place}` }
}

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`

describe('a secret that names hosts', () => {
  test('is put in place of its placeholder in headers, over TLS', async () => {
    const { say, seen, url, place, counted } = await startHost()
    const answer = await say(
      post(`${url}/v1/packages?a=b`, `{"in":"${placeholder}"}`, [
        `Authorization: Bearer ${placeholder}`,
        `x-both: ${placeholder},${placeholder}`,
        'cookie: a=b',
        'x-forwarded-for: 10.0.0.1',
        'proxy-authorization: Basic x',
        'accept-encoding: gzip',
      ]).replace('host: 127.0.0.1', 'host: evil.test'),
    )
    expect([statusOf(answer), answer.includes('from the host')]).toEqual([200, true])
    expect(seen).toEqual([
      expect.objectContaining({ method: 'POST', url: '/v1/packages?a=b', body: `{"in":"${placeholder}"}` }),
    ])
    const { headers } = seen[0]!
    expect(headers).toMatchObject({
      host: place,
      authorization: `Bearer ${value}`,
      'x-both': `${value},${value}`,
      cookie: 'a=b',
      'accept-encoding': 'identity',
    })
    for (const name of ['x-forwarded-for', 'proxy-authorization']) expect(headers).not.toHaveProperty(name)
    expect(await counted()).toEqual([{ host: 'a.test', decision: 'allowed', requests: 1 }])
  })

  test('is put into names and passwords of Basic, and a request without it passes, too', async () => {
    const { say, seen, url } = await startHost()
    await say(get(`${url}/`, [`authorization: ${basic(`me:${placeholder}`)}`]))
    await say(get(`${url}/`, [`authorization: ${basic('me:own')}`]))
    expect(seen.map(({ headers }) => headers['authorization'])).toEqual([basic(`me:${value}`), basic('me:own')])
  })

  test.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('is of use to %s', async (method) => {
    const { say, seen, url } = await startHost()
    const answer = await say(get(`${url}/x`, [`x-token: ${placeholder}`]).replace('GET', method))
    expect([statusOf(answer), seen[0]?.method, seen[0]?.headers['x-token']]).toEqual([200, method, value])
  })

  test('reaches its host by programs that know a proxy: curl, and both clients of Node', async () => {
    const { url, socket, seen } = await startHost()
    // What stands between the programs of a sandbox and its broker.
    const forwarder = createServer((inside) => {
      const broker = connect(socket)
      for (const each of [inside, broker]) each.on('error', () => undefined)
      inside.pipe(broker).pipe(inside)
    })
    await new Promise<void>((resolve) => forwarder.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void forwarder.close())
    const proxy = `http://127.0.0.1:${(forwarder.address() as { port: number }).port}`
    const env = { ...process.env, HTTP_PROXY: proxy, http_proxy: proxy, NO_PROXY: '127.0.0.1', NODE_USE_ENV_PROXY: '1' }
    const headers = JSON.stringify({ authorization: `Bearer ${placeholder}` })
    const run = promisify(execFile)
    const byFetch = `const ask=()=>fetch('${url}/f',{method:'POST',body:'b',headers:${headers}}).then((r)=>r.text());ask().then(ask).then(console.log)`
    const byHttp = `require('http').get('${url}/h',{headers:${headers}},(r)=>r.pipe(process.stdout))`
    const said = [
      await run(process.execPath, ['-e', byFetch], { env }),
      await run(process.execPath, ['-e', byHttp], { env }),
      await run('curl', ['-s', '-H', `authorization: Bearer ${placeholder}`, `${url}/c`], { env }),
    ]
    expect(said.map(({ stdout }) => stdout.trim())).toEqual(['from the host', 'from the host', 'from the host'])
    expect(seen.map(({ url: path, headers: { authorization } }) => [path, authorization])).toEqual(
      ['/f', '/f', '/h', '/c'].map((path) => [path, `Bearer ${value}`]),
    )
  })

  test('goes to no other host, port or scheme', async () => {
    const { say, server, place, seen, asked, counted } = await startHost()
    const port = place.split(':')[1]
    const header = [`authorization: Bearer ${placeholder}`]
    for (const target of [
      `http://b.test:${port}/`,
      `http://sub.a.test:${port}/`,
      `http://a.test.evil.test:${port}/`,
      'http://a.test/',
      `http://user:pass@${place}/`,
      `http://${place}@b.test/`,
      `http://b.test:${port}/?http://${place}/`,
      `ftp://${place}/`,
      `ws://${place}/`,
      `//${place}/`,
      'http://169.254.169.254/',
      `http://127.0.0.1:${port}/`,
      'http://[::1]/',
      'http:///',
      '/host/a.test/',
    ])
      expect([target, [400, 403].includes(statusOf(await say(get(target, header))))]).toEqual([target, true])
    const connectTo = `CONNECT ${place.replace('a.test', 'b.test')} HTTP/1.1\r\nhost: x\r\n\r\n`
    expect(statusOf(await say(connectTo))).toBe(403)
    expect([server.asked, seen, asked]).toEqual([0, [], []])
    expect((await counted()).every(({ decision }) => decision === 'refused')).toBe(true)
  })

  test.each([
    ['of another run', `authorization: Bearer brokered-${'c3'.repeat(20)}`, 'has no secret'],
    ['of another run in Basic', `authorization: ${basic(`x:brokered-${'c3'.repeat(20)}`)}`, 'has no secret'],
    ['for another host', `authorization: Bearer ${otherPlaceholder}`, 'OTHER is not for a.test'],
    ['of a value that cannot be opened', `authorization: Bearer brokered-${'d4'.repeat(20)}`, 'cannot be used'],
    ['in what hosts write down', `user-agent: ${placeholder}`, 'user-agent'],
    ['in what hosts store with a file', `content-type: ${placeholder}`, 'content-type'],
  ])('a placeholder %s is told as a mistake', async (_name, header, words) => {
    const { say, server } = await startHost({
      secrets: [
        {},
        { name: 'OTHER', placeholder: otherPlaceholder, value: 'other-value', hosts: new Set(['b.test']) },
        { name: 'LOST', placeholder: `brokered-${'d4'.repeat(20)}`, value: null },
      ],
    }).then((host) => ({ ...host, say: (more: string) => host.say(get(`${host.url}/`, [more])) }))
    const answer = await say(header)
    expect([statusOf(answer), answer.includes(words), answer.includes(value)]).toEqual([403, true, false])
    expect(server.asked).toBe(0)
  })

  test('is not put into an address', async () => {
    const { say, server, url } = await startHost()
    for (const path of [`/bot${placeholder}/x`, `/?token=${placeholder}`])
      expect(await say(get(`${url}${path}`))).toContain('into headers alone')
    expect(server.asked).toBe(0)
  })

  test.each([
    ['two lengths', ['content-length: 5', 'content-length: 6'], 'hello!'],
    ['a length and chunks', ['content-length: 5', 'transfer-encoding: chunked'], '0\r\n\r\n'],
    ['a bare line end', [`x-a: b\nauthorization: ${placeholder}`], ''],
    ['a folded header', ['x-a: b', ` ${placeholder}`], ''],
    ['a space before the colon', [`authorization : ${placeholder}`], ''],
    ['an upgrade', ['connection: upgrade', 'upgrade: websocket'], ''],
  ])('is not given to what smuggles by %s', async (_name, headers, body) => {
    const { open, server, url } = await startHost()
    const socket = await open()
    const said = textOf(socket)
    socket.end([`POST ${url}/ HTTP/1.1`, 'host: a.test', ...headers, '', body].join('\r\n'))
    expect([0, 400, 403]).toContain(statusOf(await said))
    expect(server.asked).toBe(0)
  })

  test('headers that a connection names stay on this side', async () => {
    const { say, seen, url } = await startHost()
    await say(get(`${url}/`, [`x-hop: ${placeholder}`]).replace('connection: close', 'connection: close, X-Hop'))
    expect(seen[0]?.headers).not.toHaveProperty('x-hop')
  })

  test.each(['TRACE', 'PROPFIND', 'LOCK'])('is not given to %s', async (method) => {
    const { say, server, url } = await startHost()
    expect(statusOf(await say(get(`${url}/`, [`x-a: ${placeholder}`]).replace('GET', method)))).toBe(403)
    expect(server.asked).toBe(0)
  })
})

describe('an answer that holds the value', () => {
  const forms: [string, string][] = [
    ['as it is', value],
    ['as JSON', JSON.stringify({ token: value })],
    ['in an address', encodeURIComponent(value)],
    ['in base64', Buffer.from(value).toString('base64')],
    ['in base64 of something longer', Buffer.from(`me:${value}`).toString('base64')],
    ['in hex', Buffer.from(value).toString('hex')],
  ]
  test.each(forms)('%s is cut off before', async (_name, told) => {
    const { say, url, counted } = await startHost({
      answer: (_request, response) => {
        response.write(`before ${told.slice(0, 9)}`)
        setImmediate(() => response.end(`${told.slice(9)} behind`))
      },
    })
    const answer = await say(get(`${url}/`, [`authorization: Bearer ${placeholder}`]))
    expect(answer).toContain('before ')
    for (const text of [told, 'behind', value]) expect(answer).not.toContain(text)
    expect(await counted()).toMatchObject([{ decision: 'failed' }])
  })

  test.each(forms)('%s in its head is not passed on', async (_name, told) => {
    const { say, url } = await startHost({
      answer: (_request, response) => response.setHeader('x-debug', told).end('x'),
    })
    const answer = await say(get(`${url}/`))
    expect([statusOf(answer), answer.includes(told)]).toEqual([502, false])
  })

  test('which another host was given is cut off, too', async () => {
    const { say, url } = await startHost({
      answer: (_request, response) => response.end('it was other-value-1'),
      secrets: [
        {},
        { name: 'OTHER', placeholder: otherPlaceholder, value: 'other-value-1', hosts: new Set(['b.test']) },
      ],
    })
    expect(await say(get(`${url}/`))).not.toContain('other-value-1')
  })

  test('packed is not passed on; what only begins like it is', async () => {
    const packed = await startHost({
      answer: (_request, response) => response.setHeader('content-encoding', 'gzip').end('x'),
    })
    expect(statusOf(await packed.say(get(`${packed.url}/`)))).toBe(502)
    const like = await startHost({ answer: (_request, response) => response.end(`end ${value.slice(0, -1)}`) })
    expect(await like.say(get(`${like.url}/`))).toContain(`end ${value.slice(0, -1)}`)
  })
})

describe('the broker', () => {
  test('follows no redirect; one within the host leads back to it, others are told as they are', async () => {
    const { say, url, place, server } = await startHost({
      answer: (request, response) =>
        response
          .writeHead(302, { location: request.url === '/own' ? `https://${place}/next?a=b` : 'https://b.test/stolen' })
          .end(),
    })
    const header = [`authorization: Bearer ${placeholder}`]
    expect(await say(get(`${url}/own`, header))).toContain(`location: ${url}/next?a=b\r\n`)
    expect(await say(get(`${url}/other`, header))).toContain('location: https://b.test/stolen\r\n')
    expect(server.asked).toBe(2)
  })

  test('tells who asks for TLS how the host is asked, and reads no TLS in place of it', async () => {
    const { say, counted } = await startHost({ secrets: [{ hosts: new Set(['a.test']) }] })
    const answer = await say('CONNECT a.test:443 HTTP/1.1\r\nhost: x\r\n\r\n')
    expect([statusOf(answer), answer.includes('Ask a.test by http://')]).toEqual([403, true])
    const hello = await say('CONNECT a.test:80 HTTP/1.1\r\nhost: x\r\n\r\n\x16\x03\x01\x02\x00')
    expect(hello).toContain('403 Forbidden')
    expect(await counted()).toEqual([
      { host: 'a.test', decision: 'refused', requests: 1 },
      { host: '-', decision: 'refused', requests: 1 },
    ])
  })

  test('lets a connection to a host lead to this host alone', async () => {
    const { say, seen, place, asked, server } = await startHost()
    const through = (request: string) => say(`CONNECT ${place} HTTP/1.1\r\nhost: x\r\n\r\n${request}`)
    expect(await through(get('/api/v1/agents', ['host: b.test']))).toContain('from the host')
    expect([seen[0]?.url, seen[0]?.headers['host'], asked]).toEqual(['/api/v1/agents', place, []])
    for (const target of ['http://b.test/', '@b.test/', '//b.test/'])
      expect(statusOf((await through(get(target))).replace(/^.*?\r\n\r\n/s, ''))).not.toBe(0)
    expect(seen.slice(1).every(({ headers }) => headers['host'] === place)).toBe(true)
    const asksAgain = await through(`CONNECT b.test:80 HTTP/1.1\r\nhost: x\r\n\r\n`)
    expect(asksAgain).toContain('403 Forbidden')
    expect(server.asked).toBe(seen.length)
  })

  test('waits for no slow headers, also in a connection to a host', async () => {
    const { open, place, server } = await startHost({ limits: { headerMs: 200 } })
    const socket = await open()
    const said = textOf(socket)
    socket.write(`CONNECT ${place} HTTP/1.1\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\nx-a: `)
    expect(await said).toMatch(/^HTTP\/1\.1 200 .*403 Forbidden/s)
    expect(server.asked).toBe(0)
  })

  test('has limits of size, of time and of requests at once', async () => {
    const waits: RequestListener = () => undefined
    const big = await startHost({ limits: { hosts: { sentBytes: 100 } } })
    expect(statusOf(await big.say(post(`${big.url}/`, 'x'.repeat(200))))).toBe(413)
    expect(big.server.asked).toBe(0)
    const long = await startHost({
      answer: (_request, response) => response.end('x'.repeat(5_000)),
      limits: { hosts: { answerBytes: 1_000 } },
    })
    await long.say(get(`${long.url}/`))
    expect(await long.counted()).toMatchObject([{ decision: 'failed' }])
    const slow = await startHost({ answer: waits, limits: { hosts: { timeMs: 150 } } })
    expect(statusOf(await slow.say(get(`${slow.url}/`)))).toBe(502)
    const few = await startHost({ answer: waits, limits: { hosts: { open: 1 } } })
    const first = await few.open()
    first.write(get(`${few.url}/`))
    await expect.poll(() => few.server.asked).toBe(1)
    expect(statusOf(await few.say(get(`${few.url}/`)))).toBe(429)
  })

  test('asks no address that is not public, and takes no certificate of others', async () => {
    const inside = await startBroker({
      permit: {
        egress: new Set(),
        model: null,
        repo: null,
        secrets: [{ name: 'A', placeholder, value, hosts: new Set(['named.test']) }],
      },
      outbound: { allowHosts: [], resolveHost: () => Promise.resolve(['93.184.216.34', '10.0.0.5']) },
    })
    const refused = await inside.say(get('http://named.test/', [`x-a: ${placeholder}`]))
    expect([statusOf(refused), refused.includes(value)]).toEqual([502, false])
    expect(await inside.counted()).toEqual([{ host: 'named.test', decision: 'refused', requests: 1 }])
    const { say, place, server } = await startHost()
    const wrong = place.replace('a.test', 'b.test')
    const other = await startBroker({
      permit: {
        egress: new Set(),
        model: null,
        repo: null,
        secrets: [{ name: 'A', placeholder, value, hosts: new Set([wrong]) }],
      },
      outbound: {
        allowHosts: ['b.test'],
        resolveHost: () => Promise.resolve(['127.0.0.1']),
        ca: testCertificate().cert,
      },
    })
    expect(statusOf(await other.say(get(`http://${wrong}/`, [`x-a: ${placeholder}`])))).toBe(502)
    expect(server.asked).toBe(0)
    expect(statusOf(await say(get(`http://${place}/`)))).toBe(200)
  })

  test('refuses values that are too long together to be found in answers', async () => {
    const many = Array.from({ length: 9 }, (_, n) => ({ name: `S${n}`, value: `${n}`.repeat(4_000) }))
    const { say, url, server } = await startHost({ secrets: many })
    expect(statusOf(await say(get(`${url}/`)))).toBe(403)
    expect(server.asked).toBe(0)
  })
})
