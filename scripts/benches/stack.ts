import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import pg from 'pg'
import type { ThrowAwayPostgres } from '../postgres.ts'
import { placesIn } from '../../device-manager/setup/places.ts'
import { hostRecord } from '../../device-manager/run-host/wire/protocol.ts'
import type { EnrolReply } from '../../shared/device/control.ts'
import { delay, Program, waitFor } from '../../test/kit/programs.ts'
import type { Context } from './context.ts'

// The programs of the system, compiled, with the settings they have when nothing is set.

export interface BenchServer {
  program: Program
  dataDir: string
  url: string
  token: string
  /** Processor time of the process so far, in milliseconds, by its own account. */
  cpuMs(): Promise<number>
  call<Reply>(method: string, path: string, body?: unknown): Promise<Reply>
  end(): Promise<void>
}

export async function startServer(
  { scratch, dist }: Pick<Context, 'scratch' | 'dist'>,
  {
    name,
    databaseUrl = null,
    nodeFlags = [],
    env = {},
  }: {
    name: string
    databaseUrl?: string | null
    nodeFlags?: readonly string[]
    env?: Readonly<Record<string, string>>
  },
): Promise<BenchServer> {
  const dataDir = join(scratch, name)
  mkdirSync(dataDir, { recursive: true })
  const program = new Program({
    name,
    cwd: scratch,
    logPath: join(scratch, `${name}.log`),
    args: [...nodeFlags, join(dist, 'control-plane/main.js'), 'start', '--port', '0', '--data-dir', dataDir],
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: scratch,
      SVC_RATE_LIMIT_PER_MINUTE: '100000000',
      SVC_DRAIN_MS: '0',
      ...(databaseUrl === null ? {} : { SVC_DATABASE_URL: databaseUrl }),
      ...env,
    },
  })
  const file = join(dataDir, 'server.json')
  const url = await waitFor(
    () => {
      if (!program.isRunning) return 'ended'
      if (!existsSync(file)) return null
      const record = JSON.parse(readFileSync(file, 'utf8')) as { url: string; pid: number }
      return record.pid === program.pid ? record.url : null
    },
    `${name} listens`,
    { about: () => program.log },
  )
  if (url === 'ended') throw new Error(`${name} ended at its start:\n${program.log}`)
  const token = readFileSync(join(dataDir, 'login-token'), 'utf8').trim()
  const agent = new Agent({ keepAlive: true })
  return {
    program,
    dataDir,
    url,
    token,
    async cpuMs() {
      const text = (await ask({ agent, url: `${url}/metrics`, method: 'GET' })).text
      return 1000 * Number(/^process_cpu_seconds_total (\S+)/m.exec(text)?.[1] ?? Number.NaN)
    },
    async call<Reply>(method: string, path: string, body?: unknown): Promise<Reply> {
      const where = `${url}${path.startsWith('/api/') ? '' : '/api/v1'}${path}`
      const { status, text } = await ask({ agent, url: where, method, token, body })
      if (status >= 400) throw new Error(`${method} ${path} answered ${status}: ${text}`)
      return (text === '' ? undefined : JSON.parse(text)) as Reply
    },
    async end() {
      agent.destroy()
      await program.end()
    },
  }
}

/** An empty database of its own. */
export async function newDatabase(cluster: ThrowAwayPostgres, name: string): Promise<string> {
  const client = new pg.Client({ connectionString: cluster.urlOf('postgres') })
  await client.connect()
  await client.query(`create database ${name}`)
  await client.end()
  return cluster.urlOf(name)
}

interface Ask {
  agent: Agent
  url: string
  method: string
  token?: string
  body?: unknown
}

/** `node:http` with a kept connection: fetch costs more than what is measured. */
export function ask({ agent, url, method, token, body }: Ask): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const payload = body === undefined ? null : JSON.stringify(body)
    const sent = request(url, {
      agent,
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(payload === null
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }),
      },
    })
    sent.once('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    sent.once('error', reject)
    sent.end(payload ?? undefined)
  })
}

export interface BenchDevice {
  program: Program
  publicId: string
  stateDir: string
  /** Resolves when so many run hosts stand by, one if nothing is said, and have done what they do ahead of a run. */
  whenWarm(hosts?: number): Promise<void>
  /** Ends the daemon and the run host that stands by. */
  end(): Promise<void>
}

export const enrol = (server: BenchServer, name: string) =>
  server.call<EnrolReply>('POST', '/api/device/enrol', {
    displayName: name,
    hostname: name,
    platform: process.platform,
    version: '0.0.0',
  })

/** As `svc device connect` does, then waits until the server sees it. */
export async function startDevice(
  { scratch, dist }: Pick<Context, 'scratch' | 'dist'>,
  { server, name }: { server: BenchServer; name: string },
): Promise<BenchDevice> {
  const stateDir = join(scratch, `${name}-state`)
  const places = placesIn(stateDir)
  mkdirSync(stateDir, { mode: 0o700, recursive: true })
  const { token, ...identity } = await enrol(server, name)
  writeFileSync(places.identity, `${JSON.stringify(identity)}\n`, { mode: 0o600 })
  writeFileSync(places.token, `${token}\n`, { mode: 0o600 })
  const program = new Program({
    name,
    cwd: scratch,
    logPath: join(scratch, `${name}.log`),
    args: [join(dist, 'device-manager/main.js'), 'run'],
    env: { PATH: process.env['PATH'] ?? '', HOME: scratch, SHELL: '/bin/sh', SVC_STATE_DIR: stateDir },
  })
  await waitFor(
    async () => {
      if (!program.isRunning) return true
      const { devices } = await server.call<{ devices: { publicId: string; online: boolean }[] }>('GET', '/devices')
      return devices.some((device) => device.publicId === identity.publicId && device.online)
    },
    `${name} is connected`,
    { about: () => program.log },
  )
  if (!program.isRunning) throw new Error(`${name} ended at its start:\n${program.log}`)
  const idleHosts = () =>
    readdirSync(places.hosts)
      .filter((file) => file.endsWith('.json'))
      .map((file) => hostRecord.parse(JSON.parse(readFileSync(join(places.hosts, file), 'utf8'))))
      .filter((host) => host.runId === null)
  return {
    program,
    publicId: identity.publicId,
    stateDir,
    async whenWarm(hosts = 1) {
      await waitFor(() => idleHosts().length >= hosts, `run hosts of ${name} stand by`)
      // It compiles, and makes the wall of the run to come: both are done when it uses no processor any more.
      const used = () => JSON.stringify(idleHosts().map(({ pid }) => processFigures(pid).cpuMs))
      let before = ''
      for (let now = used(); now !== before; now = used()) {
        before = now
        await delay(250)
      }
    },
    async end() {
      await program.end()
    },
  }
}

/** Processor time and resident memory of a process, from the system. */
export function processFigures(pid: number): { rssBytes: number; cpuMs: number | null } {
  const rssBytes = 1024 * Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' }))
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { rssBytes, cpuMs: 10 * (Number(fields[11]) + Number(fields[12])) }
  } catch {
    return { rssBytes, cpuMs: null }
  }
}

/** Processor time of all threads that live, by the clock of the scheduler: the times in `stat` go by steps of ten milliseconds. */
export function processorMs(pid: number): number {
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + threadMs(`/proc/${pid}/task/${thread}`), 0)
}

function threadMs(folder: string): number {
  try {
    return Number(readFileSync(join(folder, 'schedstat'), 'utf8').split(' ')[0]) / 1e6
  } catch {
    // It ended meanwhile.
    return 0
  }
}
