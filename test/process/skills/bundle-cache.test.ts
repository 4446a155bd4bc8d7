import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { BundleCache, type BundleCacheOptions } from '../../../device-manager/skills/bundle-cache.ts'
import { bundleHashText } from '../../../shared/lib/bundle-hash.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { offeredSkill } from '../../../shared/runs/skills.ts'

// The files of skills on a device, asked of a server that a test has say what it likes.

type Answer = (response: ServerResponse, request: IncomingMessage) => void
let answers = new Map<string, Answer>()
let asked: string[] = []
const server = createServer((request, response) => {
  const hash = request.url!.split('/').at(-1)!
  asked.push(`${request.headers.authorization} ${hash}`)
  const answer = answers.get(hash)
  if (answer === undefined) response.writeHead(404).end()
  else answer(response, request)
})
let url = ''
let folder = ''
beforeAll(async () => {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'svc-bundles-')), 'skills')
  ;[answers, asked] = [new Map(), []]
})
afterEach(() => rmSync(dirname(folder), { recursive: true, force: true }))

const log = { info() {}, warn() {} } as unknown as BundleCacheOptions['log']
const cacheOf = (more: Partial<BundleCacheOptions> = {}) =>
  new BundleCache({ folder, world: realWorld, log, server: url, token: () => 't', wanted: () => new Set(), ...more })

interface Made {
  hash: string
  head: string
  body: Buffer
}
function bundleOf(contents: Record<string, string | Buffer>): Made {
  const paths = Object.keys(contents).toSorted()
  const bytes = paths.map((path) => Buffer.from(contents[path]!))
  const files = paths.map((path, at) => ({
    path,
    sizeBytes: bytes[at]!.length,
    sha256: createHash('sha256').update(bytes[at]!).digest('hex'),
    executable: path.endsWith('.sh'),
  }))
  const hash = createHash('sha256').update(bundleHashText(files)).digest('hex')
  return { hash, head: `${JSON.stringify({ files })}\n`, body: Buffer.concat(bytes) }
}
const serve = ({ hash, head, body }: Made): Made => {
  answers.set(hash, (response) => response.end(Buffer.concat([Buffer.from(head), body])))
  return { hash, head, body }
}
const skill = (bundleHash: string, isMissed = false) =>
  offeredSkill.parse({
    slug: 'x',
    description: '',
    bundleHash,
    fileCount: 1,
    totalBytes: 1,
    ...(isMissed && { isMissed }),
  })
const missed = (hash: string, reason = 'not_materialized') => ({ placed: [], missed: [{ bundleHash: hash, reason }] })
const nothing = { placed: [], missed: [] }
const kept = () => new Set(existsSync(folder) ? readdirSync(folder) : [])

test('a bundle is asked for once, by all runs that want it, and kept for its user alone', async () => {
  const { hash } = serve(bundleOf({ 'SKILL.md': 'Text.', 'bin/run.sh': 'echo', 'empty.txt': '' }))
  const cache = cacheOf()
  const all = await Promise.all([1, 2, 3].map(() => cache.place([skill(hash), skill(hash)])))
  expect(all).toEqual([nothing, nothing, nothing])
  expect(await cacheOf().place([skill(hash, true)])).toEqual({ placed: [hash], missed: [] })
  expect(asked).toEqual([`Bearer t ${hash}`])
  const files = join(folder, hash, 'files')
  expect(readFileSync(join(files, 'bin/run.sh'), 'utf8')).toBe('echo')
  const modes = [folder, join(folder, hash), join(files, 'bin'), join(files, 'SKILL.md')].map(
    (path) => statSync(path).mode & 0o777,
  )
  expect(modes).toEqual([0o700, 0o700, 0o700, 0o600])
})

