import { closeSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openHostLog } from './host-log.ts'

test('the log of run hosts is set aside when it is large, and who writes to it goes on', () => {
  const folder = mkdtempSync(join(tmpdir(), 'host-log-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'run-hosts.log')
  const said = (text: string) => {
    const file = openHostLog(path)
    writeSync(file, text)
    return file
  }
  const first = said('one\n')
  closeSync(said('two\n'))
  expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n')
  truncateSync(path, 10 * 1024 * 1024 + 1)
  closeSync(said('three\n'))
  writeSync(first, 'one goes on\n')
  closeSync(first)
  expect(readFileSync(path, 'utf8')).toBe('three\n')
  expect(readFileSync(`${path}.1`, 'utf8').slice(-12)).toBe('one goes on\n')
})
