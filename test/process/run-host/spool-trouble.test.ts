import { idFrom, type RunId } from '../../../shared/lib/ids.ts'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openSpool } from '../../../device-manager/spool/spool.ts'
import { outputOf, specOf, spooled, testDevice, until, type TestDevice, type TestHost } from './host-client.ts'

let device: TestDevice
beforeEach(() => {
  device = testDevice()
})
afterEach(() => device.remove())

const lines = (count: number) => Array.from({ length: count }, (_, i) => `line ${i + 1}\r\n`).join('')

/** Prints `before` lines, waits for a typed newline (echoed), prints on up to `after`; `more` makes the first ones longer. */
async function launchTwoParts(before: number, after: number, more = ''): Promise<{ host: TestHost; runId: string }> {
  const host = await device.host()
  const spec = specOf(device, {
    command: `stty -echo; for i in $(seq ${before}); do echo "line $i${more}"; sleep 0.01; done; echo ready; read x; for i in $(seq ${before + 1} ${after}); do echo "line $i"; done`,
  })
  await host.launch(spec)
  await until(() => outputOf(spooled(device, spec.runId).events).includes('ready'), 'the first part')
  return { host, runId: spec.runId }
}

/** Overwrites pages in the middle of the file, and opens it as a daemon does when it starts. */
function damage(from: number, bytes: number): NonNullable<ReturnType<typeof openSpool>['salvage']> {
  const raw = new Database(device.spoolPath)
  raw.pragma('wal_checkpoint(truncate)')
  raw.close()
  const file = readFileSync(device.spoolPath)
  file.fill(0xee, from, from + bytes)
  writeFileSync(device.spoolPath, file)
  const daemon = openSpool(device.spoolPath)
  daemon.close()
  if (!daemon.salvage) throw new Error('nothing was damaged')
  return daemon.salvage
}

describe('a run host whose spool is in trouble', () => {
  test('waits out a lock that another process holds; nothing is lost', async () => {
    const { host, runId } = await launchTwoParts(5, 2_000)
    const holder = new Database(device.spoolPath)
    holder.exec('begin immediate')
    host.send({ type: 'input', inputId: '1', text: '' })
    await until(() => host.log.split('_write_failed').length > 4, 'some tries')
    holder.exec('rollback')
    holder.close()
    const { report } = await host.reply('ended')
    await host.left()
    expect(report).toMatchObject({ exitReason: 'completed', gapBytes: 0 })
    expect(outputOf(spooled(device, runId).events).toString().replace('ready\r\n', '')).toBe(lines(2_000))
  })

  test('goes on when the file was set aside and all of its rows were salvaged', async () => {
    const { host, runId } = await launchTwoParts(5, 10)
    // The header: everything else can be read.
    expect(damage(0, 100).runs).toMatchObject([{ runId, keptSeq: spooled(device, runId).events.length }])
    host.send({ type: 'input', inputId: '1', text: '' })
    const { report } = await host.reply('ended')
    await host.left()
    const { events } = spooled(device, runId)
    expect(report).toMatchObject({ exitReason: 'completed', eventCount: events.length })
    expect(outputOf(events).toString().replace('ready\r\n', '')).toBe(lines(10))
  })

  test('tells the daemon of a file that it cannot read, and goes on once that was set right', async () => {
    const { host, runId } = await launchTwoParts(5, 10)
    const raw = new Database(device.spoolPath)
    raw.pragma('wal_checkpoint(truncate)')
    raw.close()
    const file = readFileSync(device.spoolPath)
    file.fill(0xee, 0, 100)
    writeFileSync(device.spoolPath, file)
    host.send({ type: 'input', inputId: '1', text: '' })
    expect((await host.reply('spool_damaged')).message).toContain('SQLITE_NOTADB')
    openSpool(device.spoolPath).close()
    const { report } = await host.reply('ended')
    await host.left()
    expect(report).toMatchObject({ exitReason: 'completed', gapBytes: 0 })
    expect(outputOf(spooled(device, runId).events).toString().replace('ready\r\n', '')).toBe(lines(10))
  })

  test('tells the daemon of a file that is gone, also of one that goes before its ending is written', async () => {
    const host = await device.host()
    const went = join(device.workDir, 'went')
    const spec = specOf(device, {
      command: `trap 'while [ ! -e "${went}" ]; do sleep 0.02; done; exit 1' INT; stty -echo; echo ready; read x; echo more; while :; do sleep 0.02; done`,
    })
    const removeSpool = () => {
      for (const suffix of ['', '-wal', '-shm']) rmSync(device.spoolPath + suffix)
    }
    await host.launch(spec)
    await until(() => outputOf(spooled(device, spec.runId).events).includes('ready'), 'it runs')
    removeSpool()
    host.send({ type: 'input', inputId: '1', text: '' })
    await host.reply('spool_gone')
    openSpool(device.spoolPath).close()
    await until(() => host.log.includes('spool_broken'), 'its rows are missed')
    removeSpool()
    openSpool(device.spoolPath).close()
    writeFileSync(went, '')
    const { report } = await host.reply('ended')
    await host.left()
    expect(report).toMatchObject({ exitReason: 'crashed', logHash: '' })
    expect(spooled(device, spec.runId).ending?.report).toEqual(report)
  })

  test('ends the run as crashed when rows were lost, and uses no seq twice', async () => {
    const { host, runId } = await launchTwoParts(150, 250, 'x'.repeat(1_000))
    const known = spooled(device, runId).events.length
    const size = readFileSync(device.spoolPath).length
    const [run] = damage(size - 3 * 16_384, 3 * 16_384).runs
    expect(run!.keptSeq).toBeLessThan(known)
    host.send({ type: 'input', inputId: '1', text: '' })
    const { report } = await host.reply('ended')
    await host.left()
    const left = spooled(device, runId)
    expect(report).toMatchObject({ exitReason: 'crashed', eventCount: run!.keptSeq + 1, logHash: '' })
    expect(report.message).toContain(`${run!.keptSeq} of ${known}`)
    expect(left.ending?.report).toEqual(report)
    expect(left.events.length).toBe(run!.keptSeq)

    // The server has three of the events that were lost; so what comes after them is numbered above those.
    const spool = openSpool(device.spoolPath)
    const key = { runId: idFrom<RunId>(runId), fence: 1 }
    spool.settle(key, run!.keptSeq + 3)
    spool.ack(key, run!.keptSeq + 3)
    const rows = spool
      .read(key, run!.keptSeq + 3, 1e6)
      .map(({ line }) => JSON.parse(String(Buffer.from(line))) as object)
    const events = known - run!.keptSeq - 3
    expect(rows).toMatchObject([
      { seq: run!.keptSeq + 4, kind: 'gap', data: { reason: 'spool_damaged', events } },
      { seq: run!.keptSeq + 5, kind: 'ended', data: { exitReason: 'crashed' } },
    ])
    expect(spool.ending(key)?.report).toMatchObject({ eventCount: run!.keptSeq + 5 })
    expect(spool.ending(key)?.report.gapBytes).toBeGreaterThan(0)
    // Once: the numbers are certain now.
    spool.settle(key, run!.keptSeq + 5)
    expect(spool.stats(key)).toMatchObject({ lastSeq: run!.keptSeq + 5, certainSeq: null })
    spool.close()
  })
})
