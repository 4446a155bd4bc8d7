import { spawn, type ChildProcess } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join, resolve } from 'node:path'
import { processesNaming, waitFor } from '../../kit/programs.ts'

const original = resolve(import.meta.dirname, '../../..')
const parts = ['cli', 'control-plane', 'device-manager', 'shared', 'scripts', 'package.json', 'package-lock.json']

/** Each has a state folder of this name. */
export const devices = ['first', 'second'] as const
export type DeviceName = (typeof devices)[number]

export interface StartOptions {
  input?: string
  device?: DeviceName
}

export interface Said {
  status: number | null
  stdout: string
  stderr: string
}

/**
 * A checkout of this project as a person has it, with an installed `node_modules`. Its `npm ci` takes all packages away, as
 * npm's does, and puts them back (from where this project has them, not from a registry) once the test lets it.
 */
export class Checkout {
  readonly folder = mkdtempSync(join(tmpdir(), 'svc-checkout-'))
  readonly env: Record<string, string>
  readonly #children: ChildProcess[] = []

  constructor() {
    const { folder } = this
    const code = join(folder, 'code')
    for (const part of parts)
      cpSync(join(original, part), join(code, part), {
        recursive: true,
        filter: (source) => !source.endsWith('.test.ts') && !source.includes('/node_modules'),
      })
    linkPackages(code)
    const bin = join(folder, 'bin')
    mkdirSync(bin)
    writeFileSync(
      join(bin, 'npm'),
      `#!/bin/sh\nexec '${process.execPath}' '${join(import.meta.dirname, 'npm-ci.ts')}'\n`,
    )
    chmodSync(join(bin, 'npm'), 0o755)
    this.env = {
      PATH: [bin, dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter),
      HOME: folder,
      TMPDIR: tmpdir(),
      SVC_CONFIG_DIR: join(folder, 'config'),
      SVC_DATA_DIR: join(folder, 'data'),
      SVC_PORT: '0',
      SVC_TEST_NPM: folder,
    }
  }

  /** Has the programs that this project made of the same sources: the next command finds that they are what it would make. */
  takeRelease(release: string): void {
    cpSync(release, join(this.code, '.cache/releases', basename(release)), {
      recursive: true,
      mode: constants.COPYFILE_FICLONE,
    })
  }

  get code(): string {
    return join(this.folder, 'code')
  }
  /** `npm ci` has taken the packages away. */
  get arePackagesGone(): boolean {
    return !readdirSync(this.code).includes('node_modules')
  }
  /** Lets `npm ci` put them back. */
  install(): void {
    writeFileSync(join(this.folder, 'install'), '')
  }

  /** Does what `git pull` does to the files: another version of the packages, and of a source that every program has. */
  pull(): void {
    appendFileSync(join(this.code, 'package-lock.json'), '\n')
    appendFileSync(join(this.code, 'shared/lib/world.ts'), '\nexport const pulled = 1\n')
  }

  start(script: string, args: readonly string[], { input = '', device = devices[0] }: StartOptions = {}) {
    const env = { ...this.env, SVC_STATE_DIR: join(this.folder, device) }
    const child = spawn(join(this.code, 'scripts', script), args, { env, cwd: this.folder })
    this.#children.push(child)
    child.stdin.end(input)
    const said: Said = { status: null, stdout: '', stderr: '' }
    child.stdout.on('data', (chunk) => (said.stdout += String(chunk)))
    child.stderr.on('data', (chunk) => (said.stderr += String(chunk)))
    return {
      child,
      soFar: said,
      said: new Promise<Said>((done) => child.on('close', (status) => done({ ...said, status }))),
    }
  }

  /** Returns what `svc` printed; fails where it fails. */
  async svc(args: readonly string[], options?: StartOptions): Promise<string> {
    const { status, stdout, stderr } = await this.start('svc', args, options).said
    if (status !== 0) throw new Error(`svc ${args.join(' ')} ended with ${status}: ${stderr}`)
    return stdout
  }

  async serverRecord(): Promise<{ url: string; pid: number; token: string }> {
    const read = () => JSON.parse(this.#data('server.json')) as { url: string; pid: number }
    const { url, pid } = await waitFor(read, 'the server listens')
    return { url, pid, token: this.#data('login-token').trim() }
  }
  #data = (name: string) => readFileSync(join(this.folder, 'data', name), 'utf8')

  /** Null where none runs. */
  daemonPid(device: DeviceName): number | null {
    const file = join(this.folder, device, 'daemon.json')
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { pid: number }).pid : null
  }

  async remove(): Promise<void> {
    for (const device of devices) {
      const pid = this.daemonPid(device)
      if (pid !== null) process.kill(pid, 'SIGTERM')
      await waitFor(() => this.daemonPid(device) === null, 'the daemon ends')
    }
    for (const child of this.#children) if (child.exitCode === null) child.kill('SIGTERM')
    await waitFor(
      () => this.#children.every(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null),
      'the programs of the checkout end',
    )
    // Run hosts of a test that failed.
    for (const { pid } of processesNaming(this.folder)) endIfThere(pid)
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Each package by a link, and the mark of scripts/env that they fit the lockfile. */
export function linkPackages(code: string): void {
  const modules = join(code, 'node_modules')
  mkdirSync(modules)
  for (const name of readdirSync(join(original, 'node_modules')))
    if (name !== '.installed') symlinkSync(join(original, 'node_modules', name), join(modules, name))
  cpSync(join(original, 'node_modules/.installed'), join(modules, '.installed'))
}

function endIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
