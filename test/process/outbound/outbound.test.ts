import { execFile } from 'node:child_process'
import { createServer, type AddressInfo } from 'node:net'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import { createOutbound, type OutboundOptions } from '../../../control-plane/outbound/outbound.ts'
import type { OutboundReason } from '../../../control-plane/outbound/outbound-error.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { testCertificate, startServer, type TestServerOptions } from '../../kit/hostile-server.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => void (await Promise.all(ends.splice(0).map((end) => end()))))

async function serve(answer: RequestListener, options?: TestServerOptions) {
  const server = await startServer(answer, options)
  ends.push(() => server.close())
  return server
}

/** DNS in which every name means this machine, unless it is told otherwise. */
const here = () => Promise.resolve(['127.0.0.1'])
const door = (options: Partial<OutboundOptions> = {}) =>
  createOutbound({ allowHosts: ['a.test', 'b.test'], world: realWorld, resolveHost: here, ...options })

const refusedAs = (reason: OutboundReason) => expect.objectContaining({ name: 'OutboundError', reason })

describe('addresses', () => {
  it.each([
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://0x7f.0.0.1/',
    'https://0177.0.0.1/',
    'https://127.1/',
    'https://127.0.0.1./',
    'https://0.0.0.0/',
    'https://[::1]/',
    'https://[::ffff:10.0.0.1]/',
    'https://[64:ff9b::169.254.169.254]/',
    'https://169.254.169.254/latest/meta-data',
    'https://１２７.0.0.1/',
    'https://me:hush@example.com/',
    'https://me@a.test/',
    'https://inside.test/',
    'https://inside.test./',
    'https://a*b.test/',
    'https://a,b.test/',
    'nonsense',
  ])('refuses %s', (url) => expect(door().fetch(url)).rejects.toEqual(refusedAs('refused_address')))

  it.each(['http://example.com/', 'ftp://a.test/', 'file:///etc/passwd', 'http://127.0.0.1/', 'data:,hello'])(
    'refuses %s, which is not https',
    (url) => expect(door().fetch(url)).rejects.toEqual(refusedAs('not_https')),
  )

  it('refuses a name of which one address among others is private', () => {
    const mixed = door({ resolveHost: () => Promise.resolve(['93.184.216.34', '10.0.0.1']) })
    return expect(mixed.fetch('https://mixed.test/')).rejects.toEqual(refusedAs('refused_address'))
  })

  it('says that a name has no address, or that DNS does not know', async () => {
    const empty = door({ resolveHost: () => Promise.resolve([]) })
    await expect(empty.fetch('https://a.test/')).rejects.toEqual(refusedAs('unresolvable'))
    const failing = door({ resolveHost: () => Promise.reject(new Error('SERVFAIL')) })
    await expect(failing.fetch('https://a.test/')).rejects.toEqual(refusedAs('unresolvable'))
  })

  it('resolves a name once, and goes where it said then', async () => {
    const right = await serve((_, response) => response.end('right'))
    const answers = [['127.0.0.1'], ['127.0.0.2']]
    const asked: string[] = []
    const resolveHost = (host: string) => Promise.resolve(answers[asked.push(host) - 1] ?? [])
    const answer = await door({ resolveHost }).fetch(`http://a.test:${right.port}/`)
    expect(await answer.text()).toBe('right')
    expect(asked).toEqual(['a.test'])
  })

  it('gives a program the addresses that were checked', async () => {
    const open = door({ resolveHost: () => Promise.resolve(['93.184.216.34', '2606:4700::1']) })
    expect(await open.resolve(new URL('https://git.example.com./x.git'))).toMatchObject({
      host: 'git.example.com',
      port: 443,
      addresses: ['93.184.216.34', '2606:4700::1'],
    })
    await expect(door().resolve(new URL('https://git.example.com/'))).rejects.toEqual(refusedAs('refused_address'))
  })

  it('knows private names only where the operator allows them', async () => {
    const real = createOutbound({ allowHosts: ['localhost'], world: realWorld })
    const server = await serve((_, response) => response.end('here'), { host: '127.0.0.1' })
    expect(await (await real.fetch(`http://localhost:${server.port}/`)).text()).toBe('here')
  })
})

describe('TLS', () => {
  const certificate = testCertificate()

  it('is checked against the name that was asked, not the address', async () => {
    const server = await serve((request, response) => response.end(request.headers.host), { tls: certificate })
    const trusting = door({ ca: certificate.cert })
    expect(await (await trusting.fetch(`https://a.test:${server.port}/`)).text()).toBe(`a.test:${server.port}`)
    await expect(trusting.fetch(`https://b.test:${server.port}/`)).rejects.toEqual(refusedAs('unreachable'))
    await expect(door().fetch(`https://a.test:${server.port}/`)).rejects.toEqual(refusedAs('unreachable'))
    expect(server.asked).toBe(1)
  })

  it('is not left by a redirect', async () => {
    const plain = await serve((_, response) => response.end())
    const server = await serve(
      (_, response) => response.writeHead(302, { location: `http://b.test:${plain.port}/` }).end(),
      { tls: certificate },
    )
    const trusting = door({ ca: certificate.cert })
    await expect(trusting.fetch(`https://a.test:${server.port}/`)).rejects.toEqual(refusedAs('not_https'))
    expect(plain.asked).toBe(0)
  })
})

