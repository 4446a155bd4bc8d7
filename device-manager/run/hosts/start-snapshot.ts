import { spawn, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import { runHostFileUrl } from '../../../shared/lib/program-file.ts'
import { hostNodeFlags } from '../../run-host/wire/node-flags.ts'

/** The time after which what makes one hangs. It takes a second. */
const makeMs = 60_000

/**
 * A start-up snapshot of the run host: Node starts with all of its modules loaded and its schemas made, which takes half of the processor
 * time. It lies with the compile cache of the device, since it is code as well: runs can read it at most (ADR 41). Its name tells of what it
 * was made, so that another version of svc or Node does not take it, and its checksum, since Node looks at none. Node itself refuses one of
 * another processor or set of flags, and ends: then the host is started without it, and this daemon takes none any more.
 */
export class StartSnapshot {
  private readonly folder: string
  /** The run host as one file; null: svc runs from its sources. */
  private readonly source: string | null
  private known: string | null = null
  private found: string | null = null
  private isDistrusted = false
  private making: ChildProcess | null = null

  /** `compileCache`: the folder of what Node compiled. */
  constructor(compileCache: string, source = runHostFile()) {
    this.folder = join(compileCache, 'snapshots')
    this.source = source
  }

  /** The file, or null where there is none to start with. */
  find(): string | null {
    if (this.isDistrusted) return null
    if (this.found === null || !existsSync(this.found)) this.found = this.look()
    return this.found
  }

  /** A host that was started with it ended before it could be reached. */
  distrust(): void {
    this.isDistrusted = true
    if (this.found !== null) remove(this.found)
  }

  /** Makes it where there is none. Never fails: whatever is wrong, hosts start without it. */
  async make(): Promise<void> {
    const { source, folder } = this
    if (source === null || this.isDistrusted || this.making !== null || this.find() !== null) return
    const unfinished = join(folder, `making-${process.pid}`)
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      for (const other of readdirSync(folder)) remove(join(folder, other))
      const args = [...hostNodeFlags, '--snapshot-blob', unfinished, '--build-snapshot', source]
      // It would keep what it read of its environment.
      this.making = spawn(process.execPath, args, { cwd: '/', env: {}, stdio: 'ignore', timeout: makeMs })
      const [status] = (await once(this.making, 'exit')) as [number | null]
      if (status === 0) renameSync(unfinished, join(folder, `${this.name()}.${checksumOf(unfinished)}`))
    } catch {
      // The disk is full, or the folder is read-only.
    } finally {
      this.making = null
      remove(unfinished)
    }
  }

  /** What makes one ends with the daemon. */
  async stop(): Promise<void> {
    this.isDistrusted = true
    const { making } = this
    if (making?.kill('SIGKILL') === true) await once(making, 'exit')
  }

  private look(): string | null {
    if (this.source === null) return null
    try {
      const names = readdirSync(this.folder).filter((name) => name.startsWith(`${this.name()}.`))
      const whole = names.map((name) => join(this.folder, name)).find((file) => file.endsWith(`.${checksumOf(file)}`))
      return whole ?? null
    } catch {
      return null
    }
  }

  private name(): string {
    return (this.known ??= nameOf(this.source!))
  }
}

function runHostFile(): string | null {
  const url = runHostFileUrl()
  return url === null ? null : fileURLToPath(url)
}

function nameOf(source: string): string {
  const of = [source, process.version, process.versions.v8, process.arch, process.execPath, ...hostNodeFlags]
  const hash = createHash('sha256')
    .update(`${of.join('\0')}\0`)
    .update(readFileSync(source))
  return `${basename(source, '.js')}-${hash.digest('hex').slice(0, 32)}`
}

const checksumOf = (file: string): string => crc32(readFileSync(file)).toString(16)

function remove(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch {
    // It is not taken, or made anew.
  }
}
