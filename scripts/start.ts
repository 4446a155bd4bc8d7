import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { readConfig as readServerConfig } from '../control-plane/config.ts'
import { readConfig as readDeviceConfig } from '../device-manager/setup/config.ts'
import { placesIn } from '../device-manager/setup/places.ts'
import { stateFiles } from '../shared/lib/places.ts'
import type { Program } from '../shared/lib/program-file.ts'
import { currentRelease } from './release.ts'
import { DemoApi, runDemo } from './start-demo.ts'

/**
 * Starts a control plane and this machine's device manager, proves them with one real job at the first start (and with `--demo`), and serves
 * until Ctrl-C. What dies meanwhile is told in a line with the path of its log; without its control plane it ends all that it started.
 * With `--once` everything is in a scratch folder that is removed afterwards (unless SVC_DATA_DIR, SVC_STATE_DIR and
 * SVC_CONFIG_DIR name other folders); the last line is JSON.
 */
const root = join(import.meta.dirname, '..')
const say = (text: string) => process.stderr.write(`${text}\n`)
const usage = 'usage: scripts/start [--demo | --once]'
const flags = readFlags()
if (flags.help) {
  process.stdout.write(`${usage}\n`)
  process.exit(0)
}

function readFlags() {
  try {
    const options = {
      once: { type: 'boolean', default: false },
      demo: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    } as const
    return parseArgs({ options }).values
  } catch (error) {
    say(`start: ${(error as Error).message}\n${usage}`)
    process.exit(2)
  }
}

const release = await currentRelease().catch((error: unknown) => {
  say(`start: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
})
const scratch = flags.once ? mkdtempSync(join(tmpdir(), 'svc-start-')) : null
const env: Record<string, string | undefined> = { ...process.env }
if (scratch) {
  env.SVC_DATA_DIR ??= join(scratch, 'data')
  env.SVC_STATE_DIR ??= join(scratch, 'state')
  env.SVC_CONFIG_DIR ??= join(scratch, 'config')
}
const node = (program: Program, args: readonly string[]) => [
  '--disable-warning=ExperimentalWarning',
  join(release, program, 'main.js'),
  ...args,
]

interface Server {
  child: ChildProcess
  url: string
  dataDir: string
  /** Fails when it ends by itself. */
  death: Promise<never>
}

const serverFile = z.object({ url: z.string(), pid: z.number() })

async function startServer(): Promise<Server> {
  const config = readServerConfig(env, { port: flags.once ? 0 : undefined })
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 })
  const path = join(config.dataDir, 'server.json')
  const running = readServerFile(path)
  if (running && isAlive(running.pid))
    throw new Error(
      `A control plane runs on this data folder already: ${running.url} (pid ${running.pid}). Stop it first.`,
    )
  rmSync(path, { force: true })
  const logPath = join(config.dataDir, 'server.log')
  const log = openSync(logPath, 'a', 0o600)
  const args = ['start', '--data-dir', config.dataDir, ...(flags.once ? ['--port', '0'] : [])]
  const child = spawn(process.execPath, node('control-plane', args), {
    cwd: root,
    env,
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  const death = new Promise<never>((_, reject) => {
    child.once('exit', (code, signal) =>
      reject(new Error(`The control plane ended (${signal ?? `status ${code}`}). Its log: ${logPath}`)),
    )
  })
  // Whoever waits for it hears of it; at the start, the file of the server says more.
  death.catch(() => undefined)
  for (let waited = 0; waited < 30_000; waited += 25) {
    const ready = readServerFile(path)
    if (ready?.pid === child.pid && ready) return { child, url: ready.url, dataDir: config.dataDir, death }
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`The control plane ended at its start. Its log, ${logPath}, ends so:\n${tail(logPath)}`)
    await sleep(25)
  }
  throw new Error(`The control plane was not ready in time; see ${logPath}`)
}

function readServerFile(path: string): z.infer<typeof serverFile> | null {
  try {
    return serverFile.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    return null
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const tail = (path: string) => readFileSync(path, 'utf8').split('\n').slice(-15).join('\n')

/** Signs in and connects this machine, as a person would. The token is the first person's, or a new one of theirs. */
function connectDevice(server: Server): string {
  const tokenFile = join(server.dataDir, 'login-token')
  if (!existsSync(tokenFile)) {
    const made = execFileSync(
      process.execPath,
      node('control-plane', ['token', 'create', '--email', 'owner@localhost', '--data-dir', server.dataDir]),
      { cwd: root, env, encoding: 'utf8' },
    )
    writeFileSync(tokenFile, `${z.object({ token: z.string() }).parse(JSON.parse(made)).token}\n`, { mode: 0o600 })
  }
  const token = readFileSync(tokenFile, 'utf8').trim()
  svc(['login', '--server', server.url, '--token', '-'], token)
  svc(['device', 'connect'])
  return token
}

/** svc says itself what is wrong. */
function svc(args: readonly string[], input?: string): void {
  const { status } = spawnSync(process.execPath, node('cli', args), {
    cwd: root,
    env,
    stdio: [input === undefined ? 'ignore' : 'pipe', 'ignore', 'inherit'],
    ...(input === undefined ? {} : { input }),
  })
  if (status !== 0) throw new Error(`\`scripts/svc ${args.slice(0, 2).join(' ')}\` failed, as it says above.`)
}

/**
 * Returns the demonstration's repository: in the scratch folder, or beside the server's data, which runs cannot see.
 */
function demoFolder(server: Server): string {
  const folder = scratch ? join(scratch, 'demo') : `${server.dataDir}-demo`
  if (existsSync(join(folder, '.git'))) return folder
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'README.md'), '# Demo\n\nA small repository for a first run.\n')
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=svc', '-c', 'user.email=svc@localhost', ...args], {
      cwd: folder,
      stdio: 'pipe',
    })
  git('init', '--quiet', '--initial-branch=main')
  git('add', '.')
  git('commit', '--quiet', '-m', 'Begin')
  return folder
}

