import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  createWriteStream,
  linkSync,
  lstatSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  type Stats,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { CliError, usageError } from '../errors/cli-error.ts'

/**
 * Writes a file completely or not at all, also where the command is ended meanwhile. An existing one is replaced only when it
 * `mayReplace`, and the new one has its mode; of a link the file is replaced that it leads to. What is no file, such as a pipe,
 * /dev/null or /dev/stdout, gets the bytes as they come.
 */
export async function writeWhole(path: string, bytes: Readable, mayReplace: boolean): Promise<void> {
  const before = (mayReplace ? statSync : lstatSync)(path, { throwIfNoEntry: false })
  if (before !== undefined && (!mayReplace || before.isDirectory())) {
    bytes.destroy()
    throw usageError(
      `${path} is ${mayReplace ? 'a directory' : 'there already'}.`,
      `Name ${mayReplace ? 'a file in it' : 'another place'} with --output.`,
    )
  }
  try {
    const place = before === undefined || before.isFile() ? placeOf(path) : null
    if (place === null) await written(path, bytes, { flags: 'w' })
    else await replaced(place, bytes, { before, mayReplace })
  } catch (error) {
    bytes.destroy()
    if (!(error instanceof Unwritable)) throw error
    throw new CliError('file_unwritable', `${path} cannot be written: ${error.message}.`, { cause: error.cause })
  }
}

/** The file system refuses it; everything else that fails is the bytes. */
class Unwritable extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

function orUnwritable<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    throw new Unwritable(error)
  }
}

const mostLinks = 40

/** The file that the path leads to, by whatever links; null for what a process has open, which is no file to be replaced. */
function placeOf(path: string): string | null {
  return orUnwritable(() => {
    let at = path
    for (let links = 0; links < mostLinks; links++) {
      const folder = realpathSync(dirname(at))
      if (folder === '/dev' || /^\/(?:proc|dev\/fd)(?:\/|$)/.test(folder)) return null
      at = join(folder, basename(at))
      if (lstatSync(at, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return at
      at = resolve(folder, readlinkSync(at))
    }
    throw new Error('too many links')
  })
}

async function replaced(
  place: string,
  bytes: Readable,
  { before, mayReplace }: { before: Stats | undefined; mayReplace: boolean },
): Promise<void> {
  const draft = join(dirname(place), `.svc-${randomUUID()}.part`)
  const stopWatching = whenEnded(() => rmSync(draft, { force: true }))
  try {
    const mode = before === undefined ? null : before.mode & 0o777
    await written(draft, bytes, { flags: 'wx', ...(mode !== null && { mode }) })
    orUnwritable(() => {
      // What the umask took from it.
      if (mode !== null) chmodSync(draft, mode)
      return mayReplace ? renameSync(draft, place) : giveName(draft, place)
    })
  } finally {
    rmSync(draft, { force: true })
    stopWatching()
  }
}

/** Fails where there is such a file by now. */
function giveName(draft: string, place: string): void {
  try {
    linkSync(draft, place)
  } catch (error) {
    // Some file systems have no links.
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    renameSync(draft, place)
  }
}

async function written(path: string, bytes: Readable, options: { flags: string; mode?: number }): Promise<void> {
  const file = createWriteStream(path, options)
  let failure: Error | null = null
  file.once('error', (error) => (failure = error))
  try {
    await pipeline(bytes, file)
  } catch (error) {
    throw error === failure ? new Unwritable(error) : error
  }
}

const endings = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Does this before a signal ends the program; returns what takes that back. */
function whenEnded(act: () => void): () => void {
  const end = (signal: NodeJS.Signals) => {
    act()
    stop()
    process.kill(process.pid, signal)
  }
  const stop = () => endings.forEach((signal) => process.off(signal, end))
  for (const signal of endings) process.on(signal, end)
  return stop
}
