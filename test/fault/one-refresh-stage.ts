import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLoginLink } from '../../control-plane/operator/login-link.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { startBalancer, type Balancer } from '../kit/balancer.ts'
import { Browser, useLink } from '../kit/browser.ts'
import { openPostgres, type PostgresDatabase } from '../kit/database.ts'
import { startMcpServer, type McpHttpServer } from '../kit/mcp-http-server.ts'
import { waitFor } from '../kit/programs.ts'
import { OauthProvider } from '../kit/provider.ts'
import { serviceSettings } from '../kit/services.ts'
import { TestSystem } from '../kit/system.ts'
import type { TestDevice } from '../kit/system-device.ts'
import { makeRepo } from '../kit/system-scenario.ts'

/** The most that a device may be set to. */
const runsOfDevice = 10

/**
 * Two replicas on PostgreSQL behind a balancer, three devices, and one connection of the workspace to an MCP server behind a provider
 * whose refresh tokens work once, and which revokes the whole sign-in when one comes twice.
 */
export class RefreshStage {
  readonly provider: OauthProvider
  readonly mcp: McpHttpServer
  readonly database: PostgresDatabase
  readonly system: TestSystem
  readonly balancer: Balancer
  /** Of each device. */
  readonly agents: string[] = []
  readonly folders: string[] = []
  connectionId = ''
  /** Calls whose token the server did not take. */
  refused = 0

  private constructor(parts: Pick<RefreshStage, 'provider' | 'mcp' | 'database' | 'system' | 'balancer'>) {
    this.provider = parts.provider
    this.mcp = parts.mcp
    this.database = parts.database
    this.system = parts.system
    this.balancer = parts.balancer
  }

  static async start({ tokenS }: { tokenS: number }): Promise<RefreshStage> {
    const provider = await OauthProvider.start()
    const mcp = await startMcpServer()
    const database = await openPostgres()
    const services = [{ ...provider.entry('notes'), surfaces: ['mcp'], mcp: { url: mcp.url } }]
    const system = await TestSystem.start({
      replicas: 2,
      databaseUrl: database.url,
      devices: 0,
      serverEnv: { ...serviceSettings({ services }), SVC_SECRETS_KEY: 'ab'.repeat(32) },
      deviceEnv: { SVC_RECONNECT_MIN_MS: '100', SVC_RECONNECT_MAX_MS: '1500' },
    })
    const balancer = await startBalancer(system.servers)
    const stage = new RefreshStage({ provider, mcp, database, system, balancer })
    provider.serve(system.server.url, { tokenS })
    stage.guardTools()
    await stage.signIn()
    for (let count = 0; count < 3; count++) await stage.addDevice()
    return stage
  }

  async stop(): Promise<void> {
    await this.balancer.close()
    await this.system.stop()
    await this.mcp.stop()
    await this.provider.stop()
    await this.database.close()
  }

  /** The server takes tokens of the provider that have not ended. */
  private guardTools(): void {
    this.mcp.instead = ({ said, headers }, response) => {
      // Kept for each call, of which there are thousands.
      this.mcp.calls.length = 0
      void this.provider.audienceOf(headers.authorization?.slice('Bearer '.length) ?? '').then((audience) => {
        if (audience === null) {
          this.refused++
          return response.writeHead(401).end()
        }
        const result = { content: [{ type: 'text', text: 'said' }] }
        response.writeHead(200, { 'content-type': 'application/json' })
        return response.end(JSON.stringify({ jsonrpc: '2.0', id: said?.id, result }))
      })
      return true
    }
  }

  /** A person connects the service, or signs in anew. */
  async signIn(): Promise<void> {
    const { api } = this.system
    const [path, body] =
      this.connectionId === ''
        ? ['/connections', { integrationId: 'notes', ownerType: 'company' }]
        : [`/connections/${this.connectionId}/reauthorize`, {}]
    const begun = await api.insist<{ connection: { id: string }; nextStep: { authorizeUrl: string } }>(path, body)
    this.connectionId = begun.connection.id
    const back = await this.provider.visit(begun.nextStep.authorizeUrl)
    const browser = new Browser(this.system.server)
    const input = { email: 'owner@localhost', workspace: null, server: this.system.server.url }
    const link = await this.database.root.transaction((tx) => createLoginLink(tx, realWorld, input))
    await useLink(browser, link.url)
    const page = await browser.visit(back)
    if (!page.text.includes('Connected')) throw new Error(`not connected: ${page.text}`)
  }

