import { idFrom } from '../../../shared/lib/ids.ts'
import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { hostNodeFlags } from '../../../device-manager/run-host/wire/node-flags.ts'
import { hostReply, type HostReply, type HostRequest } from '../../../device-manager/run-host/wire/protocol.ts'
import { openSpool, type RunKey } from '../../../device-manager/spool/spool.ts'
import type { WallSpec } from '../../../device-manager/wall/spec.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { storedEvent, type StoredEvent } from '../../../shared/runs/events.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import { programFile } from '../../kit/program-file.ts'
import { wallSpecOf } from '../../kit/wall.ts'

const deadlineMs = 60_000

type Reply<Type extends HostReply['type']> = Extract<HostReply, { type: Type }>

/**
 * Plays the daemon towards real run hosts, over their real sockets and a real spool. `isWalled`: it orders the wall for each run, as
 * a daemon does of which nobody has said anything.
 */
export function testDevice({ isWalled = false } = {}) {
  const root = mkdtempSync(join(tmpdir(), 'svc-host-'))
  const stateDir = join(root, 'state')
  const workDir = join(root, 'work')
  mkdirSync(stateDir, { mode: 0o700 })
  mkdirSync(workDir)
  // The daemon makes it before it starts any host.
  openSpool(join(stateDir, 'spool.db')).close()
  const children: ChildProcess[] = []
  let hosts = 0
  return {
    stateDir,
    workDir,
    spoolPath: join(stateDir, 'spool.db'),
    // Random: a run's processes are found by its id, on the whole machine, and other tests run at the same time.
    nextRunId: () => realWorld.id('run_'),
    async host(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Promise<TestHost> {
      const hostId = `host${++hosts}`
      const log = openSync(join(stateDir, `${hostId}.log`), 'w')
      const child = spawn(
        process.execPath,
        [
          ...hostNodeFlags,
          programFile('device-manager/run-host'),
          '--state-dir',
          stateDir,
          '--host-id',
          hostId,
          ...args,
        ],
        {
          detached: true,
          stdio: ['pipe', 'ignore', log],
          env: { ...process.env, ...env },
        },
      )
      closeSync(log)
      children.push(child)
      return new TestHost({ stateDir, hostId, child, wall: isWalled ? wallSpecOf(stateDir) : null })
    },
    /** Stops what is left and removes all files. */
    remove(): void {
      for (const child of children) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      rmSync(root, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
export type TestDevice = ReturnType<typeof testDevice>

export function specOf(device: TestDevice, change: Partial<RunSpec> & Pick<RunSpec, 'command'>): RunSpec {
  return {
    runId: device.nextRunId(),
    workspaceId: idFrom('ws_1'),
    agent: { id: idFrom('agt_1'), handle: 'tester', name: 'Tester' },
    harness: 'command',
    folder: { shortId: 'fld1', rootPath: device.workDir },
    prompt: 'Do it.',
    agentMd: '',
    model: null,
    backupModel: null,
    reasoningEffort: null,
    maxTurns: null,
    permissions: { allow: [], ask: [], deny: [], defaultMode: 'full' },
    allowCalls: [],
    mcpServers: {},
    resumeSessionId: null,
    limits: { runMs: 600_000, noProgressMs: 600_000, firstEventMs: 600_000, toolCalls: 1000, silentMs: 600_000 },
    ...change,
  }
}

export class TestHost {
  readonly hostId: string
  readonly child: ChildProcess
  readonly #stateDir: string
  readonly #wall: WallSpec | null
  #socket: Socket | null = null
  #replies: HostReply[] = []
  #waiting: (() => void)[] = []
  readonly exited: Promise<number | null>

  constructor(parts: { stateDir: string; hostId: string; child: ChildProcess; wall: WallSpec | null }) {
    this.#stateDir = parts.stateDir
    this.#wall = parts.wall
    this.hostId = parts.hostId
    this.child = parts.child
    this.exited = new Promise((resolve) => parts.child.once('exit', (code) => resolve(code)))
  }

  /** Waits for its exit, which must be a good one. */
  async left(): Promise<void> {
    const code = await this.exited
    if (code !== 0) throw new Error(`${this.hostId} left with ${code}; its log: ${this.log}`)
  }

  get recordPath(): string {
    return join(this.#stateDir, 'hosts', `${this.hostId}.json`)
  }
  get log(): string {
    return readFileSync(join(this.#stateDir, `${this.hostId}.log`), 'utf8')
  }

  async connect(): Promise<Reply<'hello'>> {
    await until(() => existsSync(this.recordPath), `record of ${this.hostId}`)
    const { socket: path } = JSON.parse(readFileSync(this.recordPath, 'utf8')) as { socket: string }
    const socket = connect(path)
    this.#socket = socket
    this.#replies = []
    let text = ''
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8')
      const lines = text.split('\n')
      text = lines.pop() ?? ''
      for (const line of lines) this.#replies.push(hostReply.parse(JSON.parse(line)))
      for (const wake of this.#waiting.splice(0)) wake()
    })
    return this.reply('hello')
  }

  disconnect(): void {
    this.#socket?.destroy()
    this.#socket = null
  }

  /** Reads no more of what the host says. */
  pause(): void {
    this.#socket?.pause()
  }

  send(request: HostRequest): void {
    this.#socket?.write(`${JSON.stringify(request)}\n`)
  }

  /** The next reply of this type, taken from those that came. */
  async reply<Type extends HostReply['type']>(type: Type): Promise<Reply<Type>> {
    const deadline = Date.now() + deadlineMs
    for (;;) {
      const at = this.#replies.findIndex((reply) => reply.type === type)
      if (at >= 0) return this.#replies.splice(at, 1)[0] as Reply<Type>
      if (Date.now() > deadline) throw new Error(`no ${type} from ${this.hostId}; its log: ${this.log}`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 1_000)
        this.#waiting.push(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    }
  }

  assign(spec: RunSpec, change: Partial<Extract<HostRequest, { type: 'assign' }>> = {}): void {
    this.send({
      type: 'assign',
      spec,
      fence: 1,
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: join(this.#stateDir, '..') },
      homeDir: userInfo().homedir,
      loginShell: '/bin/sh',
      svcBinDir: null,
      harnessVersion: null,
      wall: this.#wall,
      ...change,
    })
  }

  start(change: Partial<Extract<HostRequest, { type: 'start' }>> = {}): void {
    this.send({
      type: 'start',
      token: 'tok_0123456789abcdefghij',
      apiUrl: 'http://127.0.0.1:1',
      secrets: {},
      ...change,
    })
  }

  /** From hello to started. */
  async launch(spec: RunSpec, change: Parameters<TestHost['start']>[0] = {}): Promise<Reply<'started'>> {
    await this.connect()
    this.assign(spec)
    await this.reply('prepared')
    this.start(change)
    return this.reply('started')
  }
}

/** Returns what the spool holds of a run, checked: contiguous from 1, each line what the schema says. */
export function spooled(device: TestDevice, runId: string, fence = 1) {
  const key: RunKey = { runId: idFrom(runId), fence }
  const spool = openSpool(device.spoolPath)
  try {
    const lines: Buffer[] = []
    const events: StoredEvent[] = []
    for (let after = 0; ;) {
      const rows = spool.read(key, after, 1024 * 1024)
      if (rows.length === 0) break
      for (const row of rows) {
        lines.push(Buffer.from(row.line))
        events.push(storedEvent.parse(JSON.parse(Buffer.from(row.line).toString('utf8'))))
        after = row.seq
        if (events.at(-1)!.seq !== row.seq || row.seq !== events.length) throw new Error(`hole before ${row.seq}`)
      }
    }
    return { events, log: Buffer.concat(lines), ending: spool.ending(key), stats: spool.stats(key) }
  } finally {
    spool.close()
  }
}

/** What the spool holds about the run beside its events, which are not read: for those who ask again and again. */
export function accountOf(device: TestDevice, runId: string, fence = 1) {
  const spool = openSpool(device.spoolPath)
  try {
    return {
      ending: spool.ending({ runId: idFrom(runId), fence }),
      stats: spool.stats({ runId: idFrom(runId), fence }),
    }
  } finally {
    spool.close()
  }
}

/** The bytes of all text events: what the terminal printed. */
export function outputOf(events: readonly StoredEvent[]): Buffer {
  return Buffer.concat(
    events
      .filter(({ kind }) => kind === 'text' || kind === 'raw')
      .map(({ data }) =>
        'text' in data ? Buffer.from(data['text'] as string) : Buffer.from(data['base64'] as string, 'base64'),
      ),
  )
}

export async function until(condition: () => boolean, what: string, ms = deadlineMs): Promise<void> {
  const deadline = Date.now() + ms
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`not in time: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