const good = bundleOf({ 'SKILL.md': 'Text.' })
const wrong: [string, string, string, Answer][] = [
  ['other bytes', good.hash, 'bundle_unreadable', (to) => to.end(`${good.head}Tex..`)],
  ['more bytes', good.hash, 'bundle_unreadable', (to) => to.end(`${good.head}Text. More.`)],
  ['fewer bytes', good.hash, 'not_materialized', (to) => to.end(`${good.head}Te`)],
  ['another list', 'a'.repeat(64), 'bundle_unreadable', (to) => to.end(`${good.head}Text.`)],
  ['no list', good.hash, 'bundle_unreadable', (to) => to.end('<html>\n')],
  ['a list without an end', good.hash, 'bundle_unreadable', (to) => to.end('x'.repeat(2_000_000))],
  ['another address', good.hash, 'not_materialized', (to) => to.writeHead(302, { location: `${url}/x` }).end()],
  ['a failure', good.hash, 'not_materialized', (to) => to.writeHead(500).end()],
  ['a cut', good.hash, 'not_materialized', (to) => void to.write(good.head, () => to.destroy())],
]
for (const [path, more] of [
  ['../out.txt', {}],
  ['/etc/out.txt', {}],
  ['a/../../out.txt', {}],
  ['skill.md', {}],
  ['.git/config', {}],
] as const) {
  const made = bundleOf({ 'SKILL.md': 'Text.', [path]: 'x', ...more })
  wrong.push([
    `the path ${path}`,
    made.hash,
    'bundle_unreadable',
    (to) => to.end(Buffer.concat([Buffer.from(made.head), made.body])),
  ])
}
{
  const made = bundleOf({ 'other.md': 'x' })
  wrong.push(['no SKILL.md', made.hash, 'bundle_unreadable', (to) => to.end(`${made.head}x`)])
}

test.each(wrong)('a server that answers %s has nothing kept', async (_, hash, reason, answer) => {
  answers.set(hash, answer)
  expect(await cacheOf().place([skill(hash)])).toEqual(missed(hash, reason))
  expect(kept()).toEqual(new Set())
  expect(readdirSync(join(folder, '..'))).toEqual(existsSync(folder) ? ['skills'] : [])
})

test('a run does not wait longer than it may; what comes later is there for the next one', async () => {
  const slow = bundleOf({ 'SKILL.md': 'Slow.' })
  const ended = Promise.withResolvers<void>()
  answers.set(slow.hash, (response) => {
    response.write(slow.head)
    void ended.promise.then(() => response.end(slow.body))
  })
  const quick = serve(bundleOf({ 'SKILL.md': 'Quick.' }))
  const cache = cacheOf({ waitMs: 3_000 })
  expect(await cache.place([skill(slow.hash), skill(quick.hash)])).toEqual(missed(slow.hash))
  ended.resolve()
  expect(await cacheOf({ waitMs: 20_000 }).place([skill(quick.hash)])).toEqual(nothing)
  const patient = cache.place([skill(slow.hash)])
  expect(await patient).toEqual(nothing)
  expect(asked).toHaveLength(2)
})

test('what a killed daemon left does not count, and is removed', async () => {
  mkdirSync(join(folder, '.new-1', 'files'), { recursive: true })
  writeFileSync(join(folder, '.new-1', 'files', 'SKILL.md'), 'Half')
  const { hash } = serve(good)
  expect(await cacheOf().place([skill(hash)])).toEqual(nothing)
  expect(kept()).toEqual(new Set([hash]))
})

test('what was used longest ago goes where there is no room, but nothing that a run waits for', async () => {
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((text) => serve(bundleOf({ 'SKILL.md': text.repeat(4_000) })).hash)
  const wanted = new Set<string>()
  const cache = cacheOf({ maxBytes: 9_000, wanted: () => wanted })
  for (const [at, hash] of [a, b].entries()) {
    await cache.place([skill(hash!)])
    utimesSync(join(folder, hash!), at, at)
  }
  await cache.place([skill(c!)])
  expect(kept()).toEqual(new Set([b, c]))
  wanted.add(b!)
  utimesSync(join(folder, b!), 1, 1)
  await cache.place([skill(d!)])
  expect(kept()).toEqual(new Set([b, d]))
})

test('many downloads take turns, and one that is stopped fails', async () => {
  const hashes = Array.from({ length: 12 }, (_, at) => serve(bundleOf({ 'SKILL.md': `${at}` })).hash)
  const cache = cacheOf()
  expect(await cache.place(hashes.map((hash) => skill(hash)))).toEqual(nothing)
  answers.set(good.hash, () => undefined)
  const waiting = cache.place([skill(good.hash)])
  cache.stop()
  expect(await waiting).toEqual(missed(good.hash))
})
