import { createServer, type AddressInfo, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { networkLimits } from '../../../shared/runs/network.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { get, key, nothing, post, startBroker, startProvider, statusOf, textOf } from './broker-kit.ts'

/** A host that says what it is told, and how often it was reached. */
async function startHost() {
  const reached = { times: 0 }
  const server = createServer((socket: Socket) => {
    reached.times++
    socket.on('error', () => undefined)
    socket.pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { port: (server.address() as AddressInfo).port, reached }
}

const connectTo = (authority: string): string => `CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n\r\n`

describe('what a sandbox sends to its broker', () => {
  test('reaches the API of this server in the plain form alone', async () => {
    const { say, asked, counted } = await startBroker({ permit: nothing })
    expect(await say(get('/api/v1/agents'))).toContain('the API')
    for (const target of ['/', '/metrics', '/readyz', '//api/v1', '/apix', 'http://127.0.0.1/api/v1/agents', '*'])
      expect([400, 403]).toContain(statusOf(await say(get(target))))
    expect(asked).toEqual(['GET /api/v1/agents'])
    expect(await counted()).toContainEqual({ host: 'svc', decision: 'allowed', requests: 1 })
  })

  test.each(['http://example.com/', 'https://example.com/', 'http://169.254.169.254/latest/meta-data', 'ftp://x/'])(
    'reaches nothing by the absolute form %s',
    async (target) => {
      const { say, counted } = await startBroker({
        permit: { egress: new Set(['example.com']), model: null, repo: null, secrets: [] },
      })
      expect(statusOf(await say(get(target)))).toBe(403)
      expect(await counted()).toMatchObject([{ decision: 'refused', requests: 1 }])
    },
  )

  test.each([
    ['both lengths', 'content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n'],
    ['two lengths', 'content-length: 0\r\ncontent-length: 60\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n'],
    ['an encoding that is none', 'transfer-encoding: xchunked\r\n\r\n0\r\n\r\n'],
    ['a blank before the colon', 'content-length : 5\r\n\r\nhello'],
    ['a folded line', 'x-a: b\r\n content-length: 5\r\n\r\n'],
    ['a bare return', 'x-a: b\rx-api-key: c\r\n\r\n'],
    ['a zero byte', 'x-a: b\0c\r\n\r\n'],
    ['a chunk of no size', 'transfer-encoding: chunked\r\n\r\n-1\r\n\r\n'],
  ])('is not understood in two ways: %s', async (_name, rest) => {
    const { permit, server } = await startProvider((_request, response) => response.end())
    const { say } = await startBroker({ permit })
    const answer = await say(`POST /model/anthropic/v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${rest}`)
    expect([0, 400, 403, 502]).toContain(statusOf(answer))
    expect(answer).not.toContain('200 OK')
    // A chunk comes behind a head that is in order.
    expect(server.asked).toBeLessThanOrEqual(rest.includes('-1') ? 1 : 0)
  })

  test('puts no header behind a value', async () => {
    const { permit } = await startProvider((request, response) =>
      response.end(JSON.stringify(Object.keys(request.headers))),
    )
    const { say } = await startBroker({ permit })
    const answer = await say(post('/model/anthropic/v1/messages', '{}', ['user-agent: a%0d%0ax-evil: 1']))
    expect(answer).not.toContain('"x-evil"')
  })

  test('ends where its head does not come', async () => {
    const { open } = await startBroker({ permit: nothing, limits: { headerMs: 200 } })
    const socket = await open()
    const ended = textOf(socket)
    socket.write('GET /api/v1/agents HTTP/1.1\r\nhost: x\r\nx-slow: ')
    expect(statusOf(await ended)).toBe(403)
  })

  test('ends where its head is too long', async () => {
    const { say, asked } = await startBroker({ permit: nothing })
    expect([0, 403]).toContain(statusOf(await say(get('/api/v1/agents', [`x-long: ${'x'.repeat(40_000)}`]))))
    expect(asked).toEqual([])
  })

  test('makes up names of hosts without filling what is told of its run', async () => {
    // Between two writes: what is written down has its limit in the store.
    const world = { ...realWorld, after: () => () => undefined }
    const { say, counted } = await startBroker({ permit: nothing, world })
    for (let n = 0; n < networkLimits.hosts + 20; n++) await say(connectTo(`h${n}.example:443`))
    const rows = await counted()
    expect(rows.length).toBeLessThanOrEqual(networkLimits.hosts + 1)
    expect(rows.reduce((sum, { requests }) => sum + requests, 0)).toBe(networkLimits.hosts + 20)
  })
})

describe('a connection through the broker', () => {
  test('reaches a host of the workspace, both ways, with nothing added', async () => {
    const { port, reached } = await startHost()
    const { open, counted } = await startBroker({
      permit: { egress: new Set(['127.0.0.1']), model: null, repo: null, secrets: [] },
    })
    const socket = await open()
    const said = textOf(socket)
    socket.end(`${connectTo(`127.0.0.1:${port}`)}hello with the-broker-adds-the-key`)
    const answer = await said
    expect(statusOf(answer)).toBe(200)
    expect(answer.slice(answer.indexOf('\r\n\r\n') + 4)).toBe('hello with the-broker-adds-the-key')
    expect(answer).not.toContain(key)
    expect(reached.times).toBe(1)
    expect(await counted()).toEqual([{ host: '127.0.0.1', decision: 'allowed', requests: 1 }])
  })

  test.each([
    '127.0.0.2:443',
    'other.test:443',
    'evil.named.test:443',
    'named.test.evil:443',
    'named.test',
    'named.test:0',
    'named.test:99999',
    'named.test:443:443',
    'named.test:443/x',
    'http://named.test:443',
    'x@named.test:443',
    '[::1]:443',
    '0x7f.0.0.1:443',
    '2130706433:443',
    '*:443',
  ])('is refused to %s', async (authority) => {
    const { say, counted } = await startBroker({
      permit: { egress: new Set(['named.test']), model: null, repo: null, secrets: [] },
    })
    expect([0, 400, 403]).toContain(statusOf(await say(connectTo(authority))))
    const rows = await counted()
    expect(rows.every(({ decision }) => decision === 'refused')).toBe(true)
  })

  test.each(['127.0.0.1', '10.0.0.5', '169.254.169.254', '::1', 'fd00::1', '64:ff9b::a9fe:a9fe', '168.63.129.16'])(
    'is refused to a name that means %s',
    async (address) => {
      const { say, counted } = await startBroker({
        permit: { egress: new Set(['named.test']), model: null, repo: null, secrets: [] },
        outbound: { allowHosts: [], resolveHost: () => Promise.resolve(['93.184.216.34', address]) },
      })
      expect(statusOf(await say(connectTo('named.test:443')))).toBe(403)
      expect(await counted()).toEqual([{ host: 'named.test', decision: 'refused', requests: 1 }])
    },
  )

  test('is refused to another port than that of TLS, unless the operator allows the host', async () => {
    const { say } = await startBroker({
      permit: { egress: new Set(['named.test']), model: null, repo: null, secrets: [] },
      outbound: { allowHosts: [], resolveHost: () => Promise.resolve(['93.184.216.34']) },
    })
    expect(statusOf(await say(connectTo('named.test:25')))).toBe(403)
  })

  test('goes to the address that was checked, though DNS says another one by then', async () => {
    const { port, reached } = await startHost()
    let times = 0
    const resolveHost = () => Promise.resolve(times++ === 0 ? ['127.0.0.1'] : ['192.0.2.1'])
    const { open } = await startBroker({
      permit: { egress: new Set(['named.test']), model: null, repo: null, secrets: [] },
      outbound: { allowHosts: ['named.test'], resolveHost },
    })
    const socket = await open()
    const said = textOf(socket)
    socket.end(`${connectTo(`named.test:${port}`)}x`)
    expect(statusOf(await said)).toBe(200)
    expect([times, reached.times]).toEqual([1, 1])
  })

  test('ends at its limits of bytes, of silence and of time, and there are so many at once', async () => {
    const { port } = await startHost()
    const permit = { egress: new Set(['127.0.0.1']), model: null, repo: null, secrets: [] }
    const flooded = await startBroker({ permit, limits: { tunnels: { bytes: 1_000 } } })
    await flooded.say(`${connectTo(`127.0.0.1:${port}`)}${'x'.repeat(5_000)}`)
    expect(await flooded.counted()).toMatchObject([{ decision: 'failed' }])
    for (const tunnels of [{ idleMs: 150 }, { timeMs: 150 }]) {
      const { say, counted } = await startBroker({ permit, limits: { tunnels } })
      await say(connectTo(`127.0.0.1:${port}`))
      expect(await counted()).toMatchObject([{ decision: 'failed' }])
    }
    const few = await startBroker({ permit, limits: { tunnels: { open: 1 } } })
    const first = await few.open()
    first.write(connectTo(`127.0.0.1:${port}`))
    await new Promise((resolve) => first.once('data', resolve))
    expect(statusOf(await few.say(connectTo(`127.0.0.1:${port}`)))).toBe(429)
    // Whatever is open, and whoever does not hang up, a broker ends.
    const deaf = await few.open()
    deaf.write(connectTo('other.test:443'))
    await new Promise((resolve) => deaf.once('data', resolve))
    await few.open()
    await few.broker.close()
  })
})
