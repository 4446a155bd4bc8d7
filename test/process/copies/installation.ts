import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { MadeRelease } from '../../kit/releases.ts'
import { waitFor } from '../../kit/programs.ts'
import { TestApi } from '../../kit/system-api.ts'

export interface Said {
  status: number | null
  stdout: string
  stderr: string
}

/** A machine of somebody who has svc by its tarball: nothing is on its PATH but what each system has, and svc. */
export class Installation {
  readonly folder = mkdtempSync(join(tmpdir(), 'svc-copy-'))
  readonly prefix = join(this.folder, 'opt')
  readonly bin = join(this.folder, 'bin')
  readonly stateDir = join(this.folder, 'state')
  readonly dataDir = join(this.folder, 'data')
  readonly env: Record<string, string> = {
    HOME: this.folder,
    TMPDIR: tmpdir(),
    PATH: `${this.bin}:/usr/bin:/bin`,
    SVC_CONFIG_DIR: join(this.folder, 'config'),
    SVC_STATE_DIR: this.stateDir,
    SVC_DATA_DIR: this.dataDir,
  }
  readonly #children: ChildProcess[] = []

  /** Unpacks the tarball and types `./install`. */
  async install({ tarball, version }: MadeRelease): Promise<Said> {
    const unpacked = mkdtempSync(join(this.folder, 'unpacked-'))
    execFileSync('tar', ['-xzf', tarball, '-C', unpacked])
    const [name = ''] = readdirSync(unpacked)
    const said = await this.run(join(unpacked, name, 'install'), ['--prefix', this.prefix, '--bin', this.bin])
    rmSync(unpacked, { recursive: true })
    if (said.status !== 0) throw new Error(`${version} was not installed: ${said.stderr}${said.stdout}`)
    return said
  }

  start(program: string, args: readonly string[], { input = '', env = {} }: StartOptions = {}) {
    const child = spawn(program, args, { env: { ...this.env, ...env }, cwd: this.folder })
    this.#children.push(child)
    child.stdin.on('error', () => undefined)
    child.stdin.end(input)
    const said: Said = { status: null, stdout: '', stderr: '' }
    child.stdout.on('data', (chunk) => (said.stdout += String(chunk)))
    child.stderr.on('data', (chunk) => (said.stderr += String(chunk)))
    return { child, said: new Promise<Said>((done) => child.on('close', (status) => done({ ...said, status }))) }
  }

  run(program: string, args: readonly string[], options?: StartOptions): Promise<Said> {
    return this.start(program, args, options).said
  }

  /** What `svc` says, whatever it is. */
  svc(args: readonly string[], options?: StartOptions): Promise<Said> {
    return this.run(join(this.bin, 'svc'), args, options)
  }

  /** What `svc` printed; fails where it fails. */
  async works(args: readonly string[], options?: StartOptions): Promise<string> {
    const { status, stdout, stderr } = await this.svc(args, options)
    if (status !== 0) throw new Error(`svc ${args.join(' ')} ended with ${status}: ${stderr}${stdout}`)
    return stdout
  }

  /** The version that the link leads to. */
  at(link: 'current' | 'previous'): string | null {
    const path = join(this.prefix, link)
    return existsSync(path) ? readlinkSync(path) : null
  }

  get versions(): string[] {
    return readdirSync(join(this.prefix, 'versions')).toSorted()
  }

  /** Starts the server at this port (0: any free one), and waits until it answers. `dataDir`: of another replica. */
  async startServer(
    port = 0,
    env: Record<string, string> = {},
    dataDir = this.dataDir,
  ): Promise<{ api: TestApi; child: ChildProcess; url: string }> {
    rmSync(join(dataDir, 'server.json'), { force: true })
    const args = ['start', '--port', String(port), '--data-dir', dataDir]
    const { child, said } = this.start(join(this.bin, 'svc-server'), args, { env })
    let ended: Said | null = null
    void said.then((end) => (ended = end))
    const url = await waitFor(
      () => {
        if (ended !== null) throw new Error(`the server ended: ${JSON.stringify(ended)}`)
        const file = join(dataDir, 'server.json')
        return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { url: string }).url : null
      },
      'the server listens',
      { ms: 60_000 },
    )
    const api = new TestApi(() => ({ url, token: this.loginToken }))
    return { api, child, url }
  }

  /** Of the first person, which the first start made. */
  get loginToken(): string {
    return readFileSync(join(this.dataDir, 'login-token'), 'utf8').trim()
  }

  get daemonPid(): number | null {
    return daemonPidIn(this.stateDir)
  }

  makeFolder(name: string): string {
    const folder = join(this.folder, name)
    mkdirSync(folder, { mode: 0o700, recursive: true })
    return folder
  }

  async remove(): Promise<void> {
    for (const name of readdirSync(this.folder)) {
      const stateDir = join(this.folder, name)
      const pid = daemonPidIn(stateDir)
      if (pid === null) continue
      process.kill(pid, 'SIGTERM')
      await waitFor(() => daemonPidIn(stateDir) === null, 'the daemon ends')
    }
    for (const child of this.#children) if (child.exitCode === null) child.kill('SIGTERM')
    await waitFor(
      () => this.#children.every((child) => child.exitCode !== null || child.signalCode !== null),
      'the programs end',
    )
    // Run hosts that their daemon left write what they compiled at their end.
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20 })
  }
}

function daemonPidIn(stateDir: string): number | null {
  const file = join(stateDir, 'daemon.json')
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { pid: number }).pid : null
}

interface StartOptions {
  input?: string
  env?: Readonly<Record<string, string>>
}
