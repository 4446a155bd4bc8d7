import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { smallDisk, whyNoSmallDisk, type SmallDisk } from '../kit/small-disk.ts'
import { isKept, mebibyte, outcomeOf, tryReplace, tryUpload, unavailable } from './failing-storage.ts'
import { startFilesStage, type FilesStage } from './files-stage.ts'

// Storage that is full or away under a real server: it is told, and loses nothing that was stored.

let stage: FilesStage

const whyNotFull = whyNoSmallDisk()
if (whyNotFull !== null) process.stderr.write(`NOT RUN: ${whyNotFull}, so no storage of files was really full\n`)

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
    expect(await tryUpload(stage, 9 * mebibyte)).toBe(unavailable)
    await stage.checkAll('a file too large for the disk')
    disk.fill()
    expect(await tryUpload(stage, 10)).toBe(unavailable)
    expect(await tryReplace(stage, kept.id, 10)).toBe(unavailable)
    await isKept(stage, kept)
    expect(outcomeOf(await stage.ask('DELETE', `/files/${other.id}`))).toBe('204')
    disk.free()
    await stage.checkAll('a disk that was full')
    expect(await tryUpload(stage, mebibyte)).toBe('201')
    await isKept(stage, kept)
  })
})

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
    expect(await tryUpload(stage, 6 * mebibyte)).toBe('201')
    stage.bucket!.fault(({ method }) => (method === 'PUT' ? fault : null))
    expect(await tryUpload(stage, 6 * mebibyte)).toBe(unavailable)
    expect(await tryReplace(stage, kept.id, 100)).toBe(unavailable)
    stage.bucket!.fault(() => fault)
    expect(outcomeOf(await stage.ask('GET', `/files/${kept.id}/download`))).toBe(unavailable)
    expect(outcomeOf(await stage.ask('GET', `/files/${kept.id}`))).toBe('200')
    stage.bucket!.fault(null)
    await isKept(stage, kept)
    await stage.checkAll(`a bucket with ${fault}`)
  })
})
