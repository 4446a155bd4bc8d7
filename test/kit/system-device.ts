import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { hostRecord, type HostRecord } from '../../device-manager/run-host/wire/protocol.ts'
import { shortFolder } from '../../device-manager/run-host/wire/record.ts'
import type { ControlStatus, EnrolReply, SpooledRun } from '../../shared/device/control.ts'
import { compileCache } from './compile-cache.ts'
import { keepCompiled, lendCompiled } from './lent-compiled.ts'
import { programFile } from './program-file.ts'
import { Hopeless, Program, waitFor, type ProgramExit } from './programs.ts'
import { smallDisk, type SmallDisk } from './small-disk.ts'
import type { TestApi } from './system-api.ts'
import { turnIsolationOff } from './wall.ts'

export interface DeviceOptions {
  name: string
  root: string
  env: Readonly<Record<string, string>>
  /** The size of a disk of its own for its state folder; else it lies on the machine's. */
  diskMegabytes?: number
  /** Its runs get the wall, as on a device of which nobody has said anything; else its owner has turned that off. */
  isWalled?: boolean | undefined
  /** Put before the daemon's command: `prlimit ... --`. */
  via?: readonly string[]
  /** The folder of the programs; default this checkout's. */
  programs?: string | undefined
}

/** One device: its state folder and the real daemon that runs on it. */
export class TestDevice {
  readonly name: string
  /** The state folder as the test sees it. */
  stateDir: string
  readonly homeDir: string
  readonly logPath: string
  /** Says what the next start is of: another folder than before is an upgrade. */
  programs: string | undefined
  readonly #options: DeviceOptions
  /** The state folder as the daemon sees it. */
  readonly #ownStateDir: string
  #disk: SmallDisk | null = null
  #program: Program | null = null
  #identity: EnrolReply | null = null

  constructor(options: DeviceOptions) {
    this.name = options.name
    this.#options = options
    this.programs = options.programs
    this.#ownStateDir = join(options.root, `${options.name}-state`)
    this.stateDir = this.#ownStateDir
    this.homeDir = join(options.root, `${options.name}-home`)
    this.logPath = join(options.root, `${options.name}.log`)
    mkdirSync(this.stateDir, { mode: 0o700 })
    mkdirSync(this.homeDir)
    if (options.diskMegabytes === undefined) {
      lendCompiled(this.stateDir)
      if (!options.isWalled) turnIsolationOff(this.stateDir)
    }
  }

