import { once } from 'node:events'
import { mkdtempSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { whyNoFailingDisk } from '../kit/failing-disk.ts'
import { isLong } from '../kit/forms.ts'
import { waitFor } from '../kit/programs.ts'
import { smallDisk, whyNoSmallDisk, type SmallDisk } from '../kit/small-disk.ts'
import { failCalls, fileThreadOf } from '../kit/traced-thread.ts'
import { contentOf, startFilesStage, type Answer, type FilesStage } from './files-stage.ts'

/** Storage that is full, fails or is away under a real server: it is told, and loses nothing that was stored. */

const mebibyte = 1024 * 1024
let stage: FilesStage

/** `503 storage_unavailable` */
const outcomeOf = (answer: Answer | null) =>
  answer === null ? 'no answer' : `${answer.status} ${answer.body?.error?.code ?? ''}`.trim()
const unavailable = '503 storage_unavailable'

async function tryUpload(length: number): Promise<string> {
  const { contentBase64 } = contentOf(length)
  return outcomeOf(await stage.ask('POST', '/files', { name: 'new.bin', contentBase64 }))
}
async function tryReplace(id: string, length: number): Promise<string> {
  const { contentBase64 } = contentOf(length)
  return outcomeOf(await stage.ask('POST', `/files/${id}/replace`, { contentBase64 }))
}
/** The file is as it was uploaded. */
async function isKept({ id, sha256 }: { id: string; sha256: string }): Promise<void> {
  const file = (await stage.ask('GET', `/files/${id}`))?.body
  expect(file).toMatchObject({ sha256, revisionCount: 1 })
  const { data } = (await stage.ask('GET', `/files/${id}/revisions`))!.body
  expect(await stage.downloaded(id, data[0].id)).toBe(sha256)
}

const whyNotFull = whyNoSmallDisk()
if (whyNotFull !== null && isLong)
  process.stderr.write(`NOT RUN: ${whyNotFull}, so no storage of files was really full\n`)

// In the short form a disk that fails stands for one that is full, as the storage asks for no reason; `blobs.test.ts` fills one.
if (isLong)
  describe.skipIf(whyNotFull !== null)('a full disk', () => {
    let folder: string
    let disk: SmallDisk
    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'svc-full-'))
      disk = await smallDisk(join(folder, 'disk'), 8)
      const place = { served: join(folder, 'disk', 'files'), seen: join(disk.seenAt, 'files') }
      stage = await startFilesStage({ storage: 'disk', folder: place, via: disk.via })
    })
    afterAll(async () => {
      await stage?.close()
      await disk?.close()
      rmSync(folder, { recursive: true, force: true })
    })

    test('refuses bytes, keeps those that it has, and takes more when there is room again', async () => {
      const [kept, other] = [await stage.upload(mebibyte), await stage.upload(10)]
      expect(await tryUpload(9 * mebibyte)).toBe(unavailable)
      await stage.checkAll('a file too large for the disk')
      disk.fill()
      expect(await tryUpload(10)).toBe(unavailable)
      expect(await tryReplace(kept.id, 10)).toBe(unavailable)
      await isKept(kept)
      expect(outcomeOf(await stage.ask('DELETE', `/files/${other.id}`))).toBe('204')
      disk.free()
      await stage.checkAll('a disk that was full')
      expect(await tryUpload(mebibyte)).toBe('201')
      await isKept(kept)
    })
  })

const whyNotFailing = whyNoFailingDisk()
if (whyNotFailing !== null) process.stderr.write(`NOT RUN: ${whyNotFailing}, so no storage of files ever failed\n`)

interface Halves {
  bytes: number
  /** Characters of the body that are sent at first. */
  first: number
  between: () => Promise<void>
}

/** The file of an upload that goes on, once this many bytes are in it. */
const draftOf = (folder: string, bytes: number): string | null =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(({ name }) => name.endsWith('.part'))
    .map(({ parentPath, name }) => join(parentPath, name))
    .find((path) => statSync(path).size >= bytes) ?? null

