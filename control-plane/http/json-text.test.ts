import { once } from 'node:events'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type Koa from 'koa'
import { afterEach, expect, test } from 'vitest'
import { woundWorld } from '../../test/kit/wound-world.ts'
import { JsonText, sendText, textLimits } from './json-text.ts'

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

/** Serves the text once, over a real connection, and asks for it. */
async function asked(
  source: AsyncGenerator<string>,
  {
    mayRead = () => Promise.resolve(true),
    keep = () => Promise.resolve(),
  }: { mayRead?: () => Promise<boolean>; keep?: (body: string | null) => Promise<void> } = {},
) {
  const world = woundWorld()
  const { promise: sent, resolve, reject } = Promise.withResolvers<void>()
  const server = createServer((_request, res) => {
    const gone = new AbortController()
    res.once('close', () => gone.abort())
    const options = { world, signal: gone.signal, headers: ['X-Kept', 'yes'], mayRead, keep }
    sendText({ res } as Koa.Context, new JsonText('text', source, mayRead), options).then(resolve, (error: unknown) => {
      res.destroy()
      reject(error)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const request = get({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', agent: false })
  request.on('error', () => undefined)
  ends.push(() => {
    request.destroy()
    server.close()
  })
  return { world, sent, request }
}

async function read(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/** Pieces that have no end. `seen`: how many were asked for, and whether it was ended. */
async function* endless(seen: { pieces: number; isOver: boolean }): AsyncGenerator<string> {
  try {
    for (;;) {
      seen.pieces++
      yield 'x'.repeat(64 * 1024)
    }
  } finally {
    seen.isOver = true
  }
}

test('the pieces are one text within an object of JSON, whatever is in them', async () => {
  const pieces = ['a "b"\n', '', 'ü 😀 \u2028\\', '\u0000']
  async function* source() {
    yield* pieces
  }
  const { request } = await asked(source())
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  expect([response.headers['content-type'], response.headers['x-kept'], response.headers['content-length']]).toEqual([
    'application/json; charset=utf-8',
    'yes',
    undefined,
  ])
  expect(JSON.parse(await read(response))).toEqual({ text: pieces.join('') })
})

test('what fails before the first piece is told to the caller, and what fails later cuts the answer off', async () => {
  async function* failing(pieces: number): AsyncGenerator<string> {
    for (let n = 0; n < pieces; n++) yield 'x'
    throw new Error('no more')
  }
  const early = await asked(failing(0))
  await expect(early.sent).rejects.toThrow('no more')
  const late = await asked(failing(2))
  late.sent.catch(() => undefined)
  const [response] = (await once(late.request, 'response')) as [IncomingMessage]
  await expect(read(response)).rejects.toThrow('aborted')
})

test('a small answer is kept before its end is sent, a large one or one that breaks off is not', async () => {
  async function* source(pieces: number): AsyncGenerator<string> {
    for (let n = 0; n < pieces; n++) yield 'x'.repeat(1_000)
  }
  const kept: (string | null)[] = []
  const keep = (body: string | null) => Promise.resolve(void kept.push(body))
  for (const pieces of [2, 300]) {
    const { request, sent } = await asked(source(pieces), { keep })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    const whole = await read(response)
    expect(kept.at(-1)).toBe(pieces === 2 ? whole : null)
    await sent
  }
  const seen = { pieces: 0, isOver: false }
  const gone = await asked(endless(seen), { keep })
  await once(gone.request, 'response')
  gone.request.destroy()
  await gone.sent
  const refused = await asked(source(2), { keep: () => Promise.reject(new Error('no room')) })
  const [response] = (await once(refused.request, 'response')) as [IncomingMessage]
  await expect(Promise.all([read(response), refused.sent])).rejects.toThrow(/aborted|no room/)
  expect([kept.length, kept[2]]).toEqual([3, null])
})

test('a reader that takes nothing holds a bounded memory, and is cut off after a while', async () => {
  const seen = { pieces: 0, isOver: false }
  const { world, sent, request } = await asked(endless(seen))
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.pause()
  // The timer of the stall is the one that was not there from the beginning.
  await expect.poll(() => world.timerCount).toBe(3)
  const { pieces } = seen
  await new Promise((resolve) => setImmediate(resolve))
  expect(seen).toEqual({ pieces, isOver: false })
  world.advance(textLimits.stallMs)
  await sent
  expect(seen.isOver).toBe(true)
})

test('one that takes it slowly is cut off when its time as a whole is over', async () => {
  const seen = { pieces: 0, isOver: false }
  const { world, sent, request } = await asked(endless(seen))
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.resume()
  world.advance(textLimits.totalMs)
  await sent
  expect(seen.isOver).toBe(true)
})

test('one that goes away, or may not read it any more, ends the source', async () => {
  const seen = { pieces: 0, isOver: false }
  const gone = await asked(endless(seen))
  await once(gone.request, 'response')
  gone.request.destroy()
  await gone.sent
  expect(seen.isOver).toBe(true)
  const other = { pieces: 0, isOver: false }
  const refused = await asked(endless(other), { mayRead: () => Promise.resolve(false) })
  const [response] = (await once(refused.request, 'response')) as [IncomingMessage]
  response.on('error', () => undefined).resume()
  refused.world.advance(textLimits.checkMs)
  await refused.sent
  expect(other.isOver).toBe(true)
})