  /** Mounts the disk of its own, if it is to have one. */
  async prepare(): Promise<void> {
    const { diskMegabytes } = this.#options
    if (diskMegabytes === undefined) return
    this.#disk = await smallDisk(this.#ownStateDir, diskMegabytes)
    this.stateDir = this.#disk.seenAt
    if (!this.#options.isWalled) turnIsolationOff(this.stateDir)
  }

  get disk(): SmallDisk {
    if (!this.#disk) throw new Error(`${this.name} has no disk of its own`)
    return this.#disk
  }
  /** Removes what does not lie under the test's root: its disk, and the folder for long paths. */
  async cleanUp(): Promise<void> {
    await this.#disk?.close()
    this.stateDir = this.#ownStateDir
    keepCompiled(this.stateDir)
    rmSync(shortFolder(this.#ownStateDir), { recursive: true, force: true })
  }

  /** As `svc device connect` does. `url`: where the daemon reaches the server, when that is not the server itself. */
  async enrol(api: TestApi, url?: string): Promise<void> {
    const identity = await api.call<EnrolReply>('POST', '/api/device/enrol', {
      displayName: this.name,
      hostname: this.name,
      platform: process.platform,
      version: '0.0.0-test',
    })
    this.identify(url === undefined ? identity : { ...identity, server: url })
  }

  /** Makes this folder the device of that identity. */
  identify(identity: EnrolReply): void {
    this.#identity = identity
    const { token, ...rest } = identity
    writeFileSync(join(this.stateDir, 'identity.json'), `${JSON.stringify(rest)}\n`, { mode: 0o600 })
    writeFileSync(join(this.stateDir, 'device-token'), `${token}\n`, { mode: 0o600 })
  }

  get isEnrolled(): boolean {
    return this.#identity !== null
  }
  get identity(): EnrolReply {
    if (!this.#identity) throw new Error(`${this.name} is not enrolled`)
    return this.#identity
  }
  get program(): Program {
    if (!this.#program) throw new Error(`the daemon of ${this.name} was not started`)
    return this.#program
  }
  get isRunning(): boolean {
    return this.#program?.isRunning ?? false
  }
  /** All that the daemon and its run hosts logged. */
  get log(): string {
    const files = [this.logPath, ...['daemon.log', 'run-hosts.log'].map((name) => join(this.stateDir, 'logs', name))]
    return files.map((file) => (existsSync(file) ? readFileSync(file, 'utf8') : '')).join('')
  }

  /** Starts the daemon's process and does not wait for anything. */
  launch(): Program {
    return this.#launch([programFile('device-manager', this.programs), 'run'])
  }

  /** Enrols and starts it as a person does who has signed in there: `svc device connect`, which stays its parent. */
  async connect(configDir: string): Promise<void> {
    const line = ['device', 'connect', '--foreground', '--name', this.name]
    await this.#untilLinked(this.#launch([programFile('cli', this.programs), ...line], { SVC_CONFIG_DIR: configDir }))
    const read = (name: string) => readFileSync(join(this.stateDir, name), 'utf8')
    this.#identity = { ...(JSON.parse(read('identity.json')) as EnrolReply), token: read('device-token').trim() }
  }

  #launch(args: readonly string[], env: Readonly<Record<string, string>> = {}): Program {
    this.#program = new Program({
      name: `the daemon of ${this.name}`,
      cwd: this.#options.root,
      logPath: this.logPath,
      args,
      via: [...(this.#disk?.via ?? []), ...(this.#options.via ?? [])],
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: this.homeDir,
        ...compileCache,
        SHELL: '/bin/sh',
        SVC_STATE_DIR: this.#ownStateDir,
        ...this.#options.env,
        ...env,
      },
    })
    return this.#program
  }

  /** The daemon of this device is that one again, after another was tried. */
  adopt(program: Program): void {
    this.#program = program
  }

  /** Starts the daemon and waits until its link is up. */
  async start(): Promise<void> {
    await this.#untilLinked(this.launch())
  }

  async #untilLinked(program: Program): Promise<void> {
    await waitFor(
      async () => {
        if (!program.isRunning) throw new Hopeless(`the daemon of ${this.name} ended at its start:\n${this.log}`)
        return this.isConnected()
      },
      `${this.name} is connected`,
      { about: () => this.log },
    )
  }

  async isConnected(): Promise<boolean> {
    return (await this.status()).link.state === 'connected'
  }

  kill9(): Promise<void> {
    return this.program.kill9()
  }
  end(): Promise<ProgramExit> {
    return this.program.end()
  }

  /** Asks the daemon what `svc device status` asks it. */
  async status(): Promise<ControlStatus> {
    return (await this.control({ op: 'status' })) as ControlStatus
  }
  async spoolRuns(): Promise<SpooledRun[]> {
    return ((await this.control({ op: 'spool' })) as { runs: SpooledRun[] }).runs
  }

  control(request: Record<string, unknown>): Promise<unknown> {
    return new Promise((done, fail) => {
      const socket = connect(join(this.stateDir, 'daemon.sock'))
      let text = ''
      socket.setEncoding('utf8')
      socket.setTimeout(30_000, () => socket.destroy(new Error('the daemon did not answer')))
      socket.on('data', (chunk: string) => (text += chunk))
      socket.on('error', fail)
      socket.on('end', () => {
        const reply = JSON.parse(text) as { ok: boolean; value?: unknown }
        if (reply.ok) done(reply.value)
        else fail(new Error(text))
      })
      socket.write(`${JSON.stringify(request)}\n`)
    })
  }

  /** Records of the run hosts that live on this device, or died without a trace. */
  hosts(): HostRecord[] {
    const folder = join(this.stateDir, 'hosts')
    if (!existsSync(folder)) return []
    const names = readdirSync(folder).filter((name) => name.endsWith('.json'))
    return names.flatMap((name) => {
      try {
        return [hostRecord.parse(JSON.parse(readFileSync(join(folder, name), 'utf8')))]
      } catch {
        // Removed between the two reads.
        return []
      }
    })
  }
  /** The run's host, once it has launched the harness. */
  hostOf(runId: string): Promise<HostRecord> {
    return waitFor(
      () => this.hosts().find((host) => host.runId === runId && host.harness !== null),
      `a run host with the harness of ${runId}`,
      { about: () => this.log },
    )
  }
}