describe.skipIf(whyNotFailing !== null)('a disk that fails', () => {
  let place: string
  beforeAll(async () => {
    place = join(realpathSync(mkdtempSync(join(tmpdir(), 'svc-failing-'))), 'files')
    stage = await startFilesStage({ storage: 'disk', folder: { served: place, seen: place } })
  })
  afterAll(async () => {
    await stage?.close()
    rmSync(dirname(place), { recursive: true, force: true })
  })

  // Before there is a file, with all of its bytes, and where it is given its name; the short form has the first and the last.
  const calls = isLong ? ['openat', 'fsync', 'rename'] : ['openat', 'rename']
  test.each(calls)('at %s refuses bytes and keeps those that it has', async (call) => {
    const kept = await stage.upload(100_000)
    const mend = await failCalls(fileThreadOf(stage.server.program.pid), call)
    expect(await tryUpload(100_000)).toBe(unavailable)
    expect(await tryReplace(kept.id, 100_000)).toBe(unavailable)
    await mend()
    await isKept(kept)
    await stage.checkAll(`a disk that failed at ${call}`)
    expect(await tryReplace(kept.id, 100_000)).toBe('200')
  })

  /** Sends the beginning of an upload, does something, and sends the rest. */
  async function inTwo(path: string, { bytes, first, between }: Halves): Promise<string> {
    const { port, token } = stage.server
    const body = JSON.stringify({
      ...(path === '/files' && { name: 'new.bin' }),
      contentBase64: contentOf(bytes).contentBase64,
    })
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const sent = request({ host: '127.0.0.1', port, method: 'POST', path: `/api/v1${path}`, headers })
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>
    sent.write(body.slice(0, first))
    await between()
    sent.end(body.slice(first))
    const [reply] = await answered
    return outcomeOf({ status: reply.statusCode!, body: await json(reply) })
  }

  // Of the two megabytes some are written before, or none; what is written can be removed, or not.
  const writes: [string, number, number, string][] = [
    ['the first bytes', 1_000, 0, 'write,pwrite64'],
    ['some bytes', 1_000_000, 262_144, 'write,pwrite64'],
    ['some bytes, and the removal of what was written', 1_000_000, 262_144, 'write,pwrite64,unlink'],
  ]
  // The last one begins as the one before it.
  test.each(writes.filter((_, at) => isLong || at !== 1))(
    'at the write of %s refuses them and keeps those that it has',
    async (_, first, written, calls) => {
      const kept = await stage.upload(100_000)
      for (const path of ['/files', `/files/${kept.id}/replace`]) {
        let mend = async () => {}
        const between = async () => {
          const draft = await waitFor(() => draftOf(place, written), 'some bytes are written')
          mend = await failCalls(fileThreadOf(stage.server.program.pid), calls, [draft])
        }
        expect([path, await inTwo(path, { bytes: 2 * mebibyte, first, between })]).toEqual([path, unavailable])
        if (calls.includes('unlink')) expect(draftOf(place, 0)).not.toBeNull()
        await mend()
        await isKept(kept)
        await stage.checkAll(`a disk that failed at the write of ${path}`)
        expect(draftOf(place, 0)).toBeNull()
      }
      expect(await tryReplace(kept.id, 2 * mebibyte)).toBe('200')
    },
  )

  test('when bytes are removed deletes the file, and the sweep removes them later', async () => {
    const { id } = await stage.upload(100_000)
    const mend = await failCalls(fileThreadOf(stage.server.program.pid), 'unlink')
    expect(outcomeOf(await stage.ask('DELETE', `/files/${id}`))).toBe('204')
    expect(outcomeOf(await stage.ask('GET', `/files/${id}`))).toBe('404 resource_not_found')
    await mend()
    await stage.checkAll('a disk that kept what was deleted')
  })
})

// A storage that is away is told in one way, be it a disk or a bucket; `blobs.test.ts` has the bucket that is busy or away.
if (isLong)
  describe('a bucket', () => {
    beforeAll(async () => {
      stage = await startFilesStage({ storage: 's3' })
    })
    afterAll(() => stage?.close())

    test.each([
      ['answers 503', 503],
      ['cuts parts off', 'cut'],
    ] as const)('that %s for a moment is asked again, and for long is unavailable', async (_, fault) => {
      const kept = await stage.upload(6 * mebibyte)
      let asked = 0
      stage.bucket!.fault(({ method }) => (method === 'PUT' && ++asked === 2 ? fault : null))
      expect(await tryUpload(6 * mebibyte)).toBe('201')
      stage.bucket!.fault(({ method }) => (method === 'PUT' ? fault : null))
      expect(await tryUpload(6 * mebibyte)).toBe(unavailable)
      expect(await tryReplace(kept.id, 100)).toBe(unavailable)
      stage.bucket!.fault(() => fault)
      expect(outcomeOf(await stage.ask('GET', `/files/${kept.id}/download`))).toBe(unavailable)
      expect(outcomeOf(await stage.ask('GET', `/files/${kept.id}`))).toBe('200')
      stage.bucket!.fault(null)
      await isKept(kept)
      await stage.checkAll(`a bucket with ${fault}`)
    })
  })
