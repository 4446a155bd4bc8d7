import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listSourceFiles, readSource } from '../../cli/machine/source-files.ts'
import { isLong } from '../kit/forms.ts'
import { TestServer } from '../kit/server.ts'
import { makeHome, type Home } from './run-svc.ts'

// Directories ingested by the real `svc`, against a real server.

let home: Home
let server: TestServer
let between: Awaited<ReturnType<typeof startBetween>>
beforeAll(async () => {
  home = makeHome()
  server = await TestServer.start()
  between = await startBetween(server.plane.localUrl)
})
afterAll(async () => {
  await between.stop()
  await server.stop()
  home.remove()
})

type End = (incoming: IncomingMessage, response: ServerResponse) => void
const cut = ({ socket }: IncomingMessage) => void socket.destroy()
/** Nobody tries that again, while a request that is cut is tried again for seconds. */
const refuse: End = (incoming, response) => {
  const error = { type: 'authentication', code: 'token_revoked', message: 'The token was revoked.', requestId: 'req_1' }
  incoming.resume()
  response.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
}

/** Hands requests on, counts those that bring texts, and can end one of them before its answer. */
async function startBetween(target: string) {
  const state: { ingests: number; endAt: number; end: End } = {
    ingests: 0,
    endAt: Number.POSITIVE_INFINITY,
    end: refuse,
  }
  const onCall = (incoming: IncomingMessage, response: ServerResponse) => {
    const isIngest = incoming.url === '/api/v1/wiki/ingest'
    if (isIngest && ++state.ingests >= state.endAt) return state.end(incoming, response)
    const outgoing = request(
      `${target}${incoming.url}`,
      { method: incoming.method, headers: incoming.headers },
      (reply) => {
        response.writeHead(reply.statusCode ?? 500, reply.headers)
        reply.pipe(response)
      },
    )
    outgoing.on('error', () => incoming.socket.destroy())
    incoming.pipe(outgoing)
  }
  const proxy = createServer((incoming, response) => onCall(incoming, response))
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  return {
    state,
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    stop: () =>
      new Promise<void>((resolve) => {
        proxy.close(() => resolve())
        proxy.closeAllConnections()
      }),
  }
}

const options = () => ({ env: { SVC_TOKEN: server.owner.token, SVC_API_URL: between.url }, cwd: home.dir })
const svc = (...line: string[]) => home.svc(line, options())
async function ingest(...line: string[]) {
  const end = await svc('wiki', 'ingest', ...line)
  expect([end.status, end.stderr]).toEqual([0, ''])
  return JSON.parse(end.stdout)
}
const livePages = async () =>
  Number((await server.database.root('wiki_pages').whereNull('archived_at').count({ n: '*' }).first())!['n'])

const nameOf = (n: number) => `part-${n % 7}/page-${n}.md`

/** More than `through` requests take, of which each has 100; five go, and more than one request takes change. */
const [files, through] = isLong ? [500, 2] : [110, 1]
const changed = 101

test(`${files} files come, change, go, and come again, with a client that dies in between`, async () => {
  const dir = join(home.dir, 'handbook')
  for (let n = 0; n < 7; n++) mkdirSync(join(dir, `part-${n}`), { recursive: true })
  const write = (n: number, more = '') =>
    writeFileSync(join(dir, nameOf(n)), `# Page ${n}\n\nIt says word${n} and more. ${more}\n`)
  for (let n = 0; n < files; n++) write(n)

  const planned = await ingest('handbook', '--dry-run')
  expect([planned.root, planned.missing.length, between.state.ingests]).toEqual(['handbook', files, 0])
  between.state.endAt = through + 1
  between.state.end = isLong ? cut : refuse
  expect((await svc('wiki', 'ingest', 'handbook')).status).toBe(isLong ? 3 : 4)
  const brought = await livePages()
  expect(brought).toBe(through * 100)
  between.state.endAt = Number.POSITIVE_INFINITY
  const nothing = { root: 'handbook', created: 0, updated: 0, archived: 0, failed: [], skipped: [] }
  expect(await ingest('handbook')).toEqual({ ...nothing, created: files - brought, unchanged: brought })
  expect(await livePages()).toBe(files)

  const before = between.state.ingests
  expect(await ingest('handbook')).toEqual({ ...nothing, unchanged: files })
  expect(between.state.ingests).toBe(before)

  for (let n = 0; n < changed; n++) write(n, 'Changed.')
  for (let n = files - 5; n < files; n++) rmSync(join(dir, nameOf(n)))
  // Killed once the first of two requests is through: nothing is archived.
  between.state.endAt = between.state.ingests + 2
  const running = home.start(['wiki', 'ingest', 'handbook'], options())
  between.state.end = (incoming) => {
    running.child.kill('SIGKILL')
    cut(incoming)
  }
  expect((await running.finished).status).toBeNull()
  expect(await livePages()).toBe(files)
  between.state.endAt = Number.POSITIVE_INFINITY
  expect(await ingest('handbook')).toEqual({
    ...nothing,
    updated: changed - 100,
    archived: 5,
    unchanged: files - 5 - (changed - 100),
  })
  expect(await livePages()).toBe(files - 5)
  const found = async (q: string) => (await server.ok(`/wiki/pages?q=${q}`)).data
  expect(await found('word100%20changed')).toMatchObject([
    { title: 'Page 100', sourceRef: `handbook/${nameOf(100)}`, match: { heading: 'Page 100' } },
  ])
  expect(await found(`word${files - 3}`)).toEqual([])
})