describe('redirects', () => {
  const sendingTo = (location: string, status = 302) =>
    serve((_, response) => response.writeHead(status, { location }).end())

  it.each([
    ['https://127.0.0.1:1/', 'refused_address'],
    ['https://169.254.169.254/', 'refused_address'],
    ['https://inside.test/', 'refused_address'],
    ['https://me:hush@b.test/', 'refused_address'],
    ['http://[', 'refused_address'],
    ['http://127.0.0.1:1/', 'not_https'],
    ['file:///etc/passwd', 'not_https'],
  ] as const)('are checked like the first address: %s', async (location, reason) => {
    const server = await sendingTo(location)
    await expect(door().fetch(`http://a.test:${server.port}/`)).rejects.toEqual(refusedAs(reason))
  })

  it('end when they go in a circle', async () => {
    const server = await sendingTo('/again')
    await expect(door().fetch(`http://a.test:${server.port}/`)).rejects.toEqual(refusedAs('too_many_redirects'))
    expect(server.asked).toBe(6)
  })

  it('carry to another origin nothing that may be a credential', async () => {
    const seen: unknown[] = []
    const other = await serve((request, response) => response.end(void seen.push(request.headers)))
    const server = await serve((request, response) => {
      if (request.url === '/first') return response.writeHead(301, { location: '/second' }).end()
      seen.push(request.headers)
      return response.writeHead(301, { location: `http://b.test:${other.port}/` }).end()
    })
    const headers = { authorization: 'Bearer hush', cookie: 'a=b', 'x-api-key': 'hush', accept: 'text/plain' }
    const answer = await door().fetch(`http://a.test:${server.port}/first`, { headers })
    expect([answer.redirected, answer.url]).toEqual([true, `http://b.test:${other.port}/`])
    expect(seen[0]).toMatchObject(headers)
    expect(Object.keys(seen[1] as object).toSorted()).toEqual([
      'accept',
      'accept-encoding',
      'connection',
      'host',
      'user-agent',
    ])
  })

  it('carry no body to another origin', async () => {
    const other = await serve((_, response) => response.end())
    const server = await sendingTo(`http://b.test:${other.port}/`, 307)
    const post = { method: 'POST', body: new URLSearchParams({ client_secret: 'hush' }) }
    await expect(door().fetch(`http://a.test:${server.port}/`, post)).rejects.toEqual(refusedAs('refused_address'))
    expect(other.asked).toBe(0)
  })

  it('of a POST become a GET, or send it again, as the Fetch standard has it', async () => {
    const server = await serve((request, response) => {
      if (request.url === '/302') response.writeHead(302, { location: '/end' }).end()
      else if (request.url === '/307') response.writeHead(307, { location: '/end' }).end()
      else {
        const said = `${request.method} ${request.headers['content-type'] ?? '-'}`
        void text(request).then((body) => response.end(`${said} ${body}`))
      }
    })
    const post = { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } }
    const asked = (path: string) => door().fetch(`http://a.test:${server.port}${path}`, post)
    expect(await (await asked('/302')).text()).toBe('GET - ')
    expect(await (await asked('/307')).text()).toBe('POST application/json {}')
  })

  it('are handed over, or refused, where the caller says so', async () => {
    const server = await sendingTo('https://127.0.0.1/')
    const url = `http://a.test:${server.port}/`
    const answer = await door().fetch(url, { redirect: 'manual' })
    expect([answer.status, answer.headers.get('location')]).toEqual([302, 'https://127.0.0.1/'])
    await expect(door().fetch(url, { redirect: 'error' })).rejects.toMatchObject({ name: 'OutboundError' })
  })
})

