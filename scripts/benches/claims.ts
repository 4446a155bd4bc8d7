import type { Bench } from './context.ts'
import { connectDevice, endRun, takeRun, type DeviceSocket } from './device-socket.ts'
import { serverWithRuns } from './many-runs.ts'
import { atMost, compare } from './measure.ts'
import type { BenchServer } from './stack.ts'
import { size } from './sizes.ts'

const few = size(1_000, 100)
const many = size(1_000_000, 1000)
const wakesPerRound = size(60, 2)

/** From the wake's request to the lease that is held, on two servers in turn. */
export const claims: Bench = {
  name: 'claims',
  about: `a wake claimed beside ${many.toLocaleString('en')} runs that have ended, against one beside ${few.toLocaleString('en')}`,
  async run(context) {
    const small = await open(await serverWithRuns(context, { name: 'claims-few', count: few }))
    const large = await open(await serverWithRuns(context, { name: 'claims-many', count: many }))
    try {
      await Promise.all([latencies(small), latencies(large)])
      return [
        await compare({
          goal: 5,
          name: 'wake to claimed lease, 1,000,000 to 1,000 ended runs',
          unit: 'ms',
          peerIs: '1,000 ended runs',
          target: atMost(1.05),
          rounds: context.rounds,
          ours: () => latencies(large),
          peer: () => latencies(small),
        }),
      ]
    } finally {
      for (const { device, server } of [small, large]) {
        await device.close()
        await server.end()
      }
    }
  },
}

interface Side {
  server: BenchServer
  device: DeviceSocket
  agentId: string
}

async function open(server: BenchServer): Promise<Side> {
  const device = await connectDevice(server, 'taker')
  const { data } = await server.call<{ data: { id: string }[] }>('GET', '/agents')
  return { server, device, agentId: data[0]!.id }
}

async function latencies({ server, device, agentId }: Side): Promise<number[]> {
  const samples: number[] = []
  for (let i = 0; i < wakesPerRound; i++) {
    const start = performance.now()
    const run = await takeRun(server, { device, agentId })
    samples.push(performance.now() - start)
    await endRun(device, run, 0)
  }
  return samples
}
