import { createHash } from 'node:crypto'
import { deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { statusOf, textOf } from './broker-kit.ts'
import { gitDoor } from './git-kit.ts'

// What a hostile sandbox sends to the git door of its broker, byte by byte.

const zero = '0'.repeat(40)
const one = '1'.repeat(40)
const own = 'refs/heads/svc/ENG-1'
const abilities = ' report-status side-band-64k agent=git/2.39'

const pkt = (text: string | Buffer): Buffer => {
  const bytes = Buffer.from(text)
  return Buffer.concat([Buffer.from((bytes.length + 4).toString(16).padStart(4, '0')), bytes])
}
const flush = Buffer.from('0000')
const emptyPack = (() => {
  const head = Buffer.concat([Buffer.from('PACK'), Buffer.from([0, 0, 0, 2, 0, 0, 0, 0])])
  return Buffer.concat([head, createHash('sha1').update(head).digest()])
})()
const command = (ref: string, { from = zero, to = one, can = abilities } = {}) => pkt(`${from} ${to} ${ref}\0${can}`)
const more = (ref: string, from = zero, to = one) => pkt(`${from} ${to} ${ref}`)

interface Stage extends Pick<Awaited<ReturnType<typeof gitDoor>>, 'server'> {
  /** How often the git host was asked. */
  asked: () => number
  push: (body: Buffer, heads?: readonly string[]) => Promise<string>
  refs: () => string
}

async function stage(options: Parameters<typeof gitDoor>[0] = {}): Promise<Stage> {
  const { server, repo, open } = await gitDoor(options)
  return {
    server,
    asked: () => server.requests.length,
    refs: () => repo.git(['for-each-ref']),
    async push(body, heads = [`content-length: ${body.length}`]) {
      const socket = await open()
      const head = ['POST /git/r1/git-receive-pack HTTP/1.1', 'host: x', 'connection: close', ...heads]
      const type = heads.some((line) => line.startsWith('content-type'))
        ? []
        : ['content-type: application/x-git-receive-pack-request']
      socket.write(Buffer.concat([Buffer.from([...head, ...type, '', ''].join('\r\n')), body]))
      return textOf(socket)
    },
  }
}

describe('a push that is let through nowhere', () => {
  test.each<[name: string, body: Buffer]>([
    ['another ref', Buffer.concat([command('refs/heads/main'), flush, emptyPack])],
    ['its ref in other letters', Buffer.concat([command('refs/heads/SVC/eng-1'), flush, emptyPack])],
    ['a ref that only begins so', Buffer.concat([command(`${own}/x`), flush, emptyPack])],
    ['a ref with a line feed', Buffer.concat([command(`${own}\n`), flush, emptyPack])],
    ['a ref with a line feed within', Buffer.concat([command(`${own}\nrefs/heads/main`), flush, emptyPack])],
    ['a ref with a return', Buffer.concat([command(`${own}\r`), flush, emptyPack])],
    ['a ref with a bell', Buffer.concat([command(`${own}\u0007`), flush, emptyPack])],
    [
      'a ref that is no text',
      Buffer.concat([pkt(Buffer.concat([Buffer.from(`${zero} ${one} ${own}`), Buffer.from([0xff, 0])])), flush]),
    ],
    [
      'a second zero byte',
      Buffer.concat([pkt(`${zero} ${one} ${own}\0${abilities}\0refs/heads/main`), flush, emptyPack]),
    ],
    ['two commands for one ref', Buffer.concat([command(own), more(own), flush, emptyPack])],
    ['another ref behind its own', Buffer.concat([command(own), more('refs/heads/main'), flush, emptyPack])],
    [
      'abilities in a second command',
      Buffer.concat([command(own), pkt(`${zero} ${one} refs/heads/svc/rescue/run_1\0push-options`), flush]),
    ],
    ['a deletion', Buffer.concat([command(own, { from: one, to: zero }), flush])],
    [
      'options',
      Buffer.concat([command(own, { can: `${abilities} push-options` }), flush, pkt('ci.skip'), flush, emptyPack]),
    ],
    [
      'an ability that is not known',
      Buffer.concat([command(own, { can: `${abilities} force=yes` }), flush, emptyPack]),
    ],
    [
      'a signature',
      Buffer.concat([pkt(`push-cert\0${abilities}`), pkt('certificate version 0.1\n'), flush, emptyPack]),
    ],
    ['a shallow history', Buffer.concat([pkt(`shallow ${one}`), command(own), flush, emptyPack])],
    ['a shallow history behind its command', Buffer.concat([command(own), pkt(`shallow ${one}`), flush, emptyPack])],
    ['ids of two lengths', Buffer.concat([pkt(`${zero} ${'1'.repeat(64)} ${own}\0${abilities}`), flush, emptyPack])],
    ['an id in capitals', Buffer.concat([command(own, { to: 'A'.repeat(40) }), flush, emptyPack])],
    ['two blanks', Buffer.concat([pkt(`${zero}  ${one} ${own}\0${abilities}`), flush, emptyPack])],
    ['a line of no length', Buffer.from('0004')],
    ['a line of less than its length', Buffer.from('0003')],
    ['a line whose length is no number', Buffer.from('-001aaaa')],
    ['a line of 64 KiB', Buffer.concat([Buffer.from('fff0'), Buffer.alloc(65_516, 'a')])],
    ['lines without an end', Buffer.concat(Array.from({ length: 2_000 }, () => command(own)))],
    ['a delimiter', Buffer.from('0001')],
    ['nothing', Buffer.alloc(0)],
    ['half of a command', command(own).subarray(0, 60)],
    [
      'bytes behind the question whether it is let in',
      Buffer.concat([flush, command('refs/heads/main'), flush, emptyPack]),
    ],
    ['a step that no pack shows', Buffer.concat([command(own, { from: '2'.repeat(40) }), flush, emptyPack])],
    [
      'a step with a pack that is none',
      Buffer.concat([command(own, { from: '2'.repeat(40) }), flush, Buffer.alloc(200_000, 7)]),
    ],
  ])('%s', async (_name, body) => {
    const { push, asked, refs } = await stage()
    const before = refs()
    const answer = await push(body)
    // In the words of git where it gave its abilities, which is a refusal of each ref.
    expect(statusOf(answer) === 403 || /[0-9a-f]{4}ng /.test(answer)).toBe(true)
    expect(answer).not.toMatch(/[0-9a-f]{4}ok /)
    expect([asked(), refs()]).toEqual([0, before])
  })

  test('a chain of commits that only claims to be one', async () => {
    const { push, asked } = await stage()
    const old = '2'.repeat(40)
    const text = `tree ${one}\nparent ${old}\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nx`
    const object = (content: string, size = content.length) => {
      const head = size < 16 ? [0x10 | size] : [0x90 | (size & 15), size >> 4]
      return Buffer.concat([Buffer.from(head), deflateSync(content)])
    }
    const packOf = (...objects: Buffer[]) =>
      Buffer.concat([Buffer.from('PACK'), Buffer.from([0, 0, 0, 2, 0, 0, 0, objects.length]), ...objects])
    const id = createHash('sha1').update(`commit ${text.length}\0${text}`).digest('hex')
    const real = Buffer.concat([command(own, { from: old, to: id }), flush, packOf(object(text))])
    // The pack is broken at its end, so the git host takes nothing of what the broker lets through.
    await push(real)
    // It was asked first for the name of its own branch.
    expect(asked()).toBe(2)
    for (const [to, pack] of [
      // The commit is there and is not the new one.
      [one, packOf(object(text))],
      // Its size is another one.
      [id, packOf(object(text, text.length + 1))],
      // The parent stands in its message.
      [
        createHash('sha1').update(`commit ${text.length}\0${text}`).digest('hex').replace(/^./, 'e'),
        packOf(object(text)),
      ],
      [id, packOf(Buffer.from([0x30 | 1]), object(text))],
    ] as const)
      expect(await push(Buffer.concat([command(own, { from: old, to }), flush, pack]))).toMatch(/only moves forward/)
    expect(asked()).toBe(2)
  })

  test('a commit that unpacks to a thousand times its size', async () => {
    const { push, asked } = await stage()
    const huge = deflateSync(Buffer.alloc(512 * 1024 * 1024))
    const size = 512 * 1024 * 1024
    const bytes = [0x90 | (size & 15)]
    for (let left = Math.floor(size / 16); left > 0; left = Math.floor(left / 128))
      bytes.push((left % 128) | (left >= 128 ? 0x80 : 0))
    const pack = Buffer.concat([Buffer.from('PACK'), Buffer.from([0, 0, 0, 2, 0, 0, 0, 1]), Buffer.from(bytes), huge])
    const before = process.memoryUsage().rss
    const answer = await push(Buffer.concat([command(own, { from: '2'.repeat(40) }), flush, pack]))
    expect(answer).toMatch(/only moves forward/)
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024)
    expect(asked()).toBe(0)
  })
})

