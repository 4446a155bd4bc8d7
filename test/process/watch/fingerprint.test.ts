import { linkSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { fingerprintOf, watchPoints } from '../../../device-manager/watch/fingerprint.ts'
import { whyUnwatchable } from '../../../device-manager/watch/watchable.ts'

let root: string
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'svc-print-')))
  onTestFinished(() => rmSync(root, { recursive: true }))
})
const at = (...names: string[]) => join(root, ...names)

test('a fingerprint differs when a file is written or replaced, and not when a file is made in a folder', async () => {
  writeFileSync(at('file'), 'a')
  mkdirSync(at('folder'))
  const [file, folder, none] = [
    await fingerprintOf(at('file')),
    await fingerprintOf(at('folder')),
    await fingerprintOf(at('x')),
  ]
  expect(none).toBe('ENOENT')
  writeFileSync(at('folder', 'new'), '')
  expect(await fingerprintOf(at('folder'))).toBe(folder)
  renameSync(at('folder'), at('other'))
  mkdirSync(at('folder'))
  expect(await fingerprintOf(at('folder'))).not.toBe(folder)
  writeFileSync(at('file'), 'b')
  const written = await fingerprintOf(at('file'))
  expect(written).not.toBe(file)
  writeFileSync(at('next'), 'b')
  renameSync(at('next'), at('file'))
  expect(await fingerprintOf(at('file'))).not.toBe(written)
  expect(await fingerprintOf(`${root}\0`)).toBe('ERR_INVALID_ARG_VALUE')
})

test('of a symlink both count, itself and where it leads', async () => {
  writeFileSync(at('one'), '')
  linkSync(at('one'), at('two'))
  symlinkSync(at('one'), at('link'))
  const before = await fingerprintOf(at('link'))
  symlinkSync(at('two'), at('next'))
  renameSync(at('next'), at('link'))
  const led = await fingerprintOf(at('link'))
  expect(led).not.toBe(before)
  rmSync(at('two'))
  expect(await fingerprintOf(at('link'))).toMatch(/ENOENT$/)
})

test('a path is watched where it is, where it leads, or where its first missing part would come', async () => {
  mkdirSync(at('folder'))
  symlinkSync(at('folder'), at('link'))
  symlinkSync(at('loop'), at('loop'))
  writeFileSync(at('file'), '')
  expect(await watchPoints(at('folder'))).toEqual([at('folder')])
  expect(await watchPoints(at('link'))).toEqual([at('link'), at('folder')])
  expect(await watchPoints(at('a', 'b', 'c'))).toEqual([at('a')])
  expect(await watchPoints(at('loop'))).toEqual([at('loop')])
  expect(await watchPoints(at('loop', 'x'))).toEqual([])
  expect(await watchPoints(at('file', 'x'))).toEqual([])
  expect(await watchPoints('/')).toEqual(['/'])
})

test('a folder of thousands of entries is not watched', async () => {
  mkdirSync(at('folder'))
  expect([await whyUnwatchable(at('folder')), await whyUnwatchable(at('none'))]).toEqual([null, null])
  for (let count = 0; count <= 2_000; count++) writeFileSync(at('folder', `f${count}`), '')
  expect(await whyUnwatchable(at('folder'))).toMatch(/2000 entries/)
  await expect(whyUnwatchable(at('none', 'deep'))).rejects.toThrow(/ENOENT/)
})
