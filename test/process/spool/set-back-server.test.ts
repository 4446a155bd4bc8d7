import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Forwarder } from '../../../device-manager/link/forwarder.ts'
import { openSpool, type Spool } from '../../../device-manager/spool/spool.ts'
import { decodeFrame } from '../../../shared/device/frame.ts'
import type { DeviceMessage, EventsHeader } from '../../../shared/device/protocol.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { endReport } from '../../kit/end-report.ts'

const key = { runId: realWorld.id('run_'), fence: 3 }
const log = { info() {}, warn() {}, error() {}, debug() {} }

let folder: string
let spool: Spool
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-set-back-'))
  spool = openSpool(join(folder, 'spool.db'), { reserveBytes: 64 * 1024 })
})
afterEach(() => {
  spool.close()
  rmSync(folder, { recursive: true, force: true })
})

const eventOf = (seq: number, kind: string, data = {}) => Buffer.from(`${JSON.stringify({ seq, at: 1, kind, data })}\n`)
function append(from: number, to: number): void {
  for (let seq = from; seq <= to; seq++) spool.append(key, [{ seq, line: eventOf(seq, 'output') }])
}
function end(seq: number): void {
  const report = endReport({ eventCount: seq })
  spool.end(key, [{ seq, line: eventOf(seq, 'ended') }], { report, changeSet: null })
}

/** A control plane that stores what follows what it has, and answers each frame with the last number it has. */
class Server {
  readonly stored: { seq: number; kind: string; data: { events?: number; bytes?: number; reason?: string } }[] = []
  readonly endings: (DeviceMessage & { type: 'run.ended' })[] = []
  readonly forwarder = new Forwarder({
    spool,
    log,
    link: {
      sendBinary: (frame) => this.#heard(() => this.#takeEvents(frame)),
      send: (message) => this.#heard(() => this.#takeEnding(message)),
      buffered: () => 0,
      isOpen: () => true,
    },
  })
  frames = 0
  #heardLately: (() => void)[] = []

  get lastSeq(): number {
    return this.stored.at(-1)?.seq ?? 0
  }

  /** Everything that is under way is answered; a link that is never still is cut. */
  settle(): void {
    for (let answers = 0; answers < 100; answers++) {
      const answer = this.#heardLately.shift()
      if (!answer) return
      answer()
    }
    throw new Error('the device sends the same again and again')
  }

  /** As from a backup that was made when it had so many events. */
  setBackTo(seq: number): void {
    this.stored.splice(seq)
    this.forwarder.reset()
    this.forwarder.begin(key, seq)
    this.settle()
  }

  #heard(answer: () => void): boolean {
    this.#heardLately.push(answer)
    return true
  }

  #takeEvents(frame: Uint8Array): void {
    this.frames++
    const decoded = decodeFrame(frame)
    if (!decoded.ok) throw new Error('a frame that cannot be read')
    const { header, body } = decoded
    const { firstSeq } = header as EventsHeader
    const lines = Buffer.from(body).toString().trimEnd().split('\n')
    if (firstSeq === this.lastSeq + 1) this.stored.push(...lines.map((line) => JSON.parse(line) as Server['stored'][0]))
    this.forwarder.acknowledged({ ...key, seq: this.lastSeq })
  }

  #takeEnding(message: DeviceMessage): void {
    if (message.type !== 'run.ended') return
    if (message.report.eventCount > this.lastSeq) this.forwarder.acknowledged({ ...key, seq: this.lastSeq })
    else this.endings.push(message)
  }
}

describe('a control plane that has less than it had acknowledged', () => {
  let server: Server
  beforeEach(() => {
    server = new Server()
    append(1, 10)
    server.forwarder.begin(key, 0)
    server.settle()
  })
  const storedKinds = () => server.stored.slice(4).map(({ seq, kind, data }) => [seq, kind, data.events])

  test('while the run goes on: what nobody has is declared, and what came after it follows with the ending', () => {
    expect([server.lastSeq, spool.stats(key)?.ackedSeq]).toEqual([10, 10])
    server.setBackTo(4)
    append(11, 12)
    server.forwarder.pump(key.runId)
    server.settle()
    end(13)
    server.forwarder.pump(key.runId)
    server.settle()
    expect(storedKinds()).toEqual([
      [5, 'gap', 6],
      [6, 'output', undefined],
      [7, 'output', undefined],
      [8, 'ended', undefined],
    ])
    const bytes = eventOf(1, 'output').length * 6
    expect(server.stored[4]!.data).toMatchObject({ reason: 'server_restored' })
    // Of rows that are gone only the sum is known: nine of ten have one digit less than the last.
    expect(Math.abs(server.stored[4]!.data.bytes! - bytes)).toBeLessThanOrEqual(1)
    expect(server.endings).toMatchObject([{ report: { eventCount: 8, logHash: '' } }])
    expect(server.endings[0]!.report.gapBytes).toBe(server.stored[4]!.data.bytes)
    expect(server.frames).toBeLessThan(5)
  })

  test('when all of the run was acknowledged but its ending: the last event is told anew', () => {
    end(11)
    // The event of the ending is stored, the ending itself is not.
    server.forwarder.pump(key.runId)
    server.settle()
    server.endings.length = 0
    server.setBackTo(4)
    expect(storedKinds()).toEqual([
      [5, 'gap', 6],
      [6, 'ended', undefined],
    ])
    expect(server.endings).toMatchObject([{ report: { eventCount: 6 } }])
  })

  test('twice: each loss is counted once', () => {
    server.setBackTo(8)
    append(11, 11)
    server.forwarder.pump(key.runId)
    server.settle()
    server.setBackTo(4)
    end(12)
    server.forwarder.pump(key.runId)
    server.settle()
    server.setBackTo(2)
    expect(server.stored.slice(2).map(({ seq, kind, data }) => [seq, kind, data.events])).toEqual([
      [3, 'gap', 2],
      [4, 'gap', 4],
      [5, 'gap', 2],
      [6, 'output', undefined],
      [7, 'ended', undefined],
    ])
    expect(server.endings.at(-1)).toMatchObject({ report: { eventCount: 7 } })
  })
})
