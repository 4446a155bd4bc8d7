import type { RunId } from '../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import pg from 'pg'
import { Forwarder } from '../../device-manager/link/forwarder.ts'
import type { ThrowAwayPostgres } from '../postgres.ts'
import { openSpool } from '../../device-manager/spool/spool.ts'
import { encodeFrame } from '../../shared/device/frame.ts'
import { linkLimits } from '../../shared/device/limits.ts'
import type { Bench, Context } from './context.ts'
import { connectDevice, endRun, takeRun, type DeviceSocket } from './device-socket.ts'
import { atLeast, atMost, compare, type Result } from './measure.ts'
import { newDatabase, startServer, type BenchServer } from './stack.ts'

/**
 * Events stored per second: as the daemon does it (read from its spool, sent in frames, deleted once acknowledged), and
 * with the frames made beforehand (the link and the control plane alone). The peer inserts the same bytes into a table of
 * its own in the same database, 100 rows per statement and commit, with the same durability.
 */
export const ingest: Bench = {
  name: 'ingest',
  about: 'events stored per second, against a bare multi-row insert into the same database',
  async run(context) {
    const results = await measureOn(context, { name: 'SQLite', cluster: null })
    const cluster = await context.postgres()
    if (cluster) results.push(...(await measureOn(context, { name: 'PostgreSQL', cluster })))
    return results
  },
}

const perFrame = 100
const sizes = [
  { bytes: 200, events: 40_000 },
  { bytes: 1024, events: 20_000 },
] as const

async function measureOn(context: Context, on: { name: string; cluster: ThrowAwayPostgres | null }): Promise<Result[]> {
  const databaseUrl = on.cluster === null ? null : await newDatabase(on.cluster, 'ingest')
  const server = await startServer(context, { name: `ingest-${on.name}`, databaseUrl })
  const device = await connectDevice(server, 'sender')
  const { id: agentId } = await server.call<{ id: string }>('POST', '/agents', {
    name: 'Writer',
    harness: 'command',
    command: 'true',
  })
  const bare = databaseUrl === null ? bareSqlite(join(context.scratch, 'bare.db')) : await barePostgres(databaseUrl)
  const results: Result[] = []
  try {
    for (const { bytes, events } of sizes) {
      const lines = makeLines(bytes, events)
      const peer = async () => [events / (await seconds(() => bare.insert(lines)))]
      const shared = { unit: 'events/s', peerIs: 'multi-row insert', rounds: context.rounds, peer }
      const target = atLeast(databaseUrl === null ? (bytes === 200 ? 0.95 : 0.75) : 1.2)
      const goal = databaseUrl === null ? 6 : 7
      const eventsPerSecond = async (send: (run: Run) => Promise<number>) => {
        const { runId, fence } = await takeRun(server, { device, agentId })
        const run = { runId, fence }
        const duration = await send(run)
        await endRun(device, run, events)
        return [events / duration]
      }
      results.push(
        await compare({
          ...shared,
          goal,
          target,
          name: `link to database, ${bytes} B (${on.name})`,
          ours: () => eventsPerSecond((run) => sendFrames(device, { run, lines })),
        }),
        await compare({
          ...shared,
          name: `spool to database, ${bytes} B (${on.name})`,
          ours: (round) => {
            const spool = join(context.scratch, `spool-${on.name}-${bytes}-${round}.db`)
            return eventsPerSecond((run) => sendFromSpool(device, { run, lines, spool }))
          },
        }),
      )
    }
    if (databaseUrl === null) results.push(await bytesStored(server, { device, agentId }))
  } finally {
    await bare.close()
    await device.close()
    await server.end()
  }
  return results
}

async function seconds(work: () => Promise<void>): Promise<number> {
  const start = performance.now()
  await work()
  return (performance.now() - start) / 1000
}

function makeLines(bytes: number, count: number): Buffer[] {
  return Array.from({ length: count }, (_, index) => {
    const head = `{"seq":${index + 1},"at":1767225600000,"kind":"text","data":{"text":"`
    const tail = '"}}\n'
    return Buffer.from(head + 'x'.repeat(bytes - head.length - tail.length) + tail)
  })
}

type Run = { runId: RunId; fence: number }

