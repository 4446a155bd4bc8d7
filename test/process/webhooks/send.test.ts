import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, expect, test } from 'vitest'
import { createOutbound, type Outbound, type OutboundOptions } from '../../../control-plane/outbound/outbound.ts'
import { untried, type ClaimedDelivery } from '../../../control-plane/resources/webhooks/delivery-store.ts'
import { sendDelivery } from '../../../control-plane/webhooks/send.ts'
import { idFrom } from '../../../shared/lib/ids.ts'
import { realWorld, type World } from '../../../shared/lib/world.ts'

// One attempt at receivers that do what they should not.

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function serve(answer: RequestListener): Promise<number> {
  const server = createServer((request, response) => {
    response.on('error', () => undefined)
    answer(request, response)
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

const delivery: ClaimedDelivery = {
  ...untried,
  id: idFrom('whd_0000000000000000'),
  webhookId: idFrom('whk_0000000000000000'),
  workspaceId: idFrom('00000000-0000-4000-8000-000000000000'),
  eventId: 'evt_1',
  eventType: 'ping',
  payload: '{}',
  dueAt: 1,
  createdAt: 1,
}

const allowed = { allowHosts: ['127.0.0.1', 'hooks.test'] }
const { signal: leaving } = new AbortController()
const here = () => Promise.resolve(['127.0.0.1'])
async function send(url: string, options: Partial<OutboundOptions> = allowed, world: World = realWorld) {
  const outbound = createOutbound({ allowHosts: [], world: realWorld, resolveHost: here, ...options })
  return (await sendDelivery(delivery, { url, secrets: ['whsec_1'] }, { outbound, world, leaving }))!
}

test('one that hangs is left when the time is over', async () => {
  const asked = Promise.withResolvers<void>()
  const port = await serve(() => asked.resolve())
  let end = () => {}
  // The time is over when the test says so.
  const world: World = { ...realWorld, after: (_, fn) => ((end = fn), () => {}) }
  const sent = send(`http://127.0.0.1:${port}/`, allowed, world)
  await asked.promise
  end()
  expect((await sent).end).toEqual({ trouble: 'No answer came within 10 s.' })
})

test('one that begins an answer and never ends it has taken the delivery', async () => {
  const port = await serve((_, response) => void response.writeHead(200).write('beginning'))
  let end = () => {}
  const world: World = { ...realWorld, after: (_, fn) => ((end = fn), () => {}) }
  const outbound = createOutbound({ ...allowed, world: realWorld })
  const isOverOnceBegun: Pick<Outbound, 'send'> = {
    async send(...sent) {
      const answer = await outbound.send(...sent)
      answer.once('data', () => setImmediate(end))
      return answer.pause()
    },
  }
  const to = { url: `http://127.0.0.1:${port}/`, secrets: ['whsec_1'] }
  const sent = await sendDelivery(delivery, to, { outbound: isOverOnceBegun, world, leaving })
  expect(sent).toMatchObject({ end: { status: 200 }, responseBody: 'beginning' })
})

test('one that is left because the server stops has not failed', async () => {
  const asked = Promise.withResolvers<void>()
  const port = await serve(() => asked.resolve())
  const stopping = new AbortController()
  const to = { url: `http://127.0.0.1:${port}/`, secrets: ['whsec_1'] }
  const outbound = createOutbound({ ...allowed, world: realWorld })
  const sent = sendDelivery(delivery, to, { outbound, world: realWorld, leaving: stopping.signal })
  await asked.promise
  stopping.abort()
  expect(await sent).toBeNull()
  expect(await sendDelivery(delivery, to, { outbound, world: realWorld, leaving: stopping.signal })).toBeNull()
})

test('an answer without end is read for its first bytes alone', async () => {
  let written = 0
  const port = await serve((_, response) => {
    response.writeHead(200)
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536))) written += 65_536
    }
    response.on('drain', more)
    more()
  })
  const { end, responseBody } = await send(`http://127.0.0.1:${port}/`)
  expect(end).toEqual({ status: 200 })
  expect(responseBody).toBe('x'.repeat(1024))
  expect(written).toBeLessThan(32 * 1024 * 1024)
})

test('a packed answer counts by its status, and one that breaks off in its head does not', async () => {
  const packed = await serve((_, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('x'.repeat(9_000_000)))
  })
  expect((await send(`http://127.0.0.1:${packed}/`)).end).toEqual({ status: 200 })
  const broken = await serve((request) => void request.socket.destroy())
  expect((await send(`http://127.0.0.1:${broken}/`)).end).toEqual({ trouble: expect.stringContaining('broke off') })
  expect((await send('http://127.0.0.1:1/')).end).toEqual({ trouble: expect.stringContaining('could not be reached') })
})

test('a name that turns private is not asked, nor is an address without TLS', async () => {
  let asked = 0
  const port = await serve((_, response) => {
    asked++
    response.end()
  })
  let addresses = ['93.184.216.34']
  const rebinding = { allowHosts: [], resolveHost: () => Promise.resolve(addresses) }
  // As it was when the webhook was made.
  await createOutbound({ ...rebinding, world: realWorld }).resolve(new URL('https://rebinding.test/'))
  addresses = ['127.0.0.1']
  expect((await send(`https://rebinding.test:${port}/`, rebinding)).end).toEqual({
    trouble: 'rebinding.test is not in the public internet',
  })
  expect((await send(`http://hooks.example:${port}/`, rebinding)).end).toEqual({
    trouble: 'the address must begin with https://',
  })
  expect(asked).toBe(0)
})