async function stopAll(server: Server): Promise<void> {
  const daemon = daemonPid()
  if (daemon !== null) await endProcess(daemon)
  if (server.child.pid !== undefined) await endProcess(server.child.pid)
}

const stateDir = () => readDeviceConfig(env, { homeDir: homedir(), shell: null }).stateDir

/** The device manager of this machine; null: none runs. */
function daemonPid(): number | null {
  try {
    const record = JSON.parse(readFileSync(placesIn(stateDir()).daemon, 'utf8')) as unknown
    const { pid } = z.object({ pid: z.number() }).parse(record)
    return isAlive(pid) ? pid : null
  } catch {
    return null
  }
}

/** Says once that the device manager is gone; `svc device restart` and the like have one again within the time that is waited. */
async function tellDeathOfDaemon(isOver: () => boolean): Promise<void> {
  for (let missing = 0; missing < 10; await sleep(500)) {
    if (isOver()) return
    missing = daemonPid() === null ? missing + 1 : 0
  }
  say(
    `The device manager ended. Its log: ${join(stateDir(), stateFiles.daemonLog)}. Start it again: scripts/svc device connect`,
  )
}

async function endProcess(pid: number): Promise<void> {
  if (!isAlive(pid)) return
  process.kill(pid, 'SIGTERM')
  for (let waited = 0; waited < 35_000 && isAlive(pid); waited += 25) await sleep(25)
}

/** A file in the repository of the demonstration says that it has been shown. */
const shownFile = (folder: string) => join(folder, '.git', 'svc-demo-shown')

/** Returns the exit status of `--once`. */
async function showDemo(server: Server, { token, folder }: { token: string; folder: string }): Promise<number> {
  const result = await runDemo(new DemoApi(server.url, token), folder, say)
  say(`run ${result.runId}: ${result.status} (${result.exitReason}), ${result.events} events`)
  process.stdout.write(`${JSON.stringify(result)}\n`)
  writeFileSync(shownFile(folder), '')
  return result.status === 'succeeded' ? 0 : 1
}

async function main(): Promise<number> {
  const server = await startServer()
  say(`control plane: ${server.url} (data in ${server.dataDir})`)
  const interrupted = new Promise<void>((resolve) => {
    process.once('SIGINT', () => resolve())
    process.once('SIGTERM', () => resolve())
  })
  let isOver = false
  try {
    const token = connectDevice(server)
    say('device manager: connected')
    const folder = demoFolder(server)
    if (flags.once || flags.demo || !existsSync(shownFile(folder))) {
      const status = await Promise.race([showDemo(server, { token, folder }), server.death])
      if (flags.once) return status
    } else say('The demonstration was shown before. To see it again: scripts/start --demo')
    say('\nServing until Ctrl-C. Try in another terminal:\n  scripts/svc whoami\n  scripts/svc run list')
    void tellDeathOfDaemon(() => isOver)
    await Promise.race([interrupted, server.death])
    return 0
  } finally {
    isOver = true
    await stopAll(server)
    if (scratch) rmSync(scratch, { recursive: true, force: true, maxRetries: 5 })
  }
}

try {
  process.exitCode = await main()
} catch (error) {
  say(`start: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
