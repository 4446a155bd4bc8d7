import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject, onTestFinished } from 'vitest'
import { randomServerKey } from '../../control-plane/db/server-keys.ts'
import { DockerClient } from '../../control-plane/sandbox/docker/client.ts'
import { sandboxKeys } from '../../control-plane/sandbox/tokens.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { waitFor } from './programs.ts'
import { buildImage } from './sandbox-engine.ts'
import { TestServer, type ServerOptions } from './server.ts'

/** A test of sandboxes counts as skipped where this is true. */
export const hasNoEngine = inject('sandboxEngine') === null

/** A server whose cloud runs go to the tests' engine. */
export async function cloudServer(options: ServerOptions = {}): Promise<TestServer> {
  // A short path: the sockets of brokers lie below it.
  const data = mkdtempSync(join(tmpdir(), 'svc-c-'))
  const settings: Record<string, string> & { SVC_SANDBOX_WARM?: string } = {
    SVC_DATA_DIR: data,
    SVC_SANDBOX: 'docker',
    SVC_SANDBOX_SOCKET: inject('sandboxEngine')!.socket,
    SVC_SANDBOX_IMAGE: 'svc-sandbox',
    ...options.settings,
  }
  const server = await TestServer.start({ ...options, settings })
  onTestFinished(async () => {
    // What was made ahead goes with the server. Else, whatever the test was about, nothing of its runs stays.
    if (settings.SVC_SANDBOX_WARM !== undefined) await server.plane.stop()
    let left: string[] = []
    const isEmpty = async () => (left = await leftOnEngine(server)).length === 0
    await waitFor(isEmpty, 'an engine without containers and volumes', { about: () => left.join('\n') })
    await server.stop()
    rmSync(data, { recursive: true, force: true })
  })
  return server
}

export const engineClient = () => new DockerClient({ socket: inject('sandboxEngine')!.socket, timeoutMs: 30_000 })

/** The name of an image that has a program beside what `svc-sandbox` has. The engine keeps the layer for the next time. */
export async function imageWith(program: string, { binDir }: { binDir: string }): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-i-'))
  try {
    copyFileSync(join(binDir, program), join(folder, program))
    const place = `/usr/local/bin/${program}`
    writeFileSync(join(folder, 'Dockerfile'), `FROM svc-sandbox\nCOPY ${program} ${place}\n`)
    const name = `svc-sandbox-${program}`
    await buildImage(inject('sandboxEngine')!.socket, name, folder)
    return name
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The run as it is once it has ended. */
export const endedRun = (server: TestServer, runId: string, ms = 100_000): Promise<Record<string, unknown>> =>
  waitFor(
    async () => {
      const run = (await server.ok(`/runs/${runId}`)) as Record<string, unknown>
      return run['completedAt'] === null ? null : run
    },
    `the end of ${runId}`,
    { ms },
  )

/** The names of all containers and volumes that the engine has of a server: test files run side by side. */
export async function leftOnEngine(server: TestServer): Promise<string[]> {
  const client = engineClient()
  const { serverId } = sandboxKeys(await randomServerKey(server.database.root, 'sandboxes', realWorld))
  const filters = JSON.stringify({ label: [`svc.server=${serverId}`] })
  const containers = await client.call({ method: 'GET', path: '/containers/json', query: { all: '1', filters } })
  const volumes = await client.call({ method: 'GET', path: '/volumes', query: { filters } })
  const rows = JSON.parse(containers.body.toString()) as { Names: string[] }[]
  const { Volumes } = JSON.parse(volumes.body.toString()) as { Volumes: { Name: string }[] | null }
  return [...rows.flatMap(({ Names }) => Names), ...(Volumes ?? []).map(({ Name }) => Name)]
}

/** What was asked for is told a second later. */
export const networkOf = (server: TestServer, runId: string, rows: readonly object[]) =>
  waitFor(async () => {
    const { hosts } = (await server.ok(`/runs/${runId}/network`)) as { hosts: Record<string, unknown>[] }
    const isThere = (row: object) =>
      hosts.some((host) => Object.entries(row).every(([name, value]) => host[name] === value))
    return rows.every(isThere) ? true : null
  }, `what ${runId} asked for`)
