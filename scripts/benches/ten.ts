import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { HostDemand, usableMemory } from '../../device-manager/run/hosts/host-demand.ts'
import { waitFor } from '../../test/kit/programs.ts'
import type { Bench, Context } from './context.ts'
import { atMost, compare, type Result } from './measure.ts'
import { newDatabase, startDevice, startServer, type BenchDevice, type BenchServer } from './stack.ts'
import { createAgent, openPipe, type Pipe } from './wake.ts'

const atOnce = 10

/**
 * Ten agents on one device are woken at once: from the first request to the first instruction of the last harness, against ten bare Nodes
 * that are started at once, until the last has ended. As many run hosts stand by as the device manager keeps after such a moment, and the
 * others start meanwhile.
 */
export const ten: Bench = {
  name: 'ten',
  about: 'ten wakes at once on one device, until the last harness begins, against ten bare nodes',
  async run(context) {
    const pipe = openPipe(join(context.scratch, 'ten-pipe'))
    const results: Result[] = []
    try {
      results.push(await measureOn(context, pipe, { name: 'SQLite', databaseUrl: null }))
      const cluster = await context.postgres()
      if (cluster)
        results.push(
          await measureOn(context, pipe, { name: 'PostgreSQL', databaseUrl: await newDatabase(cluster, 'ten') }),
        )
    } finally {
      pipe.close()
    }
    return results
  },
}

async function measureOn(
  context: Context,
  pipe: Pipe,
  { name, databaseUrl }: { name: string; databaseUrl: string | null },
): Promise<Result> {
  const server = await startServer(context, { name: `ten-${name}`, databaseUrl })
  const device = await startDevice(context, { server, name: `ten-${name}-device` })
  try {
    await takeTen(server, device)
    const agents: string[] = []
    for (let number = 1; number <= atOnce; number++)
      agents.push(await createAgent(server, pipe, { where: String(number), defaultFolderId: undefined }))
    // As many hosts stand by as after every such moment.
    const demand = new HostDemand({ memory: usableMemory() })
    for (let taken = 0; taken < atOnce; taken++) demand.note(0)
    const standing = demand.wanted(0, { room: atOnce })
    const ours = async (hosts = standing) => [await wakeAll(server, { device, pipe, agents, hosts })]
    // Once before, so that what is compiled at the first use is compiled, and the moment is one that is remembered.
    await ours(1)
    return await compare({
      goal: 20,
      name: `${atOnce} wakes at once to the last first instruction (${name})`,
      unit: 'ms',
      peerIs: `${atOnce} bare nodes at once`,
      target: atMost(2),
      rounds: context.rounds,
      ours: () => ours(),
      // What ours leaves to do, such as hosts that stand by anew, is none of the peer's.
      peer: async () => (await device.whenWarm(standing), [await startBareNodes()]),
    })
  } finally {
    await device.end()
    await server.end()
  }
}

async function takeTen(server: BenchServer, { publicId }: BenchDevice): Promise<void> {
  const { devices } = await server.call<{ devices: { publicId: string; deviceId: string }[] }>('GET', '/devices')
  const { deviceId } = devices.find((device) => device.publicId === publicId)!
  await server.call('PATCH', `/devices/${deviceId}`, { maxConcurrentRuns: atOnce })
}

async function wakeAll(
  server: BenchServer,
  { device, pipe, agents, hosts }: { device: BenchDevice; pipe: Pipe; agents: readonly string[]; hosts: number },
): Promise<number> {
  await device.whenWarm(hosts)
  const written = pipe.next(agents.length)
  const sentAt = performance.now()
  const replies = Promise.all(
    agents.map((agent) => server.call<{ runPublicId: string }>('POST', `/agents/${agent}/runs`, { prompt: 'Go.' })),
  )
  const ms = (await written) - sentAt
  for (const { runPublicId } of await replies)
    await waitFor(
      async () => (await server.call<{ status: string }>('GET', `/runs/${runPublicId}`)).status === 'succeeded',
      'the run ended',
      { everyMs: 100 },
    )
  return ms
}

async function startBareNodes(): Promise<number> {
  const startedAt = performance.now()
  const nodes = Array.from({ length: atOnce }, () => spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }))
  await Promise.all(nodes.map((node) => once(node, 'exit')))
  return performance.now() - startedAt
}