describe('limits', () => {
  const bytes = 1_000

  it('end an endless body, and its connection', async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    const server = await serve((_, response) => {
      response.once('close', resolve)
      const more = () => void (response.writable && response.write(Buffer.alloc(64 * 1024), more))
      more()
    })
    const answer = await door().fetch(`http://a.test:${server.port}/`, { limits: { bytes } })
    await expect(answer.text()).rejects.toEqual(refusedAs('too_large'))
    await closed
  })

  it('end endless headers', async () => {
    const raw = createServer((socket) => {
      socket.on('error', () => {})
      socket.write('HTTP/1.1 200 OK\r\n')
      const more = () => void (socket.writable && socket.write(`x-more: ${'x'.repeat(1_000)}\r\n`, more))
      more()
    })
    await new Promise<void>((resolve) => raw.listen(0, '127.0.0.1', resolve))
    ends.push(() => new Promise((resolve) => void raw.close(() => resolve())))
    const { port } = raw.address() as AddressInfo
    await expect(door().fetch(`http://a.test:${port}/`)).rejects.toEqual(refusedAs('too_large'))
  })

  it('end a server that never answers, one that trickles, and DNS that hangs', async () => {
    const limits = { timeoutMs: 200 }
    const silent = await serve(() => {})
    await expect(door().fetch(`http://a.test:${silent.port}/`, { limits })).rejects.toEqual(refusedAs('timed_out'))
    const trickling = await serve((_, response) => {
      const timer = setInterval(() => response.write('x'), 10)
      response.once('close', () => clearInterval(timer))
    })
    const answer = await door().fetch(`http://a.test:${trickling.port}/`, { limits })
    await expect(answer.text()).rejects.toEqual(refusedAs('timed_out'))
    const hanging = door({ resolveHost: () => new Promise(() => {}) })
    await expect(hanging.fetch('https://c.test/', { limits })).rejects.toEqual(refusedAs('timed_out'))
  })

  it('refuse a packed body that nobody asked for', async () => {
    const server = await serve((request, response) => {
      expect(request.headers['accept-encoding']).toBe('identity')
      response.writeHead(200, { 'content-encoding': 'gzip' }).end('bomb')
    })
    const asked = door().fetch(`http://a.test:${server.port}/`, { headers: { 'accept-encoding': 'gzip' } })
    await expect(asked).rejects.toEqual(refusedAs('unreachable'))
  })

  it('do not hold a body back, nor read ahead without end', async () => {
    const { promise: second, resolve: sendSecond } = Promise.withResolvers<void>()
    const server = await serve((_, response) => {
      response.write('first')
      void second.then(() => response.end('second'))
    })
    const answer = await door().fetch(`http://a.test:${server.port}/`)
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
    expect((await reader.read()).value).toBe('first')
    sendSecond()
    expect((await reader.read()).value).toBe('second')
    expect((await reader.read()).done).toBe(true)
  })

  it('tell an answer that breaks off from one that ends', async () => {
    const server = await serve((_, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('half', () => response.socket?.destroy())
    })
    const answer = await door().fetch(`http://a.test:${server.port}/`)
    await expect(answer.text()).rejects.toEqual(refusedAs('unreachable'))
    await expect(door().fetch(`http://a.test:1/`)).rejects.toEqual(refusedAs('unreachable'))
  })

  it('leave with the caller, before the answer and in its midst', async () => {
    const closed: Promise<void>[] = []
    const server = await serve((request, response) => {
      closed.push(new Promise((resolve) => response.once('close', resolve)))
      if (request.url === '/body') response.write('first')
    })
    const before = new AbortController()
    const asked = door().fetch(`http://a.test:${server.port}/`, { signal: before.signal })
    before.abort(new Error('left'))
    await expect(asked).rejects.toThrow('left')
    const midst = new AbortController()
    const answer = await door().fetch(`http://a.test:${server.port}/body`, { signal: midst.signal })
    midst.abort(new Error('left'))
    await expect(answer.text()).rejects.toThrow('left')
    const cancelled = await door().fetch(`http://a.test:${server.port}/body`)
    await cancelled.body?.cancel()
    await Promise.all(closed)
  })

  it('give answers without a body', async () => {
    const server = await serve((_, response) => response.writeHead(204, { 'set-cookie': ['a=1', 'b=2'] }).end())
    const answer = await door().fetch(`http://a.test:${server.port}/`)
    expect([answer.status, answer.body, answer.headers.getSetCookie()]).toEqual([204, null, ['a=1', 'b=2']])
  })
})

it('uses no proxy that the environment names', async () => {
  const proxy = await serve((_, response) => response.end('proxy'))
  const server = await serve((_, response) => response.end('server'))
  const program = `
    import { createOutbound } from ${JSON.stringify(join(import.meta.dirname, '../../../control-plane/outbound/outbound.ts'))}
    import { realWorld } from ${JSON.stringify(join(import.meta.dirname, '../../../shared/lib/world.ts'))}
    const { fetch } = createOutbound({ allowHosts: ['a.test'], world: realWorld, resolveHost: async () => ['127.0.0.1'] })
    console.log(await (await fetch('http://a.test:${server.port}/')).text())`
  const http = `http://127.0.0.1:${proxy.port}`
  const env = { ...process.env, NODE_USE_ENV_PROXY: '1', http_proxy: http, https_proxy: http, HTTP_PROXY: http }
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  execFile(process.execPath, ['--input-type=module', '-e', program], { env }, (error, out) =>
    error === null ? resolve(out.trim()) : reject(error),
  )
  expect(await promise).toBe('server')
  expect(proxy.asked).toBe(0)
})
