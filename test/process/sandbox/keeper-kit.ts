import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { sandboxPlaces } from '../../../shared/runs/sandbox-places.ts'
import { DockerDouble, type DoubleContainer } from '../../kit/docker-double.ts'
import { waitFor } from '../../kit/programs.ts'
import { TestServer, type ServerOptions } from '../../kit/server.ts'

// Sandboxes on an engine that a test has in its hands.

export async function stage(
  play: (container: DoubleContainer, nth: number) => Promise<number>,
  options: ServerOptions = {},
) {
  const engine = await new DockerDouble(play).start()
  const data = mkdtempSync(join(tmpdir(), 'svc-k-'))
  const settings: Record<string, string> = {
    SVC_DATA_DIR: data,
    SVC_SANDBOX: 'docker',
    SVC_SANDBOX_SOCKET: engine.socket,
    SVC_SWEEP_MS: '500',
    SVC_RATE_LIMIT_PER_MINUTE: '1000000',
    ...options.settings,
  }
  const servers: TestServer[] = []
  const startServer = async (more: ServerOptions = {}) => {
    const server = await TestServer.start({ ...options, ...more, settings: { ...settings, ...more.settings } })
    servers.push(server)
    return server
  }
  const server = await startServer()
  const stopServers = async () => {
    for (const each of servers.splice(0).toReversed()) await each.stop()
  }
  onTestFinished(async () => {
    engine.fault = () => null
    await waitFor(() => hasNothingOfRuns(engine), 'an engine with nothing of runs')
    // What is made ahead goes with its server.
    if (settings['SVC_SANDBOX_WARM'] !== undefined) await stopServers()
    await waitFor(() => engine.containers.size === 0 && engine.volumes.size === 0, 'an engine with nothing left')
    const folders = join(data, 'sandboxes')
    await waitFor(() => !existsSync(folders) || readdirSync(folders).length === 0, 'no folder of a sandbox')
    await stopServers()
    await engine.stop()
    rmSync(data, { recursive: true, force: true })
  })
  return { engine, server, startServer, data }
}

/** What is made ahead waits for its run, and has a volume of its own name. */
export function hasNothingOfRuns({ containers, volumes }: DockerDouble): boolean {
  const isWaiting = ({ folder }: DoubleContainer) => existsSync(join(folder, sandboxPlaces.waiting))
  const waiting = new Set([...containers.values()].filter(isWaiting).map(({ name }) => name))
  return waiting.size === containers.size && [...volumes].every((volume) => waiting.has(volume))
}

export const cloudAgent = (server: TestServer, name: string) =>
  server.ok('/agents', {
    body: { name, harness: 'command', environment: 'cloud', toolPermissionMode: 'full', command: 'true' },
  }) as Promise<{ id: string }>

export const wake = async (server: TestServer, agentId: string) =>
  ((await server.ok(`/agents/${agentId}/runs`, { body: { prompt: 'go' } })) as { runPublicId: string }).runPublicId

export const statusOf = async (server: TestServer, runId: string) => {
  const { status, exitReason } = (await server.ok(`/runs/${runId}`)) as {
    status: string
    exitReason: string | null
  }
  return { status, exitReason }
}

export async function endings(server: TestServer, runIds: readonly string[]) {
  const over = async () => {
    const all = await Promise.all(runIds.map((id) => statusOf(server, id)))
    return all.every(({ exitReason }) => exitReason !== null) ? all : null
  }
  return waitFor(over, 'all endings', { ms: 90_000, atMostMs: 500 })
}
