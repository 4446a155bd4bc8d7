import { idFrom, type RunId } from '../../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openSpool } from '../../../device-manager/spool/spool.ts'
import type { StoredEvent } from '../../../shared/runs/events.ts'
import { isLong } from '../../kit/forms.ts'
import { accountOf, outputOf, specOf, spooled, testDevice, until, type TestDevice } from './host-client.ts'

let device: TestDevice
beforeAll(() => {
  device = testDevice()
})
afterAll(() => device.remove())

/** Numbered lines of 100 bytes as the terminal shows them; written by one program, so that they come as fast as can be. */
const lineBytes = 100
function flood(lines: number): string[] {
  const script = `import sys\nw=sys.stdout.write\nfor i in range(${lines}): w("%0${lineBytes - 2}d\\n" % i)`
  return ['python3', '-c', script]
}

/** Walks over output and gaps: what is there is what was printed at that place, and together they are all of it. */
function checkAccount(events: readonly StoredEvent[], lines: number): { gapBytes: number; deliveredBytes: number } {
  const whole = Buffer.alloc(lines * lineBytes)
  for (let i = 0; i < lines; i++) whole.write(`${String(i).padStart(lineBytes - 2, '0')}\r\n`, i * lineBytes, 'latin1')
  let at = 0
  let gapBytes = 0
  let deliveredBytes = 0
  for (const event of events) {
    if (event.kind === 'gap') {
      at += event.data['bytes'] as number
      gapBytes += event.data['bytes'] as number
    }
    const output = outputOf([event])
    if (!output.equals(whole.subarray(at, at + output.length)))
      throw new Error(`event ${event.seq} is not what was printed at ${at}`)
    at += output.length
    deliveredBytes += output.length
  }
  expect(at).toBe(whole.length)
  return { gapBytes, deliveredBytes }
}

