import { closeSync, existsSync, fsyncSync, openSync, rmSync, statfsSync, unlinkSync, writeSync } from 'node:fs'
import { randomFillSync } from 'node:crypto'
import { dirname } from 'node:path'

/**
 * Room kept on the disk for endings: a file of random bytes (a file system that compresses must not save it away), given
 * up when a terminal row does not fit. Rule: no reserve, no append. So what it frees is taken by endings and
 * acknowledgements alone, and appends go on only when the disk has room for a new reserve.
 */
export interface Reserve {
  /** The reserve is there, or could be made now. */
  ensure(): boolean
  /** Frees its room; false when there was none. */
  release(): boolean
}

export function makeReserve(path: string, sizeBytes: number): Reserve {
  return {
    ensure: () => existsSync(path) || create(path, sizeBytes),
    release: () => {
      try {
        unlinkSync(path)
        return true
      } catch {
        return false
      }
    },
  }
}

/** Free bytes for this user on the disk that holds `path`; null when the system does not say. */
export function freeDiskBytes(path: string): number | null {
  try {
    const disk = statfsSync(dirname(path))
    return disk.bavail * disk.bsize
  } catch {
    return null
  }
}

function create(path: string, sizeBytes: number): boolean {
  const free = freeDiskBytes(path)
  // With less than this left the disk counts as full: the reserve must not be what fills it.
  if (free !== null && free < sizeBytes * 2) return false
  const chunk = randomFillSync(Buffer.alloc(Math.min(sizeBytes, 1024 * 1024)))
  let fd: number | null = null
  try {
    fd = openSync(path, 'wx', 0o600)
    for (let left = sizeBytes; left > 0; left -= chunk.length) writeSync(fd, chunk, 0, Math.min(left, chunk.length))
    fsyncSync(fd)
    return true
  } catch (error) {
    // Another process made it in this moment: it is there.
    if (fd === null) return (error as NodeJS.ErrnoException).code === 'EEXIST'
    rmSync(path, { force: true })
    return false
  } finally {
    if (fd !== null) closeSync(fd)
  }
}