  async connection(): Promise<{ status: string; statusReason: string | null; version: number }> {
    const row = await this.database.root('connections').where({ id: this.connectionId }).first()
    return { status: row.status, statusReason: row.status_reason, version: Number(row.credential_version) }
  }

  private async addDevice(): Promise<void> {
    const { system } = this
    const device = system.makeDevice()
    const bin = join(device.homeDir, 'bin')
    mkdirSync(bin)
    const script = join(import.meta.dirname, '../kit/calling-claude.mjs')
    writeFileSync(join(bin, 'claude'), `#!/bin/sh\nexec '${process.execPath}' '${script}' "$@"\n`)
    chmodSync(join(bin, 'claude'), 0o755)
    writeFileSync(join(device.homeDir, '.profile'), `export PATH='${bin}':"$PATH"\n`)
    await device.enrol(system.api, this.balancer.proxy.url)
    const { deviceId, publicId } = device.identity
    await system.api.call('PATCH', `/devices/${deviceId}`, { maxConcurrentRuns: runsOfDevice })
    await device.start()
    const folder = join(system.root, `${device.name}-work`)
    makeRepo(folder)
    const { shortId } = await system.api.addFolder({ displayName: device.name, rootPath: folder, deviceId: publicId })
    const agent = await system.api.createAgent({ name: device.name, harness: 'claude', defaultFolderId: shortId })
    this.agents.push(agent.id)
    this.folders.push(folder)
  }

  /** A run on that device, which calls the tool so often and for so long. */
  async wake(at: number, { everyMs, forMs }: { everyMs: number; forMs: number }): Promise<string> {
    const agentId = this.agents[at % this.agents.length]!
    const prompt = `call every ${everyMs} for ${forMs}`
    return (await this.system.api.insist<{ runPublicId: string }>(`/agents/${agentId}/runs`, { prompt })).runPublicId
  }

  /** Run hosts with a harness, of all devices. */
  hosts(): { pid: number; runId: string }[] {
    const hosts = this.system.devices.flatMap((device: TestDevice) => device.hosts())
    return hosts.flatMap(({ pid, runId, harness }) => (runId !== null && harness !== null ? [{ pid, runId }] : []))
  }

  /** Files of the devices and of the replicas that hold a token. */
  filesWithTokens(): string[] {
    const tokens = this.provider.exchanges.flatMap(({ given }) => given)
    const { system, folders } = this
    const below = [...system.devices.flatMap(({ stateDir, homeDir }) => [stateDir, homeDir]), ...folders]
    const places = [...below, ...system.servers.map(({ dataDir }) => dataDir)].flatMap(filesBelow)
    const files = [...places, ...[...system.servers, ...system.devices].map(({ logPath }) => logPath)]
    return files.filter((file) => {
      const text = textOf(file)
      return tokens.some((token) => text.includes(token))
    })
  }

  untilEnded(runId: string, ms: number): Promise<{ exitReason: string | null; createdAt: string }> {
    return waitFor(
      async () => {
        const run = await this.system.api.run(runId)
        return run.completedAt === null ? null : run
      },
      `${runId} ends`,
      { ms, atMostMs: 1_000 },
    )
  }
}

/** Files and folders come and go meanwhile. */
function filesBelow(folder: string): string[] {
  const entries = orElse(() => readdirSync(folder, { withFileTypes: true }), [])
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return filesBelow(path)
    return entry.isFile() ? [path] : []
  })
}
const textOf = (file: string) => orElse(() => readFileSync(file, 'latin1'), '')

function orElse<Value>(read: () => Value, otherwise: Value): Value {
  try {
    return read()
  } catch {
    return otherwise
  }
}
