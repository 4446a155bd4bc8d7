import type { RunId } from '../../shared/lib/ids.ts'
import { join } from 'node:path'
import { openDatabase, type Database } from '../../control-plane/db/open.ts'
import { waitFor } from '../../test/kit/programs.ts'
import type { Context } from './context.ts'
import { connectDevice, endRun, takesRuns, type DeviceSocket } from './device-socket.ts'
import { newDatabase, startServer, type BenchServer } from './stack.ts'

/** A database to measure workflows on. */
export interface On {
  name: string
  /** An empty database of its own; null: SQLite in the folder of the server. */
  newDatabase(name: string): Promise<string | null>
}

export async function databases(context: Context): Promise<On[]> {
  const cluster = await context.postgres()
  const sqlite: On = { name: 'SQLite', newDatabase: () => Promise.resolve(null) }
  if (!cluster) return [sqlite]
  return [sqlite, { name: 'PostgreSQL', newDatabase: (name) => newDatabase(cluster, name.replaceAll('-', '_')) }]
}

/** A server, and a way past it to what it has stored. */
export interface Side {
  server: BenchServer
  root: Database['root']
  end(): Promise<void>
}

export async function startSide(
  context: Context,
  { on, name, nodeFlags = [] }: { on: On; name: string; nodeFlags?: readonly string[] },
): Promise<Side> {
  const databaseUrl = await on.newDatabase(name)
  const server = await startServer(context, { name: `${name}-${on.name}`, databaseUrl, nodeFlags })
  const database = openDatabase({ url: databaseUrl ?? join(server.dataDir, 'svc.db') })
  return {
    server,
    root: database.root,
    async end() {
      await database.close()
      await server.end()
    },
  }
}

/** The same with an agent and the device that does its runs, without a device manager behind it. */
export interface WorkflowStack extends Side {
  agentId: string
  device: DeviceSocket
}

export async function startWorkflowStack(context: Context, on: On): Promise<WorkflowStack> {
  const side = await startSide(context, { on, name: 'workflows' })
  const device = await connectDevice(side.server, 'taker')
  // On a slow machine the rounds take longer than its lease.
  const beating = setInterval(() => device.send({ type: 'heartbeat', claimState: takesRuns }), 30_000)
  return {
    ...side,
    device,
    agentId: await makeAgent(side.server),
    async end() {
      clearInterval(beating)
      await device.close()
      await side.end()
    },
  }
}

export async function makeAgent(server: BenchServer): Promise<string> {
  const agent = { name: 'Worker', harness: 'command', command: 'true' }
  return (await server.call<{ id: string }>('POST', '/agents', agent)).id
}

export const programOf = (name: string, body: string): string =>
  `export const meta = { name: '${name}', title: 'Measured' }\n${body}\n`

export const storeProgram = (server: BenchServer, source: string) =>
  server.call<unknown>('POST', '/workflows/records', { source })

export const startFlow = async (server: BenchServer, workflow: string) =>
  (await server.call<{ id: string }>('POST', '/workflows/runs', { workflow })).id

/** Looks into the database, since reading a long run by the API costs the server as much as what is measured. */
export async function flowEnded({ root }: Side, id: string): Promise<void> {
  const status = await waitFor(
    async () => {
      const row = (await root('workflow_runs').where({ id }).select('status').first()) as { status: string } | undefined
      return row === undefined || row.status === 'running' ? null : row.status
    },
    'the workflow run ends',
    { ms: 120_000, everyMs: 5 },
  )
  if (status !== 'completed') throw new Error(`the workflow run ended ${status}`)
}

/** Takes the run that is offered next, without ending it. */
export async function takeOffered(device: DeviceSocket): Promise<{ runId: RunId; fence: number }> {
  const { runId, fence } = await device.next('run.offer')
  device.send({ type: 'run.accepted', runId, fence })
  await device.next('run.start')
  return { runId, fence }
}

export const doOffered = async (device: DeviceSocket): Promise<void> => endRun(device, await takeOffered(device), 0)

const startedAtOnce = 10

/** Starts so many workflow runs that end by themselves, and waits for them. */
export async function runFlows(side: Side, count: number): Promise<void> {
  await storeProgram(side.server, programOf('at_once', "return 'done'"))
  await startMany(side, { workflow: 'at_once', count, rows: 'workflow_runs', status: 'completed' })
}

/** Starts so many workflow runs whose steps wait for a device, which never comes. */
export async function parkFlows(side: Side, count: number): Promise<void> {
  const agentId = await makeAgent(side.server)
  await storeProgram(side.server, programOf('parked', `return await agent('Go.', { agent: '${agentId}' })`))
  await startMany(side, { workflow: 'parked', count, rows: 'runs', status: 'queued' })
}

/** Resolves when there are as many rows with this status. */
async function startMany(
  { server, root }: Side,
  { workflow, count, rows, status }: { workflow: string; count: number; rows: string; status: string },
): Promise<void> {
  for (let started = 0; started < count; started += startedAtOnce)
    await Promise.all(Array.from({ length: startedAtOnce }, () => startFlow(server, workflow)))
  const come = async () => Number((await root(rows).where({ status }).count({ count: '*' }))[0]?.['count'])
  await waitFor(async () => (await come()) === count, `${count} ${rows} are ${status}`, { ms: 300_000, everyMs: 100 })
}
