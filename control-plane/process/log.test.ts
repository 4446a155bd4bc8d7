import { spawnSync } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createLog } from './log.ts'

function logInFile() {
  const folder = mkdtempSync(join(tmpdir(), 'svc-log-'))
  const file = join(folder, 'log')
  const descriptor = openSync(file, 'a')
  // The file stays open: the log may write to it as long as it is there, as it may to standard error.
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const messages = () =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => (JSON.parse(line) as { msg: string }).msg)
  return { log: createLog({ level: 'info', pretty: false, descriptor }), messages }
}

/** A busy machine may be slow to write. */
const patience = { timeout: 10_000 }

test('lines arrive in order, soon after they were written', async () => {
  const { log, messages } = logInFile()
  const written = Array.from({ length: 200 }, (_, index) => `line ${index}`)
  for (const message of written) log.info({ a: 1 }, message)
  await expect.poll(messages, patience).toEqual(written)
  log.info({}, 'one more')
  await expect.poll(messages, patience).toEqual([...written, 'one more'])
})

test('no token of this service gets into the log', async () => {
  const { log, messages } = logInFile()
  log.warn({}, `somebody sent svc_pat_${'a1B2'.repeat(10)}xyz`)
  await expect.poll(messages, patience).toEqual(['somebody sent [redacted:svc_pat]'])
})

test('child loggers write to the same place, and lines below the level are dropped', async () => {
  const { log, messages } = logInFile()
  log.debug({}, 'hidden')
  log.child({ requestId: 'r' }).info({}, 'of a child')
  log.child({ requestId: 'r' }).error({ err: new Error('no') }, 'failed')
  await expect.poll(messages, patience).toEqual(['of a child', 'failed'])
})

test('everything a process logged is written when it exits', () => {
  const script = `
    import { createLog } from ${JSON.stringify(join(import.meta.dirname, 'log.ts'))}
    const log = createLog({ level: 'info', pretty: false })
    log.info({}, 'first')
    log.info({}, 'last')
    process.exit(3)`
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  const messages = stderr.split('\n').filter((line) => line.startsWith('{'))
  expect(status).toBe(3)
  expect(messages.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(['first', 'last'])
})
