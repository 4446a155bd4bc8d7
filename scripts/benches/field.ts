import { execFileSync } from 'node:child_process'
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { placesIn } from '../../device-manager/setup/places.ts'
import { hostRecord } from '../../device-manager/run-host/wire/protocol.ts'
import type { Bench, Context } from './context.ts'
import { atMost, compare, type Comparison } from './measure.ts'
import { processFigures, startDevice, startServer } from './stack.ts'
import { createAgent, openPipe, wakeOnce } from './wake.ts'

/**
 * Figures of paperclip 2026.916.1, a system of the same kind, as they were measured on a quiet machine of the kind the tests
 * run on. It is not started here, so these ratios mean something on such a machine only.
 */
const paperclip = { wakeMs: 225, idleBytes: 570 * 1024 ** 2, firstStartMs: 6_600, installedBytes: 1.27e9 }
const megabyte = 1024 ** 2

export const field: Bench = {
  name: 'field',
  about: 'wake, idle memory, first start and installed size, against the recorded figures of a peer in the field',
  async run(context) {
    const figures = { wakeMs: [] as number[], idleBytes: [] as number[], firstStartMs: [] as number[] }
    for (let round = 0; round < context.rounds; round++) {
      const measured = await oneRound(context, round)
      figures.wakeMs.push(measured.wakeMs)
      figures.idleBytes.push(measured.idleBytes)
      figures.firstStartMs.push(measured.firstStartMs)
    }
    const installed = bytesIn(context.dist) + dependencyBytes()
    const common = { goal: 19, peerIs: 'recorded peer', rounds: context.rounds }
    const each = (values: readonly number[]) => (round: number) => Promise.resolve([values[round] ?? Number.NaN])
    const always = (value: number) => () => Promise.resolve([value])
    const inMegabytes = (values: readonly number[]) => values.map((value) => value / megabyte)
    const comparisons: Comparison[] = [
      {
        ...common,
        name: 'wake to first instruction',
        unit: 'ms',
        target: atMost(1 / 10),
        ours: each(figures.wakeMs),
        peer: always(paperclip.wakeMs),
      },
      {
        ...common,
        name: 'server, daemon and run host, idle',
        unit: 'MB',
        target: atMost(1 / 5),
        ours: each(inMegabytes(figures.idleBytes)),
        peer: always(paperclip.idleBytes / megabyte),
      },
      {
        ...common,
        name: 'first start of the server',
        unit: 'ms',
        target: atMost(1 / 4),
        ours: each(figures.firstStartMs),
        peer: always(paperclip.firstStartMs),
      },
      {
        ...common,
        name: 'installed size',
        unit: 'MB',
        target: atMost(1 / 5),
        ours: always(installed / megabyte),
        peer: always(paperclip.installedBytes / megabyte),
      },
    ]
    return Promise.all(comparisons.map(compare))
  },
}

async function oneRound(context: Context, round: number) {
  const pipe = openPipe(join(context.scratch, `field-pipe-${round}`))
  const start = performance.now()
  const server = await startServer(context, { name: `field-${round}` })
  const firstStartMs = performance.now() - start
  const device = await startDevice(context, { server, name: `field-device-${round}` })
  try {
    await device.whenWarm()
    const hosts = readdirSync(placesIn(device.stateDir).hosts)
      .filter((file) => file.endsWith('.json'))
      .map((file) => readFileSync(join(placesIn(device.stateDir).hosts, file), 'utf8'))
      .map((text) => hostRecord.parse(JSON.parse(text)).pid)
    const pids = [server.program.pid, device.program.pid, ...hosts]
    const idleBytes = pids.reduce((sum, pid) => sum + processFigures(pid).rssBytes, 0)
    const agent = await createAgent(server, pipe, { where: 'anywhere', defaultFolderId: undefined })
    await wakeOnce(server, { device, pipe, agent })
    const wakeMs = await wakeOnce(server, { device, pipe, agent })
    return { wakeMs, idleBytes, firstStartMs }
  } finally {
    pipe.close()
    await device.end()
    await server.end()
  }
}

/** Counts the bytes that npm puts on a disk for those who use the programs. */
function dependencyBytes(): number {
  const root = resolve(import.meta.dirname, '../..')
  const listed = execFileSync('npm', ['ls', '--omit=dev', '--all', '--parseable'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const folders = new Set(listed.split('\n').filter((path) => path !== '' && path !== root))
  // One within another is counted with it.
  const outer = [...folders].filter((path) => ![...folders].some((other) => path.startsWith(`${other}/`)))
  return outer.reduce((sum, path) => sum + bytesIn(path), 0)
}

function bytesIn(path: string): number {
  const entry = lstatSync(path)
  if (!entry.isDirectory()) return entry.size
  return readdirSync(path).reduce((sum, name) => sum + bytesIn(join(path, name)), 0)
}
