import { once } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { afterEach, expect, test } from 'vitest'
import { isLong } from '../kit/forms.ts'
import { waitFor } from '../kit/programs.ts'
import { failCalls, fileThreadOf } from '../kit/traced-thread.ts'
import { contentOf, type Answer, type FilesStage } from './files-stage.ts'

// Storage that fails under a real server is told, and loses nothing that was stored.

export const mebibyte = 1024 * 1024
/** `503 storage_unavailable` */
export const outcomeOf = (answer: Answer | null) =>
  answer === null ? 'no answer' : `${answer.status} ${answer.body?.error?.code ?? ''}`.trim()
export const unavailable = '503 storage_unavailable'

export async function tryUpload(stage: FilesStage, length: number): Promise<string> {
  const { contentBase64 } = contentOf(length)
  return outcomeOf(await stage.ask('POST', '/files', { name: 'new.bin', contentBase64 }))
}
export async function tryReplace(stage: FilesStage, id: string, length: number): Promise<string> {
  const { contentBase64 } = contentOf(length)
  return outcomeOf(await stage.ask('POST', `/files/${id}/replace`, { contentBase64 }))
}
/** The file is as it was uploaded. */
export async function isKept(stage: FilesStage, { id, sha256 }: { id: string; sha256: string }): Promise<void> {
  const file = (await stage.ask('GET', `/files/${id}`))?.body
  expect(file).toMatchObject({ sha256, revisionCount: 1 })
  const { data } = (await stage.ask('GET', `/files/${id}/revisions`))!.body
  expect(await stage.downloaded(id, data[0].id)).toBe(sha256)
}

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

/** Tests in which calls of the disk fail. */
export function testFailingDisk(stage: () => FilesStage): void {
  // Each test reads all files there are; those of the one before were read by it.
  afterEach(async () => {
    const fileIds = await stage().root('files').whereNull('deleted_at').pluck('id')
    if (fileIds.length > 0) await stage().ask('POST', '/files/bulk-delete', { fileIds })
  })

  // Before there is a file, with all of its bytes, and where it is given its name. The short form has these without a kernel that
  // fails (`FilePoints.fail`).
  test.each(isLong ? ['openat', 'fsync', 'rename'] : [])(
    'at %s refuses bytes and keeps those that it has',
    async (call) => {
      const kept = await stage().upload(100_000)
      const mend = await failCalls(fileThreadOf(stage().server.program.pid), call)
      expect(await tryUpload(stage(), 100_000)).toBe(unavailable)
      expect(await tryReplace(stage(), kept.id, 100_000)).toBe(unavailable)
      await mend()
      await isKept(stage(), kept)
      await stage().checkAll(`a disk that failed at ${call}`)
      expect(await tryReplace(stage(), kept.id, 100_000)).toBe('200')
    },
  )

  /** Sends the beginning of an upload, does something, and sends the rest. */
  async function inTwo(path: string, { bytes, first, between }: Halves): Promise<string> {
    const { port, token } = stage().server
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
  test.each(isLong ? writes : writes.slice(-1))(
    'at the write of %s refuses them and keeps those that it has',
    async (_, first, written, calls) => {
      const kept = await stage().upload(100_000)
      for (const path of ['/files', `/files/${kept.id}/replace`]) {
        let mend = async () => {}
        const between = async () => {
          const draft = await waitFor(() => draftOf(stage().folder!, written), 'some bytes are written')
          mend = await failCalls(fileThreadOf(stage().server.program.pid), calls, [draft])
        }
        expect([path, await inTwo(path, { bytes: 2 * mebibyte, first, between })]).toEqual([path, unavailable])
        if (calls.includes('unlink')) expect(draftOf(stage().folder!, 0)).not.toBeNull()
        await mend()
        await isKept(stage(), kept)
        await stage().checkAll(`a disk that failed at the write of ${path}`)
        expect(draftOf(stage().folder!, 0)).toBeNull()
      }
      expect(await tryReplace(stage(), kept.id, 2 * mebibyte)).toBe('200')
    },
  )

  if (!isLong) return
  test('when bytes are removed deletes the file, and the sweep removes them later', async () => {
    const { id } = await stage().upload(100_000)
    const mend = await failCalls(fileThreadOf(stage().server.program.pid), 'unlink')
    expect(outcomeOf(await stage().ask('DELETE', `/files/${id}`))).toBe('204')
    expect(outcomeOf(await stage().ask('GET', `/files/${id}`))).toBe('404 resource_not_found')
    await mend()
    await stage().checkAll('a disk that kept what was deleted')
  })
}
