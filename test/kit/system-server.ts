import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { compileCache } from './compile-cache.ts'
import { migratedImage, programFile } from './program-file.ts'
import { Hopeless, Program, waitFor, type ProgramExit } from './programs.ts'
import { TestApi } from './system-api.ts'

export interface ServerOptions {
  name: string
  root: string
  env: Readonly<Record<string, string>>
  /** null: SQLite in the data folder. */
  databaseUrl: string | null
  /** Of the replica that made the first person; null: this one does. */
  tokenOf: TestServer | null
  /** The folder of the programs; default this checkout's. */
  programs?: string | undefined
  /** A command that becomes the program: `nsenter ... --`. */
  via?: readonly string[]
}

/** One replica of the real control plane. It keeps its port over restarts, as a service does. */
export class TestServer {
  readonly dataDir: string
  readonly logPath: string
  readonly api: TestApi
  /** Says what the next start is of: another folder than before is an upgrade. */
  programs: string | undefined
  readonly #options: ServerOptions
  #program: Program | null = null
  #port = 0

  constructor(options: ServerOptions) {
    this.#options = options
    this.programs = options.programs
    this.dataDir = join(options.root, options.name)
    this.logPath = join(options.root, `${options.name}.log`)
    mkdirSync(this.dataDir)
    // What its first start would make there, which takes a third of a second.
    const image = options.databaseUrl === null && options.programs === undefined ? migratedImage() : null
    if (image !== null) {
      const file = join(this.dataDir, 'svc.db')
      copyFileSync(image, file)
      chmodSync(file, 0o600)
    }
    this.api = new TestApi(() => ({ url: this.url, token: this.token }))
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }
  get port(): number {
    return this.#port
  }
  get token(): string {
    return this.#options.tokenOf?.token ?? readFileSync(join(this.dataDir, 'login-token'), 'utf8').trim()
  }
  get program(): Program {
    if (!this.#program) throw new Error(`${this.#options.name} was not started`)
    return this.#program
  }
  get isRunning(): boolean {
    return this.#program?.isRunning ?? false
  }
  get log(): string {
    return readFileSync(this.logPath, 'utf8')
  }

  async start(): Promise<void> {
    const { name, root, env, databaseUrl, via = [] } = this.#options
    const program = new Program({
      name,
      cwd: root,
      logPath: this.logPath,
      via,
      args: [
        programFile('control-plane', this.programs),
        'start',
        '--port',
        String(this.#port),
        '--data-dir',
        this.dataDir,
      ],
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: root,
        ...compileCache,
        SVC_CHECK_REPLIES: '1',
        SVC_RATE_LIMIT_PER_MINUTE: '1000000',
        // No other replica is waited for, but where a test is about that.
        SVC_DRAIN_MS: '0',
        ...(databaseUrl === null ? {} : { SVC_DATABASE_URL: databaseUrl }),
        ...env,
      },
    })
    this.#program = program
    const file = join(this.dataDir, 'server.json')
    const { url } = await waitFor(
      () => {
        if (!program.isRunning) throw new Hopeless(`${name} ended at its start:\n${program.log}`)
        if (!existsSync(file)) return null
        const record = JSON.parse(readFileSync(file, 'utf8')) as { url: string; pid: number }
        return record.pid === program.pid ? record : null
      },
      `${name} listens`,
      // How soon a busy machine starts a program is no matter of any test.
      { ms: 120_000, about: () => program.log },
    )
    this.#port = Number(new URL(url).port)
  }

  kill9(): Promise<void> {
    return this.program.kill9()
  }

  /** SIGTERM, and its exit. */
  end(): Promise<ProgramExit> {
    return this.program.end()
  }

  /** The value of a metric, its labels in braces where it has any: `svc_events_stored_total`. */
  async metric(name: string): Promise<number> {
    const text = await (await fetch(`${this.url}/metrics`)).text()
    const line = text.split('\n').find((each) => each.startsWith(`${name} `))
    return line === undefined ? 0 : Number(line.slice(name.length + 1))
  }
}
