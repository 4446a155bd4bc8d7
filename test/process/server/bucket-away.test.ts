import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ConfigError } from '../../../control-plane/process/config-error.ts'
import { claimNowOrLater } from '../../../control-plane/blobs/claimed-place.ts'
import { openBlobPlace, readLocation, type BlobLocation } from '../../../control-plane/blobs/location.ts'
import { silentLog, type Log } from '../../../control-plane/process/log.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { openSqlite } from '../../kit/database.ts'
import { startS3, type Fault, type S3Bucket } from '../../kit/s3.ts'
import { codeOf, TestServer, type ServerOptions } from '../../kit/server.ts'

// Servers that start while the bucket of their files is away.

let folder: string
let bucket: S3Bucket
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-bucket-'))
  bucket = await startS3(join(folder, 's3'))
})
const running: TestServer[] = []
afterEach(async () => {
  bucket.fault(null)
  for (const server of running.splice(0).toReversed()) await server.stop()
})
afterAll(async () => {
  await bucket.close()
  rmSync(folder, { recursive: true, force: true })
})

interface Line {
  level: string
  message: string
  fields: object
}

async function start(options: ServerOptions & { url?: string } = {}): Promise<{ server: TestServer; lines: Line[] }> {
  const lines: Line[] = []
  const at = (level: string) => (fields: object, message: string) => void lines.push({ level, message, fields })
  const log: Log = { debug: () => undefined, info: at('info'), warn: at('warn'), error: at('error'), child: () => log }
  const settings = { SVC_FILES_URL: options.url ?? bucket.url, ...bucket.environment, ...options.settings }
  const server = await TestServer.start({ database: 'sqlite', log, ...options, settings })
  running.push(server)
  return { server, lines }
}
const told = (lines: Line[]) => lines.filter(({ level, message }) => level !== 'info' || message.includes('is back'))

const content = Buffer.from('Some notes.').toString('base64')
const upload = (server: TestServer) => server.call('/files', { body: { name: 'notes.txt', contentBase64: content } })
const read = (server: TestServer, id: string) => server.call(`/files/${id}?expand=content`)

test.each<[string, Fault]>([
  ['answers 503', 503],
  ['cuts its connections', 'cut'],
])('a replica starts while the bucket %s, answers 503 for files, and serves them once it is back', async (_, fault) => {
  const first = await start()
  const { body: file } = await upload(first.server)
  bucket.fault(() => fault)
  const { server, lines } = await start({ beside: first.server })
  expect(told(lines)).toEqual([
    {
      level: 'warn',
      message: expect.stringMatching(/^the bucket svc-files is away, so what needs files is answered 503 until/),
      fields: {},
    },
  ])
  expect([codeOf(await read(server, file.id)), codeOf(await upload(server))]).toEqual([
    'storage_unavailable',
    'storage_unavailable',
  ])
  expect((await server.call('/agents')).status).toBe(200)
  bucket.fault(null)
  expect((await upload(server)).status).toBe(201)
  expect((await read(server, file.id)).status).toBe(200)
  expect(told(lines).at(-1)?.message).toBe('the bucket svc-files is back, and files are served')
})

test('a bucket that never answers is away, and holds up no start', async () => {
  const database = openSqlite()
  try {
    bucket.fault(() => () => new Promise(() => undefined))
    const { url, environment } = bucket
    const keys = { keyId: environment.AWS_ACCESS_KEY_ID, secret: environment.AWS_SECRET_ACCESS_KEY }
    const place = openBlobPlace(readLocation(url, keys) as BlobLocation, realWorld)
    // Nobody waits here for as long as a server does.
    const world = { ...realWorld, sleep: () => Promise.resolve() }
    const claimed = await claimNowOrLater({ root: database.root, place, world, log: silentLog })
    await expect(claimed.has('blb_x')).rejects.toMatchObject({ name: 'StorageError' })
  } finally {
    await database.close()
  }
})

test('the first start of all does so as well, and replicas agree on where files lie', async () => {
  bucket.fault(() => 503)
  const { server: first } = await start()
  const { server: second } = await start({ beside: first })
  bucket.fault(null)
  const made = await Promise.all([upload(first), upload(second)])
  expect(made.map(({ status }) => status)).toEqual([201, 201])
  for (const { body } of made)
    for (const server of [first, second]) expect((await read(server, body.id)).status).toBe(200)
})

test('a bucket that comes back as another one serves nothing, and the log says why', async () => {
  const first = await start()
  bucket.fault(() => 503)
  const { server, lines } = await start({ beside: first.server, url: bucket.url.replace('/test?', '/elsewhere?') })
  bucket.fault(null)
  expect(codeOf(await upload(server))).toBe('storage_unavailable')
  expect(JSON.stringify(lines.map(({ fields }) => String((fields as { err?: unknown }).err)))).toContain(
    'The files of this database are not in the bucket svc-files',
  )
})

test.each([
  ['keys', { AWS_SECRET_ACCESS_KEY: 'wrong' }, undefined],
  ['bucket', {}, 's3://no-such-bucket'],
])('a bucket that answers and refuses the %s stops the start with a sentence', async (_, settings, name) => {
  const url = name === undefined ? bucket.url : bucket.url.replace('s3://svc-files', name)
  const refused = start({ settings, url })
  // Which ends with status 78.
  await expect(refused).rejects.toBeInstanceOf(ConfigError)
  await expect(refused).rejects.toThrow(/^The server does not start: the storage of files \(the bucket .*\) failed: /)
})
