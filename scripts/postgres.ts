import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { accessSync, constants, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { Client } from 'pg'

/**
 * A PostgreSQL cluster that lives as long as its starter: for tests and the quick start, never for data worth keeping.
 */
export interface ThrowAwayPostgres {
  /** The address of the database `postgres`, which only a unix socket reaches. */
  url: string
  /** The same for another database of the cluster. */
  urlOf(database: string): string
  stop(): Promise<void>
}

const readyMs = 20_000
const stopMs = 10_000

/** The folder of PostgreSQL's programs, or null where they are not installed. */
export function findPostgres(): string | null {
  const versioned = (root: string) =>
    existsSync(root)
      ? readdirSync(root)
          .toSorted((a, b) => Number.parseInt(b, 10) - Number.parseInt(a, 10))
          .map((version) => join(root, version, 'bin'))
      : []
  const folders = [
    ...(process.env['PATH'] ?? '').split(delimiter),
    ...versioned('/usr/lib/postgresql'),
    '/opt/homebrew/opt/postgresql/bin',
    '/usr/local/opt/postgresql/bin',
  ]
  return folders.find((folder) => isProgram(join(folder, 'initdb')) && isProgram(join(folder, 'postgres'))) ?? null
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Starts a cluster in a folder of its own, in about a second. Durability is off unless it is to be measured. */
export async function startPostgres(programs: string, { isDurable = false } = {}): Promise<ThrowAwayPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-postgres-'))
  const asUser = otherUser(folder)
  try {
    const data = join(folder, 'data')
    run(asUser, [
      join(programs, 'initdb'),
      '-D',
      data,
      '-U',
      'postgres',
      '-A',
      'trust',
      '--no-locale',
      '-E',
      'UTF8',
      '--no-sync',
    ])
    const port = await freePort()
    const server = launch(asUser, folder, [
      join(programs, 'postgres'),
      '-D',
      data,
      '-k',
      folder,
      '-p',
      String(port),
      ...(isDurable ? [] : ['-F', ...settings({ full_page_writes: 'off' })]),
      ...settings({ listen_addresses: '', max_connections: '200', log_min_messages: 'fatal' }),
    ])
    const urlOf = (database: string) =>
      `postgres:///${database}?host=${encodeURIComponent(folder)}&port=${port}&user=postgres`
    const cluster: ThrowAwayPostgres = { url: urlOf('postgres'), urlOf, stop: () => stop(server, folder) }
    await untilReady(cluster, server)
    return cluster
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

/** PostgreSQL refuses to run as root, so root runs its programs as the user `postgres`, who owns the folder. */
function otherUser(folder: string): readonly string[] {
  if (process.getuid?.() !== 0) return []
  execFileSync('chown', ['postgres:postgres', folder])
  return ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups', '--']
}

const settings = (values: Readonly<Record<string, string>>) =>
  Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`])

function run(asUser: readonly string[], command: readonly string[]): void {
  const [program, ...args] = [...asUser, ...command]
  execFileSync(program!, args, { stdio: ['ignore', 'ignore', 'pipe'], cwd: '/' })
}

/**
 * Starts the server in a process group of its own, so that Ctrl-C in a terminal reaches the starter first and it can
 * stop the server in order. The shell waits for its standard input to close, which happens however the starter dies,
 * and then stops the server and removes its folder.
 */
function launch(asUser: readonly string[], folder: string, command: readonly string[]): ChildProcess {
  const script = '"$@" & server=$!; cat >/dev/null; kill -INT "$server"; wait "$server"; rm -rf "$0"'
  const [program, ...args] = [...asUser, 'sh', '-c', script, folder, ...command]
  const child = spawn(program!, args, { stdio: ['pipe', 'ignore', 'ignore'], cwd: '/', detached: true })
  child.unref()
  return child
}

/** One of loopback that nobody listens at now. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function untilReady(cluster: ThrowAwayPostgres, server: ChildProcess): Promise<void> {
  const deadline = performance.now() + readyMs
  for (;;) {
    const client = new Client({ connectionString: cluster.url })
    try {
      await client.connect()
      await client.end()
      return
    } catch (error) {
      await client.end().catch(() => undefined)
      if (server.exitCode !== null) throw new Error('PostgreSQL ended before it was ready', { cause: error })
      if (performance.now() > deadline) throw new Error('PostgreSQL was not ready in time', { cause: error })
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

async function stop(server: ChildProcess, folder: string): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    if (server.exitCode !== null || server.signalCode !== null) resolve()
    else server.once('exit', () => resolve())
  })
  // Nothing else may keep this process waiting for it.
  server.ref()
  server.stdin?.end()
  const timer = setTimeout(() => {
    if (server.pid !== undefined) process.kill(-server.pid, 'SIGKILL')
  }, stopMs)
  await ended
  clearTimeout(timer)
  rmSync(folder, { recursive: true, force: true })
}