/** Seconds until the last event is acknowledged. */
async function sendFrames(
  device: DeviceSocket,
  { run, lines }: { run: Run; lines: readonly Buffer[] },
): Promise<number> {
  const frames: Uint8Array[] = []
  for (let at = 0; at < lines.length; at += perFrame) {
    const part = lines.slice(at, at + perFrame)
    const body = Buffer.concat(part)
    const sha256 = createHash('sha256').update(body).digest('hex')
    const kinds = { text: part.length }
    frames.push(
      encodeFrame({ type: 'run.events', ...run, firstSeq: at + 1, lastSeq: at + part.length, kinds, sha256 }, body),
    )
  }
  return seconds(
    () =>
      new Promise<void>((resolve) => {
        let [sent, acknowledged] = [0, 0]
        const windowFrames = Math.max(1, Math.floor(linkLimits.windowBytes / (frames[0]?.length ?? 1)))
        const pump = () => {
          while (sent < frames.length && sent - acknowledged < windowFrames) device.socket.send(frames[sent++]!)
        }
        device.onMessage((message) => {
          if (message.type !== 'ack' || message.runId !== run.runId) return
          acknowledged++
          if (message.seq === lines.length) resolve()
          else pump()
        })
        pump()
      }),
  ).finally(() => device.reset())
}

/** The device's own spool and forwarder. Filling the spool is not measured. */
async function sendFromSpool(
  device: DeviceSocket,
  { run, lines, spool: path }: { run: Run; lines: readonly Buffer[]; spool: string },
): Promise<number> {
  const spool = openSpool(path)
  for (let at = 0; at < lines.length; at += perFrame)
    spool.append(
      run,
      lines.slice(at, at + perFrame).map((line, index) => ({ seq: at + index + 1, line })),
    )
  const link = {
    sendBinary: (frame: Uint8Array) => (device.socket.send(frame), true),
    send: () => true,
    buffered: () => device.socket.bufferedAmount,
    isOpen: () => true,
  }
  const log = { info() {}, warn() {}, error() {}, debug() {} }
  const forwarder = new Forwarder({ spool, link, log })
  try {
    return await seconds(
      () =>
        new Promise<void>((resolve) => {
          device.onMessage((message) => {
            if (message.type !== 'ack' || message.runId !== run.runId) return
            forwarder.acknowledged(message)
            if (message.seq === lines.length) resolve()
          })
          forwarder.begin(run, 0)
        }),
    )
  } finally {
    device.reset()
    spool.close()
  }
}

interface Bare {
  insert(lines: readonly Buffer[]): Promise<void>
  close(): Promise<void>
}

/** As well as one can: integer key, pages of 16 KiB, one prepared statement. */
function bareSqlite(path: string): Bare {
  const db = new Database(path)
  for (const setting of [
    'page_size = 16384',
    'journal_mode = WAL',
    'synchronous = FULL',
    'journal_size_limit = 67108864',
  ])
    db.pragma(setting)
  db.exec(
    'create table events (id integer primary key, run integer not null, seq integer not null, line blob not null)',
  )
  const insert = db.prepare(
    `insert into events (run, seq, line) values ${Array.from({ length: perFrame }, () => '(?, ?, ?)').join(', ')}`,
  )
  return {
    insert(lines) {
      for (let at = 0; at < lines.length; at += perFrame)
        insert.run(lines.slice(at, at + perFrame).flatMap((line, index) => [1, at + index, line]))
      return Promise.resolve()
    },
    close: () => Promise.resolve(void db.close()),
  }
}

async function barePostgres(url: string): Promise<Bare> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(
    'create table bare_events (id bigserial primary key, run integer not null, seq integer not null, line bytea not null)',
  )
  const values = Array.from(
    { length: perFrame },
    (_, index) => `($${index * 3 + 1}, $${index * 3 + 2}, $${index * 3 + 3})`,
  )
  const text = `insert into bare_events (run, seq, line) values ${values.join(', ')}`
  return {
    async insert(lines) {
      for (let at = 0; at < lines.length; at += perFrame)
        await client.query({
          name: 'bare',
          text,
          values: lines.slice(at, at + perFrame).flatMap((line, index) => [1, at + index, line]),
        })
    },
    close: () => client.end(),
  }
}

async function bytesStored(
  server: BenchServer,
  { device, agentId }: { device: DeviceSocket; agentId: string },
): Promise<Result> {
  const db = new Database(join(server.dataDir, 'svc.db'), { readonly: true })
  const size = () =>
    Number(db.pragma('page_count', { simple: true })) * Number(db.pragma('page_size', { simple: true }))
  const lines = makeLines(1024, 20_000)
  try {
    return await compare({
      goal: 8,
      name: 'database bytes per payload byte, 1 KB events',
      unit: 'bytes',
      peerIs: 'payload',
      target: atMost(1.1),
      rounds: 1,
      async ours() {
        const before = size()
        const { runId, fence } = await takeRun(server, { device, agentId })
        await sendFrames(device, { run: { runId, fence }, lines })
        return [size() - before]
      },
      peer: () => Promise.resolve([lines.reduce((sum, line) => sum + line.length, 0)]),
    })
  } finally {
    db.close()
  }
}