describe('more output than there is room for', () => {
  test('beyond the limit of unacknowledged bytes a range is dropped and declared, and the tail kept', async () => {
    const lines = isLong ? 200_000 : 60_000
    const host = await device.host(['--unsent-bytes', '2000000'])
    const spec = specOf(device, { command: flood(lines) })
    await host.launch(spec)
    const { report } = await host.reply('ended')
    const { events, log } = spooled(device, spec.runId)
    const { gapBytes, deliveredBytes } = checkAccount(events, lines)
    expect(report).toMatchObject({ exitReason: 'completed', gapBytes, eventCount: events.length })
    expect(report.logHash).toBe(createHash('sha256').update(log).digest('hex'))
    expect(deliveredBytes).toBeLessThan(4_000_000)
    expect(outputOf(events).subarray(-lineBytes).toString()).toBe(
      `${String(lines - 1).padStart(lineBytes - 2, '0')}\r\n`,
    )
    expect(events.filter(({ kind }) => kind === 'gap').map(({ data }) => data['reason'])).toEqual(['unsent_limit'])
  })

  test('once the daemon has sent and acknowledged, output is kept again', async () => {
    const half = isLong ? 40_000 : 20_000
    const host = await device.host(['--unsent-bytes', '1000000'])
    const [file, flag, script] = flood(half) as [string, string, string]
    const second = script.replace(`range(${half})`, `range(${half}, ${2 * half})`)
    const spec = specOf(device, {
      command: [file, flag, `${script}\nsys.stdout.flush()\ninput()\n${second.split('\n').slice(1).join('\n')}`],
    })
    await host.launch(spec)
    // Full, and taking no more: a daemon that acknowledges sooner leaves nothing to be lost.
    let full = { bytes: 0, since: Date.now() }
    await until(() => {
      const bytes = accountOf(device, spec.runId).stats?.pendingBytes ?? 0
      if (bytes !== full.bytes) full = { bytes, since: Date.now() }
      return bytes > 900_000 && Date.now() - full.since > 1_000
    }, 'a full window')
    const daemon = openSpool(device.spoolPath)
    const key = { runId: spec.runId, fence: 1 }
    const taken: Buffer[] = []
    const events: StoredEvent[] = []
    const takeAll = () => {
      for (let rows = daemon.read(key, daemon.stats(key)!.ackedSeq, 1_000_000); rows.length > 0;) {
        for (const { line } of rows) {
          taken.push(Buffer.from(line))
          events.push(JSON.parse(taken.at(-1)!.toString()) as StoredEvent)
        }
        daemon.ack(key, rows.at(-1)!.seq)
        rows = daemon.read(key, rows.at(-1)!.seq, 1_000_000)
      }
    }
    await until(() => {
      takeAll()
      return events.some(({ kind }) => kind === 'gap')
    }, 'the gap')
    host.send({ type: 'input', inputId: 'go', text: '' })
    await until(() => {
      takeAll()
      return daemon.ending(key) !== null
    }, 'ending')
    takeAll()
    const report = daemon.ending(key)!.report
    daemon.remove(key)
    daemon.close()
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1))
    const last = events.findLast(({ kind }) => kind === 'gap')!
    expect(outputOf(events.filter(({ seq }) => seq > last.seq)).length).toBeGreaterThan(100_000)
    // The terminal shows the typed newline as well: two bytes that are not the program's.
    const echoed = outputOf(events).length + report.gapBytes
    expect(echoed).toBe(2 * half * lineBytes + 2)
    expect(report.logHash).toBe(createHash('sha256').update(Buffer.concat(taken)).digest('hex'))
  })

  test('a full spool: the harness works on, the loss is declared, the ending is stored', async () => {
    const small = testDevice()
    try {
      const lines = isLong ? 300_000 : 100_000
      const host = await small.host(['--spool-pages', '150'])
      const spec = specOf(small, { command: flood(lines) })
      await host.launch(spec)
      const { report } = await host.reply('ended')
      await host.left()
      const { events, ending } = spooled(small, spec.runId)
      const { gapBytes } = checkAccount(events, lines)
      // All but what the spool and the memory hold.
      expect(gapBytes).toBeGreaterThan(lines * lineBytes - 8_000_000)
      expect(events.some(({ kind, data }) => kind === 'gap' && data['reason'] === 'spool_full')).toBe(true)
      expect(ending?.report).toEqual(report)
      expect(report).toMatchObject({ exitReason: 'completed', exitCode: 0, gapBytes })
      // It was tried again with back-off, not in a loop.
      expect(host.log.split('\n').length).toBeLessThan(60)
    } finally {
      small.remove()
    }
  })

  test('room that comes back in mid-run is used without a restart', async () => {
    const small = testDevice()
    try {
      const filler = openSpool(small.spoolPath)
      const other = { runId: idFrom<RunId>('run_filler'), fence: 1 }
      const line = Buffer.from(`${'x'.repeat(15_000)}\n`)
      for (let seq = 1; seq <= 400; seq++) filler.append(other, [{ seq, line }])
      const host = await small.host(['--spool-pages', '420'])
      const [printed, go] = [join(small.workDir, 'printed'), join(small.workDir, 'go')]
      const spec = specOf(small, {
        command: `head -c 6000000 /dev/zero | tr '\\0' 'x'; touch ${printed}; until [ -e ${go} ]; do sleep 0.05; done; echo END`,
      })
      await host.launch(spec)
      // Room that came back as soon as dropping began could save all of it: the tail is in memory.
      await until(() => host.log.includes('output_dropping') && existsSync(printed), 'more printed than memory holds')
      filler.remove(other)
      filler.close()
      await until(
        () => spooled(small, spec.runId).events.some(({ kind }) => kind === 'gap'),
        'the gap, while the run lives',
      )
      writeFileSync(go, '')
      const { report } = await host.reply('ended')
      const { events } = spooled(small, spec.runId)
      expect(outputOf(events).length + report.gapBytes).toBe(6_000_000 + 'END\r\n'.length)
      expect(outputOf(events).toString()).toMatch(/xEND\r\n$/)
    } finally {
      small.remove()
    }
  })

  test('memory stays bounded and a stop works at once while a program floods', async () => {
    const quiet = await stopped(['sleep', '1000'])
    const windowBytes = isLong ? 4_000_000 : 1_000_000
    const host = await device.host(['--unsent-bytes', String(windowBytes)])
    const spec = specOf(device, { command: ['yes', 'a line of a program that never ends'] })
    await host.launch(spec)
    await until(() => (accountOf(device, spec.runId).stats?.pendingBytes ?? 0) > windowBytes - 100_000, 'a full window')
    const rss: number[] = []
    const floodedAt = Date.now() + (isLong ? 3_000 : 1_000)
    // By what it has read since, too: on a busy machine little comes in a second.
    const enough = readBy(host.child.pid!) + 5_000_000
    await until(() => {
      rss.push(rssOf(host.child.pid!))
      return Date.now() > floodedAt && readBy(host.child.pid!) > enough
    }, 'some megabytes of flood')
    expect(Math.max(...rss)).toBeLessThan(180 * 1024 * 1024)
    const { ms, report } = await stop(host)
    // However busy the machine is, that one is stopped on it too.
    expect(ms).toBeLessThan(2_000 + 5 * quiet)
    expect(report.gapBytes).toBeGreaterThan(1_000_000)
  })
})

type Host = Awaited<ReturnType<typeof device.host>>

async function stop(host: Host) {
  const before = performance.now()
  host.send({ type: 'stop', exitReason: 'interrupted', message: null })
  const { report } = await host.reply('ended')
  return { ms: performance.now() - before, report }
}

/** Returns how long it takes to stop a program that prints nothing. */
async function stopped(command: string[]): Promise<number> {
  const host = await device.host()
  await host.launch(specOf(device, { command }))
  return (await stop(host)).ms
}

function rssOf(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}

/** Returns the bytes that a process has read from files, pipes and terminals. */
function readBy(pid: number): number {
  return Number(/^rchar: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])
}
