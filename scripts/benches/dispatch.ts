import type { RunId } from '../../shared/lib/ids.ts'
import type { Device } from '../../shared/api/devices.ts'
import { endReport } from '../../test/kit/end-report.ts'
import { waitFor } from '../../test/kit/programs.ts'
import type { Bench, Context } from './context.ts'
import { connectDevice, endRun, type DeviceSocket } from './device-socket.ts'
import { openGraphile, type Queue } from './graphile.ts'
import { atLeast, atMost, compare, type Result } from './measure.ts'
import { newDatabase, startServer, type BenchServer } from './stack.ts'
import { size } from './sizes.ts'

/**
 * From a wake to the device that is to run it, without the device's own work: one wake at a time, a thousand at once, and
 * as many as can be claimed and finished in a second.
 */
export const dispatch: Bench = {
  name: 'dispatch',
  about: 'wakes given to devices, claimed and finished, against the jobs of graphile-worker',
  async run(context) {
    const cluster = await context.postgres()
    const queue = cluster && (await openGraphile(cluster.urlOf('postgres'), (text) => context.say(text)))
    if (!queue) return []
    try {
      return [
        ...(await measureOn(context, { name: 'SQLite', databaseUrl: null, queue, target: 0.25 })),
        ...(await measureOn(context, {
          name: 'PostgreSQL',
          databaseUrl: await newDatabase(cluster, 'dispatch'),
          queue,
          target: 0.55,
        })),
      ]
    } finally {
      await queue.end()
    }
  },
}

const wakesPerRound = size(40, 2)
const runsAtOnce = size(1_000, 20)
/** As many as a device may have. */
const perDevice = 10

async function measureOn(
  context: Context,
  on: { name: string; databaseUrl: string | null; queue: Queue; target: number },
): Promise<Result[]> {
  const { queue } = on
  const { rounds } = context
  const server = await startServer(context, { name: `dispatch-${on.name}`, databaseUrl: on.databaseUrl })
  try {
    const agent = await server.call<{ id: string }>('POST', '/agents', {
      name: 'Woken',
      harness: 'command',
      command: 'true',
    })
    const fleet = [await connectOne(server, 0)]
    const peerIs = 'graphile-worker'
    const one = (until: 'run.offer' | 'run.start') => () => latencies(server, { fleet, agentId: agent.id, until })
    await one('run.start')()
    await queue.latencies(wakesPerRound)
    const results = [
      await compare({
        goal: 2,
        name: `wake to device (${on.name})`,
        unit: 'ms',
        peerIs,
        target: atMost(on.target),
        rounds,
        ours: one('run.offer'),
        peer: () => queue.latencies(wakesPerRound),
      }),
      await compare({
        name: `wake to claimed lease (${on.name})`,
        unit: 'ms',
        peerIs,
        rounds,
        ours: one('run.start'),
        peer: () => queue.latencies(wakesPerRound),
      }),
    ]
    while (fleet.length < runsAtOnce / perDevice) fleet.push(await connectOne(server, fleet.length))
    const finished: number[] = []
    results.push(
      await compare({
        goal: 3,
        name: `1,000 that wait, to the last offer (${on.name})`,
        unit: 'ms',
        peerIs: `${peerIs}, batched`,
        target: atMost(0.5),
        rounds,
        async ours() {
          const { offeredMs, perSecond } = await burst(server, { fleet, agentId: agent.id })
          finished.push(perSecond)
          return [offeredMs]
        },
        peer: async () => [await queue.burst(runsAtOnce)],
      }),
      await compare({
        goal: 4,
        name: `claims and finishes (${on.name})`,
        unit: '/s',
        peerIs: `${peerIs}, default`,
        target: atLeast(4),
        rounds,
        ours: (round) => Promise.resolve([finished[round]!]),
        peer: async () => [await queue.perSecond(runsAtOnce)],
      }),
    )
    for (const device of fleet) await device.close()
    return results
  } finally {
    await server.end()
  }
}

async function connectOne(server: BenchServer, index: number): Promise<DeviceSocket> {
  const device = await connectDevice(server, `device-${index}`)
  await server.call('PATCH', `/devices/${device.deviceId}`, { maxConcurrentRuns: perDevice })
  await device.next('config.changed')
  return device
}

interface DeviceList {
  devices: Pick<Device, 'claimState'>[]
}

interface Fleet {
  fleet: readonly DeviceSocket[]
  agentId: string
}

/** One after another. */
async function latencies(
  server: BenchServer,
  { fleet, agentId, until }: Fleet & { until: 'run.offer' | 'run.start' },
): Promise<number[]> {
  const samples: number[] = []
  for (let i = 0; i < wakesPerRound; i++) {
    const start = performance.now()
    const reply = server.call('POST', `/agents/${agentId}/runs`, { prompt: 'Go.' })
    const { device, offer } = await Promise.race(
      fleet.map(async (each) => ({ device: each, offer: await each.peek('run.offer') })),
    )
    if (until === 'run.offer') samples.push(performance.now() - start)
    const run = { runId: offer.runId, fence: offer.fence }
    await device.next('run.offer')
    device.send({ type: 'run.accepted', ...run })
    await device.next('run.start')
    if (until === 'run.start') samples.push(performance.now() - start)
    await reply
    await endRun(device, run, 0)
  }
  return samples
}

/** Many runs wait for devices that take none; then all of them have room. What is offered is taken and ended once all is. */
async function burst(
  server: BenchServer,
  { fleet, agentId }: Fleet,
): Promise<{ offeredMs: number; perSecond: number }> {
  const claims = (accepting: boolean) => {
    const claimState = { accepting, reason: accepting ? null : ('paused' as const), message: null, activeRuns: 0 }
    for (const device of fleet) device.send({ type: 'heartbeat', claimState })
  }
  claims(false)
  for (const device of fleet) await device.next('heartbeat.ack')
  // Acknowledged before it is stored, so one of the runs would still be offered.
  await waitFor(async () => {
    const { devices } = await server.call<DeviceList>('GET', '/devices')
    return devices.length === fleet.length && devices.every(({ claimState }) => claimState?.accepting === false)
  }, 'no device takes runs')
  for (let made = 0; made < runsAtOnce; made += 10)
    await Promise.all(
      Array.from({ length: 10 }, () => server.call('POST', `/agents/${agentId}/runs`, { prompt: 'Go.' })),
    )
  const offers: { device: DeviceSocket; runId: RunId; fence: number }[] = []
  const counts = { closed: 0 }
  let [offered, closed] = [() => {}, () => {}]
  const allOffered = new Promise<void>((resolve) => (offered = resolve))
  const allClosed = new Promise<void>((resolve) => (closed = resolve))
  for (const device of fleet)
    device.onMessage((message) => {
      if (message.type === 'run.offer') {
        offers.push({ device, runId: message.runId, fence: message.fence })
        if (offers.length === runsAtOnce) offered()
      } else if (message.type === 'run.start') {
        const { runId, fence } = message
        device.send({ type: 'run.ended', runId, fence, report: endReport() })
      } else if (message.type === 'run.closed' && ++counts.closed === runsAtOnce) closed()
    })
  const start = performance.now()
  claims(true)
  await allOffered
  const offeredMs = performance.now() - start
  const before = performance.now()
  for (const { device, runId, fence } of offers) device.send({ type: 'run.accepted', runId, fence })
  await allClosed
  const perSecond = (runsAtOnce * 1000) / (performance.now() - before)
  for (const device of fleet) device.reset()
  return { offeredMs, perSecond }
}