test('what cannot be a page is told, and what leads out of the directory is left alone', async () => {
  const dir = join(home.dir, 'mixed')
  mkdirSync(join(dir, 'sub'), { recursive: true })
  mkdirSync(join(dir, '.git'))
  writeFileSync(join(home.dir, 'secret.md'), 'A secret.')
  writeFileSync(join(dir, 'good.md'), '\u{feff}# Good')
  writeFileSync(join(dir, 'notes.txt'), 'No page.')
  writeFileSync(join(dir, '.git', 'x.md'), 'No page.')
  writeFileSync(join(dir, 'large.md'), 'x'.repeat(262_145))
  writeFileSync(join(dir, 'latin.md'), Buffer.from([0x66, 0xfc, 0x72]))
  writeFileSync(join(dir, 'nul.csv'), 'a\0b')
  writeFileSync(join(dir, 'cited.md'), 'So it is [1].')
  symlinkSync(join(home.dir, 'secret.md'), join(dir, 'out.md'))
  symlinkSync('../good.md', join(dir, 'sub', 'in.md'))
  symlinkSync('nowhere.md', join(dir, 'broken.md'))
  symlinkSync('..', join(dir, 'sub', 'round'))
  const end = await svc('wiki', 'ingest', 'mixed', '--root', 'guides/mixed')
  expect(end.status).toBe(1)
  expect(JSON.parse(end.stdout)).toEqual({
    root: 'guides/mixed',
    created: 3,
    updated: 0,
    archived: 0,
    unchanged: 0,
    failed: [{ path: 'cited.md', checks: ['wiki_citation_style'] }],
    skipped: [
      { path: 'large.md', reason: 'has more than 262,144 bytes' },
      { path: 'latin.md', reason: 'is no UTF-8 text' },
      { path: 'nul.csv', reason: 'has a NUL character' },
    ],
  })
  const refs: unknown = await server.database
    .root('wiki_pages')
    .where('source_ref', 'like', 'guides/mixed/%')
    .orderBy('source_ref')
    .pluck('source_ref')
  expect(refs).toEqual(['guides/mixed/cited.md', 'guides/mixed/good.md', 'guides/mixed/sub/in.md'])
})

test('what cannot be ingested is refused with a sentence', async () => {
  writeFileSync(join(home.dir, 'file.md'), 'x')
  for (const line of [['file.md'], ['nothing']]) {
    const end = await svc('wiki', 'ingest', ...line)
    expect([end.status, end.stderr]).toEqual([1, expect.stringContaining('is no directory')])
  }
  mkdirSync(join(home.dir, 'empty'))
  expect((await svc('wiki', 'ingest', 'empty', '--root', '../up')).stderr).toContain('wiki_ingest_invalid_root')
  expect(await ingest('empty')).toMatchObject({ created: 0, unchanged: 0 })
})

test('names that are no text are told, and a file that went away meanwhile is', async () => {
  const dir = join(home.dir, 'odd')
  mkdirSync(dir)
  writeFileSync(join(dir, 'a.md'), '# A')
  writeFileSync(Buffer.concat([Buffer.from(`${dir}/b`), Buffer.from([0xff]), Buffer.from('.md')]), '# B')
  mkdirSync(Buffer.concat([Buffer.from(`${dir}/c`), Buffer.from([0xff])]))
  const { files, skipped } = listSourceFiles(dir)
  expect(files.map(({ path }) => path)).toEqual(['a.md'])
  const reason = 'has a name that is no UTF-8 text'
  expect(skipped.toSorted((one, other) => (one.path < other.path ? -1 : 1))).toEqual([
    { path: 'b\ufffd.md', reason },
    { path: 'c\ufffd', reason },
  ])
  rmSync(join(dir, 'a.md'))
  expect(await readSource(dir, files[0]!)).toMatchObject({ reason: expect.stringContaining('was changed') })
})
