import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A file system of its own, of a few megabytes, that a test can fill to the last byte: a tmpfs in a mount namespace that a
 * small program holds. Programs enter it by `via`; the test itself sees the files under `seenAt`.
 */
export interface SmallDisk {
  /** Put before the command of a program that is to see the disk. */
  readonly via: readonly string[]
  /** Says where this test sees what the programs see at the path it was mounted on. */
  readonly seenAt: string
  /** Takes all the room that is left. */
  fill(): void
  /** Gives it back. */
  free(): void
  close(): Promise<void>
}

/** Mounting takes root; null: it can be done here. */
export function whyNoSmallDisk(): string | null {
  if (process.platform !== 'linux') return 'small disks are made on Linux only'
  if (process.getuid?.() !== 0) return 'only root can mount the small disk that is filled'
  try {
    execFileSync('unshare', ['-m', '--propagation', 'private', 'mount', '-t', 'tmpfs', 'none', '/mnt'], {
      stdio: 'ignore',
    })
    return null
  } catch {
    return 'a mount namespace cannot be made here'
  }
}

export async function smallDisk(path: string, megabytes: number): Promise<SmallDisk> {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const script = 'mount -t tmpfs -o "size=$2m,mode=700" none "$1" && echo mounted && exec cat >&2'
  // It ends with this test, whose death closes the pipe.
  const holder = spawn('unshare', ['-m', '--propagation', 'private', 'sh', '-c', script, 'sh', path, `${megabytes}`], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await said(holder, 'mounted')
  const seenAt = `/proc/${holder.pid}/root${path}`
  const ballast = join(seenAt, 'ballast')
  return {
    via: ['nsenter', '--mount', `--target=${holder.pid}`, '--'],
    seenAt,
    fill: () => {
      const file = openSync(ballast, 'a')
      for (const size of [1024 * 1024, 4096, 1]) writeAll(file, size)
      closeSync(file)
    },
    free: () => rmSync(ballast, { force: true }),
    close: async () => {
      if (holder.exitCode !== null || holder.signalCode !== null) return
      const gone = new Promise((resolve) => holder.once('exit', resolve))
      holder.stdin.end()
      await gone
    },
  }
}

function writeAll(file: number, size: number): void {
  const chunk = Buffer.alloc(size, 0x55)
  try {
    for (;;) writeSync(file, chunk)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}

function said(holder: ChildProcess, word: string): Promise<void> {
  return new Promise((resolve, reject) => {
    holder.stdout?.on('data', (chunk: Buffer) => chunk.toString().includes(word) && resolve())
    holder.once('exit', (code) => reject(new Error(`the small disk could not be mounted (${code})`)))
    holder.once('error', reject)
  })
}