describe('what is not git', () => {
  test.each([
    '/git/r1',
    '/git/r1/',
    '/git/r1/HEAD',
    '/git/r1/objects/info/packs',
    '/git/r1/info/refs',
    '/git/r1/info/refs?service=git-upload-archive',
    '/git/r1/info/refs?service=git-upload-pack&service=git-receive-pack',
    '/git/r1/info/refs?service=git-upload-pack#x',
    '/git/r1/info/refs?SERVICE=git-upload-pack',
    '/git/r1//info/refs?service=git-upload-pack',
    '/git/r1/../other/info/refs?service=git-upload-pack',
    '/git/r1/%2e%2e/other/info/refs?service=git-upload-pack',
    '/git/r2/info/refs?service=git-upload-pack',
    '/git/R1/info/refs?service=git-upload-pack',
    '/git/r1@evil/info/refs?service=git-upload-pack',
    '/git//info/refs?service=git-upload-pack',
    '/git/r1/info/lfs/objects/batch',
    '/git/r1/git-upload-pack',
  ])('%s reaches no git host', async (target) => {
    const { server, say } = await gitDoor()
    const answer = await say(`GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
    expect([400, 403]).toContain(statusOf(answer))
    expect(server.requests).toEqual([])
  })

  test.each([
    ['both lengths', ['content-length: 4', 'transfer-encoding: chunked']],
    ['two lengths', ['content-length: 4', 'content-length: 5']],
    ['a packed body', ['content-length: 4', 'content-encoding: gzip']],
    ['another type', ['content-length: 4', 'content-type: application/x-git-upload-pack-request']],
    ['a body of 2 GB', ['content-length: 2147483648']],
  ])('%s', async (_name, heads) => {
    const { push, asked } = await stage()
    const body = heads.includes('content-encoding: gzip') ? gzipSync(flush) : flush
    expect([400, 403, 413, 415]).toContain(
      statusOf(
        await push(
          body,
          heads.map((line) => line.replace('content-length: 4', `content-length: ${body.length}`)),
        ),
      ),
    )
    expect(asked()).toBe(0)
  })
})

test('a push in chunks is read as one that says its length', async () => {
  const { push, asked, refs } = await stage()
  const before = refs()
  const body = Buffer.concat([command('refs/heads/main'), flush, emptyPack])
  const chunks = [...body].map((byte) =>
    Buffer.concat([Buffer.from('1\r\n'), Buffer.from([byte]), Buffer.from('\r\n')]),
  )
  const answer = await push(Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')]), ['transfer-encoding: chunked'])
  expect(answer).toMatch(/ng refs\/heads\/main/)
  expect([asked(), refs()]).toEqual([0, before])
})

test('a push is cut off where it is longer than it may be, and its time is over', async () => {
  const { push, refs, server } = await stage({ limits: { pushBytes: 1_000_000 } })
  // A host that answers before it has all would say what is wrong with the beginning.
  server.answer = (request, response) => {
    if (request.method === 'POST') request.resume().once('end', () => response.writeHead(200).end())
    return request.method === 'POST'
  }
  const before = refs()
  const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(65_536, 'x'), Buffer.from('\r\n')])
  const head = Buffer.concat([command(own), flush])
  const chunks = [
    Buffer.from(`${head.length.toString(16)}\r\n`),
    head,
    Buffer.from('\r\n'),
    ...Array.from({ length: 20 }, () => chunk),
  ]
  const answer = await push(Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')]), ['transfer-encoding: chunked'])
  expect([0, 413, 502]).toContain(statusOf(answer))
  expect(refs()).toBe(before)
  const slow = await stage({ limits: { timeMs: 300 } })
  expect(statusOf(await slow.push(command(own).subarray(0, 20), ['content-length: 1000']))).not.toBe(200)
  expect(slow.asked()).toBe(0)
})

test('a sandbox has a bound for what it asks of git', async () => {
  const { server, say } = await gitDoor({ limits: { requests: 3 } })
  const ask = () =>
    say('GET /git/r1/info/refs?service=git-upload-pack HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  const seen: number[] = []
  for (let count = 0; count < 5; count++) seen.push(statusOf(await ask()))
  expect(seen).toEqual([200, 200, 200, 429, 429])
  expect(server.requests).toHaveLength(3)
})
