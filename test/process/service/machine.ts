import { spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { stableMain } from '../../../device-manager/service/definition.ts'
import { runServiceCommand } from '../../../device-manager/service/command.ts'
import type { ServiceAction, ServiceValue } from '../../../shared/device/service.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { nothingNames, processesNaming } from '../../kit/programs.ts'
import { compileCache } from '../../kit/compile-cache.ts'
import { keepCompiled, lendCompiled } from '../../kit/lent-compiled.ts'
import { programFile } from '../../kit/program-file.ts'
import { turnIsolationOff } from '../../kit/wall.ts'

/** By the link to the newest release, as the service is told it. */
export const deviceMain = stableMain(programFile('device-manager'))
const svcMain = programFile('cli')

export interface Ended {
  status: number | null
  stdout: string
  stderr: string
}

export type Reply<A extends ServiceAction> =
  | { ok: true; value: ServiceValue<A> }
  | { ok: false; error: { code: string; message: string; remediation: string } }

/** Who types an action, and the words behind it. */
interface Caller {
  uid?: number
  userName?: string
  words?: readonly string[]
}

/** A home of its own with stubs of the service manager's programs before all others on the PATH. */
export class TestMachine {
  readonly root: string
  readonly home: string
  readonly stateDir: string
  readonly stubDir: string
  readonly binDir: string
  readonly unitFile: string
  readonly plistFile: string
  /** Where root puts units of the machine. */
  readonly systemUnits: string
  readonly #platform: NodeJS.Platform

  /** `platform`: the one that the service is installed on, whose service manager is a stub everywhere. */
  constructor(platform: NodeJS.Platform = 'linux') {
    this.#platform = platform
    this.root = realpathSync(mkdtempSync(join(tmpdir(), 'svc-service-')))
    this.home = join(this.root, 'home')
    this.stateDir = join(this.root, 'state')
    this.stubDir = join(this.root, 'stub')
    this.binDir = join(this.root, 'bin')
    this.unitFile = join(this.home, '.config/systemd/user/svc-device.service')
    this.plistFile = join(this.home, 'Library/LaunchAgents/dev.svc.device.plist')
    this.systemUnits = join(this.stubDir, 'units')
    for (const each of [this.home, this.stateDir, this.systemUnits, join(this.stubDir, 'fail'), this.binDir])
      mkdirSync(each, { recursive: true })
    chmodSync(this.stateDir, 0o700)
    lendCompiled(this.stateDir)
    turnIsolationOff(this.stateDir)
    const stubs = { systemctl: 'systemctl', loginctl: 'systemctl', launchctl: 'launchctl' }
    for (const [name, stub] of Object.entries(stubs))
      symlinkSync(join(import.meta.dirname, `stub-${stub}.sh`), join(this.binDir, name))
  }

  get env(): Record<string, string> {
    return {
      PATH: [this.binDir, dirname(process.execPath), '/usr/local/bin', '/usr/bin', '/bin'].join(delimiter),
      HOME: this.home,
      SHELL: '/bin/sh',
      // Set, so that no bus of the machine that runs the tests is found.
      XDG_RUNTIME_DIR: join(this.root, 'no-runtime'),
      SVC_STATE_DIR: this.stateDir,
      SVC_CONFIG_DIR: join(this.root, 'config'),
      SVC_RECONNECT_MAX_MS: '200',
      STUB_DIR: this.stubDir,
      // What the service manager starts has compiled code too, which spares its tests a quarter of a second each time.
      STUB_COMPILED: compileCache.NODE_COMPILE_CACHE,
    }
  }

  addProgram(name: string, script = '#!/bin/sh\nexit 0\n'): string {
    const path = join(this.binDir, name)
    writeFileSync(path, script, { mode: 0o755 })
    return path
  }

  /** Of a server that nobody runs: the daemon goes on trying. */
  enrol(server = 'http://127.0.0.1:9'): void {
    const identity = { publicId: 'dvc_0123456789abcdef', deviceId: crypto.randomUUID(), displayName: 'test', server }
    writeFileSync(join(this.stateDir, 'identity.json'), JSON.stringify(identity))
    writeFileSync(join(this.stateDir, 'device-token'), 'token\n')
  }

  /** `svc-device service ACTION`, as the program. */
  async program<A extends ServiceAction>(action: A, env: Record<string, string> = {}): Promise<Reply<A>> {
    const { stdout, stderr } = await this.node([deviceMain, 'service', action], env)
    if (stderr !== '') throw new Error(stderr)
    return JSON.parse(stdout) as Reply<A>
  }

  /** The same within this process, which saves the start of a program; as user 501. */
  async service<A extends ServiceAction>(
    action: A,
    env: Record<string, string> = {},
    by: Caller = {},
  ): Promise<Reply<A>> {
    const { uid = 501, userName = 'test', words = [] } = by
    const system = {
      env: { ...this.env, ...env },
      platform: this.#platform,
      uid,
      userName,
      execPath: process.execPath,
      main: deviceMain,
      umask: 0o022,
      world: realWorld,
      unitFolder: this.systemUnits,
    }
    return (await runServiceCommand([action, ...words], system)).reply as Reply<A>
  }

  async done<A extends ServiceAction>(action: A, env: Record<string, string> = {}): Promise<ServiceValue<A>> {
    const reply = await this.service(action, env)
    if (!reply.ok) throw new Error(`${action}: ${reply.error.code}: ${reply.error.message}`)
    return reply.value
  }

  async refused(action: ServiceAction, env: Record<string, string> = {}): Promise<string> {
    const reply = await this.service(action, env)
    if (reply.ok) throw new Error(`${action} was not refused`)
    return reply.error.code
  }

  svc(...args: string[]): Promise<Ended> {
    return this.node([svcMain, ...args], {})
  }

  private node(args: readonly string[], env: Record<string, string>): Promise<Ended> {
    return this.run(process.execPath, ['--disable-warning=ExperimentalWarning', ...args], { ...compileCache, ...env })
  }

  run(program: string, args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
    const child = spawn(program, args, {
      env: { ...this.env, ...env },
      cwd: this.root,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const text = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text.stdout += chunk))
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text.stderr += chunk))
    return new Promise((done, fail) => {
      child.on('error', fail)
      child.on('close', (status) => done({ status, ...text }))
    })
  }

  /** Returns what the service manager's programs were called with since the last time it was asked. */
  calls(): string[] {
    const path = join(this.stubDir, 'calls')
    const calls = existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
    rmSync(path, { force: true })
    return calls
  }

  /** The calls that change something. */
  changes(): string[] {
    return this.calls().filter((call) => !/ (show|show-environment|show-user|print|print-disabled)\b/.test(call))
  }

  fail(verb: string, text = `${verb} is made to fail\n`): void {
    writeFileSync(join(this.stubDir, 'fail', verb), text)
  }
  heal(verb: string): void {
    rmSync(join(this.stubDir, 'fail', verb))
  }
  get isLingering(): boolean {
    return existsSync(join(this.stubDir, 'linger'))
  }
  /** All files below the home folder. */
  homeFiles(): string[] {
    const entries = readdirSync(this.home, { recursive: true, withFileTypes: true })
    return entries.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name))
  }
  /** The pid in `daemon.json`, which is there while a daemon runs. */
  get daemonPid(): number | null {
    const path = join(this.stateDir, 'daemon.json')
    return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as { pid: number }).pid : null
  }

  async close(): Promise<void> {
    for (const { pid } of processesNaming(this.root)) end(pid, 'SIGTERM')
    await nothingNames(this.root).finally(() => {
      keepCompiled(this.stateDir)
      for (const { pid } of processesNaming(this.root)) end(pid, 'SIGKILL')
      rmSync(this.root, { recursive: true, force: true, maxRetries: 5 })
    })
  }
}

function end(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It left by itself.
  }
}
