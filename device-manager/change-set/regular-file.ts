import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'

/**
 * All of a regular file of at most `maxBytes`; null for anything else. Never waits for a named pipe, which a hostile
 * repository may have in the place of a file. Fails when the file cannot be opened.
 */
export function readRegularFile(
  path: string,
  { maxBytes, followLinks }: { maxBytes: number; followLinks: boolean },
): Buffer | null {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | (followLinks ? 0 : constants.O_NOFOLLOW)
  const file = openSync(path, flags)
  try {
    return readOpenFile(file, maxBytes)
  } finally {
    closeSync(file)
  }
}

/** The same of a file that is open, without waiting (`O_NONBLOCK`). */
export function readOpenFile(file: number, maxBytes: number): Buffer | null {
  const found = fstatSync(file)
  if (!found.isFile() || found.size > maxBytes) return null
  // One byte more: a file that grows meanwhile is not read.
  const bytes = Buffer.allocUnsafe(found.size + 1)
  return readSync(file, bytes, 0, found.size + 1, 0) === found.size ? bytes.subarray(0, found.size) : null
}
