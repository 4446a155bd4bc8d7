import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

/** The last lines of a text; a line break at the end begins no line. */
export function lastLines(text: string, count: number): string[] {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return count === 0 ? [] : lines.slice(-count)
}

const chunkBytes = 64 * 1024
const maxBytes = 64 * 1024 * 1024

/** The last lines of a file, read from its end, and where the file ended. Null when there is no file. */
export function tailOf(path: string, count: number): { lines: string[]; end: number } | null {
  const file = openIfThere(path)
  if (file === null) return null
  try {
    const end = fstatSync(file).size
    let from = end
    let bytes = Buffer.alloc(0)
    while (from > 0 && breaksIn(bytes) <= count && bytes.length < maxBytes) {
      const length = Math.min(chunkBytes, from)
      from -= length
      const chunk = Buffer.alloc(length)
      readSync(file, chunk, 0, length, from)
      bytes = Buffer.concat([chunk, bytes])
    }
    return { lines: lastLines(bytes.toString('utf8'), count), end }
  } finally {
    closeSync(file)
  }
}

/**
 * Reads the text added to a file after `from`. Starts at the beginning when the file is shorter now, since then the old
 * one was rotated away.
 */
export function addedTo(path: string, from: number): { text: Buffer; end: number } {
  const file = openIfThere(path)
  if (file === null) return { text: Buffer.alloc(0), end: 0 }
  try {
    const { size } = fstatSync(file)
    const begin = size < from ? 0 : from
    const text = Buffer.alloc(Math.min(size - begin, maxBytes))
    const read = readSync(file, text, 0, text.length, begin)
    return { text: text.subarray(0, read), end: begin + read }
  } finally {
    closeSync(file)
  }
}

function openIfThere(path: string): number | null {
  try {
    return openSync(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

function breaksIn(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) count++
  return count
}
