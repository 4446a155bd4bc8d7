import { request } from 'node:http'
import { connect } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call, codeOf, refusal, startServer, type TestServer } from './server.ts'
import { makeThings } from './things.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ routes: makeThings() })
})
afterAll(() => server.close())

const run = 'run_3nB7cW1yHsD5jK9q'

const create = (options: Parameters<typeof call>[2]) => call(server, '/things', { method: 'POST', ...options })

test('an empty body is an empty object; unknown keys are ignored where they are not refused', async () => {
  expect((await create({})).body).toEqual({ body: {} })
  expect((await create({ body: { name: 'a', other: 1 } })).body).toEqual({ body: { name: 'a' } })
  const strict = await call(server, `/things/${run}`, { method: 'PATCH', body: { maxSize: 3, size: 11 } })
  expect([strict.status, codeOf(strict)]).toEqual([400, 'validation_error'])
  const paths = strict.body.error.details.fields.map((field: { path: string }) => field.path)
  expect(paths.sort()).toEqual(['maxSize', 'size'])
  expect(await refusal(server, '/things', { body: { model: 'x' } })).toEqual([400, 'config_write_forbidden'])
})

test('bodies that are not JSON, or that cannot be stored, are refused', async () => {
  const deep = '['.repeat(5000) + ']'.repeat(5000)
  const raws: (string | Uint8Array)[] = [
    '{',
    'null garbage',
    '{"name":"\\u0000"}',
    '{"na\\u0000me":"x"}',
    '{"data":["\\ud800"]}',
    '{"__proto__":{"name":"x"}}',
    `{"data":${deep.slice(0, 4000)}`,
    '{"data":' + '['.repeat(200) + ']'.repeat(200) + '}',
    new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]),
    '[]',
    '"text"',
    '1',
    'null',
  ]
  for (const raw of raws) {
    const reply = await create({ raw })
    expect(reply.body.error.param).not.toBe('')
    expect([String(raw).slice(0, 30), reply.status, codeOf(reply)]).toEqual([
      String(raw).slice(0, 30),
      400,
      'validation_error',
    ])
  }
  const form = await create({ raw: 'a=1', headers: { 'content-type': 'application/x-www-form-urlencoded' } })
  expect([form.status, codeOf(form), form.body.error.param]).toEqual([400, 'validation_error', 'Content-Type'])
  const vendor = await create({ raw: '{}', headers: { 'content-type': 'application/merge-patch+json; charset=utf-8' } })
  expect(vendor.status).toBe(201)
})

test('packed bodies are read, and what is not packed as it says is refused', async () => {
  const text = JSON.stringify({ name: 'packed' })
  const forms = {
    gzip: gzipSync(text),
    'x-gzip': gzipSync(text),
    deflate: deflateSync(text),
    br: brotliCompressSync(text),
  }
  for (const [encoding, raw] of Object.entries(forms)) {
    expect((await create({ raw, headers: { 'content-encoding': encoding } })).body).toEqual({
      body: { name: 'packed' },
    })
  }
  for (const encoding of ['gzip', 'br', 'deflate', 'zstd']) {
    const reply = await create({ raw: text, headers: { 'content-encoding': encoding } })
    expect([encoding, reply.status, codeOf(reply)]).toEqual([encoding, 400, 'validation_error'])
    expect(reply.body.error.param).toBe('Content-Encoding')
  }
  const half = await create({ raw: gzipSync(text).subarray(0, 15), headers: { 'content-encoding': 'gzip' } })
  expect([half.status, codeOf(half)]).toEqual([400, 'validation_error'])
})

test('a body over the limit is refused, also when it comes in pieces or packed', async () => {
  const large = JSON.stringify({ data: 'x'.repeat(5000) })
  expect(await refusal(server, '/things', { raw: large })).toEqual([413, 'payload_too_large'])
  const pieces = ReadableStream.from(Array.from({ length: 50 }, () => new Uint8Array(200).fill(0x20)))
  expect(await refusal(server, '/things', { raw: pieces })).toEqual([413, 'payload_too_large'])
  const bomb = gzipSync(Buffer.alloc(50_000_000, 0x20))
  expect(bomb.length).toBeGreaterThan(4096)
  const smallBomb = gzipSync(Buffer.alloc(1_000_000, 0x20))
  for (const raw of [bomb, smallBomb]) {
    expect(await refusal(server, '/things', { raw, headers: { 'content-encoding': 'gzip' } })).toEqual([
      413,
      'payload_too_large',
    ])
  }
  const justFits = JSON.stringify({ data: 'x'.repeat(4096 - 11) })
  expect(justFits.length).toBe(4096)
  expect((await create({ raw: justFits })).status).toBe(201)
  expect(await refusal(server, `/things/${run}`, { method: 'DELETE', raw: 'x'.repeat(3 * 1024 * 1024) })).toEqual([
    413,
    'payload_too_large',
  ])
})

test('a sender whose connection ends with the answer gets the answer, if it reads only once all is sent', async () => {
  const body = Buffer.alloc(8 * 1024 * 1024, 0x20)
  const { hostname, port } = new URL(server.url)
  const ask = (token: string) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), hostname)
      const head = [
        'POST /api/v1/things HTTP/1.1',
        `Host: ${hostname}`,
        'Connection: close',
        `Authorization: Bearer ${token}`,
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        '',
        '',
      ].join('\r\n')
      let text = ''
      socket.on('error', reject)
      socket.on('end', () => resolve(text))
      socket.write(head)
      socket.write(body, () => socket.on('data', (data: Buffer) => (text += data.toString('utf8'))))
    })
  for (let count = 0; count < 3; count++) {
    expect(await ask(server.seed.ownerToken)).toMatch(/^HTTP\/1.1 413 [^]*"code":"payload_too_large"/)
    expect(await ask('svc_pat_nobody')).toMatch(/^HTTP\/1.1 401 [^]*"code":"auth_invalid"/)
  }
})

test('a sender that goes on sending gets its answer all the same', async () => {
  const status = await new Promise<number>((resolve, reject) => {
    const sent = request(`${server.url}/api/v1/things`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.seed.ownerToken}`, 'content-type': 'application/json' },
    })
    const chunk = Buffer.alloc(256 * 1024, 0x20)
    let bytes = 0
    // Up to 64 MiB, of which the route takes 4 KiB.
    const more = () => {
      bytes += chunk.length
      if (bytes > 64 * 1024 * 1024) sent.end()
      else if (sent.write(chunk)) setImmediate(more)
      else sent.once('drain', more)
    }
    sent.on('error', reject)
    sent.on('response', (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    more()
  })
  expect(status).toBe(413)
  expect((await create({ body: {} })).status).toBe(201)
})
