import { createReadStream, statSync } from 'node:fs'
import { basename } from 'node:path'
import { CliError, usageError } from '../errors/cli-error.ts'

/** Bytes of a file or of standard input, read piece by piece. */
export interface ByteSource {
  /** null for standard input. */
  name: string | null
  /** null: not known before its end. */
  sizeBytes: number | null
  read(): AsyncIterable<Uint8Array>
}

const pieceBytes = 192 * 1024

export function byteSource(path: string, resolvePath: (given: string) => string): ByteSource {
  if (path === '-') return { name: null, sizeBytes: null, read: () => process.stdin as AsyncIterable<Uint8Array> }
  const whole = resolvePath(path)
  const size = sizeOf(whole, path)
  return {
    name: basename(whole),
    sizeBytes: size,
    read: () => readAll(whole, size),
  }
}

/** What is appended meanwhile is not sent. A file that became shorter fails: the server would wait for the rest. */
async function* readAll(path: string, size: number): AsyncGenerator<Uint8Array> {
  if (size === 0) return
  let left = size
  try {
    const pieces = createReadStream(path, { end: size - 1, highWaterMark: pieceBytes }) as AsyncIterable<Uint8Array>
    for await (const piece of pieces) {
      left -= piece.length
      yield piece
    }
  } catch (error) {
    throw new CliError('file_unreadable', `The file ${path} cannot be read: ${(error as Error).message}.`, {
      cause: error,
    })
  }
  if (left > 0) throw new CliError('file_changed', `The file ${path} became shorter while it was read.`)
}

function sizeOf(path: string, given: string): number {
  try {
    const found = statSync(path)
    if (found.isFile()) return found.size
  } catch (error) {
    throw usageError(`The file ${given} cannot be read: ${(error as Error).message}.`)
  }
  throw usageError(`${given} is no file.`)
}

/** The text of these bytes in base64, in pieces. */
export async function* inBase64(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let left = Buffer.alloc(0)
  for await (const piece of source) {
    const bytes = Buffer.concat([left, piece])
    const whole = bytes.length - (bytes.length % 3)
    if (whole > 0) yield Buffer.from(bytes.toString('base64', 0, whole), 'latin1')
    left = bytes.subarray(whole)
  }
  if (left.length > 0) yield Buffer.from(left.toString('base64'), 'latin1')
}

export const base64Length = (sizeBytes: number): number => Math.ceil(sizeBytes / 3) * 4
