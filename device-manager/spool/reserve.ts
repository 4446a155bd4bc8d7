import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
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
    ensure: () => sizeOf(path) >= sizeBytes || fill(path, sizeBytes),
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

function sizeOf(path: string): number {
  try {
    return statSync(path).size
  } catch {
    return 0
  }
}

/**
 * Goes on from the end of a file that is too short, which a process left that was killed while it wrote. Two processes that
 * fill it at once write to the same places, so it is whole when either is done.
 */
function fill(path: string, sizeBytes: number): boolean {
  const free = freeDiskBytes(path)
  // With less than this left the disk counts as full: the reserve must not be what fills it.
  if (free !== null && free + sizeOf(path) < sizeBytes * 2) return false
  const chunk = randomFillSync(Buffer.alloc(Math.min(sizeBytes, 1024 * 1024)))
  let fd: number | null = null
  try {
    fd = openSync(path, constants.O_WRONLY | constants.O_CREAT, 0o600)
    for (let at = fstatSync(fd).size; at < sizeBytes;)
      at += writeSync(fd, chunk, 0, Math.min(sizeBytes - at, chunk.length), at)
    fsyncSync(fd)
    return true
  } catch {
    if (fd !== null) rmSync(path, { force: true })
    return false
  } finally {
    if (fd !== null) closeSync(fd)
  }
}
