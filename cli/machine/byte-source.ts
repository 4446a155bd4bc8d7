import { createReadStream, createWriteStream, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { usageError } from '../errors/cli-error.ts'

/** Bytes of a file or of standard input, read piece by piece. */
export interface ByteSource {
  /** null for standard input. */
  name: string | null
  /** null: not known before its end. */
  sizeBytes: number | null
  read(): AsyncIterable<Uint8Array>
}

const pieceBytes = 192 * 1024

export function byteSource(path: string, cwd: string): ByteSource {
  if (path === '-') return { name: null, sizeBytes: null, read: () => process.stdin as AsyncIterable<Uint8Array> }
  const whole = resolve(cwd, path)
  const size = sizeOf(whole, path)
  return {
    name: basename(whole),
    sizeBytes: size,
    // What is appended meanwhile is not sent.
    read: () =>
      size === 0
        ? none()
        : (createReadStream(whole, { end: size - 1, highWaterMark: pieceBytes }) as AsyncIterable<Uint8Array>),
  }
}

async function* none(): AsyncGenerator<Uint8Array> {
  // A file without bytes.
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

/** Writes a file completely or not at all. An existing one is replaced only when it `mayReplace`. */
export async function writeWhole(path: string, bytes: Readable, mayReplace: boolean): Promise<void> {
  const draft = join(dirname(path), `.${basename(path)}.${process.pid}.part`)
  if (!mayReplace && statSync(path, { throwIfNoEntry: false }) !== undefined) {
    bytes.destroy()
    throw usageError(`${path} is there already.`, 'Name another place with --output.')
  }
  try {
    await pipeline(bytes, createWriteStream(draft, { flags: 'wx' }))
    renameSync(draft, path)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
}
