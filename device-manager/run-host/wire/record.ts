import type { RunId } from '../../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import { closeSync, fsyncSync, lstatSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { HostRecord } from './protocol.ts'

/** The folder within the state folder that holds the folders of harnesses, by the ids of their hosts. */
export const ownFolderName = 'own'

/** Returns where a host and its run keep things, under the state folder. All of it is this user's alone. */
export interface HostPaths {
  hosts: string
  record: string
  socket: string
  spool: string
  /** The folder of its run's harness: named before there is a run, so that the wall around it can be made. */
  own: string
}

/** Returns the place beside the folder of a run to come, from which what is made ahead for it is moved there in one step. */
export const aheadOf = (own: string): string => `${own}${aheadEnding}`
export const aheadEnding = '.ahead'

export function removeOwnFolders(own: string): void {
  for (const folder of [own, aheadOf(own)]) rmSync(folder, { recursive: true, force: true })
}

/** Longer paths cannot be bound on some systems (macOS: 104 with the zero byte). */
const maxSocketPath = 103

export function hostPaths(stateDir: string, hostId: string): HostPaths {
  const hosts = join(stateDir, 'hosts')
  const inState = join(hosts, `${hostId}.sock`)
  // The record names the socket, so it may lie elsewhere: in a folder that only this user may enter.
  const isShort = Buffer.byteLength(inState) <= maxSocketPath
  return {
    hosts,
    record: join(hosts, `${hostId}.json`),
    socket: isShort ? inState : join(shortFolder(stateDir), `${hostId}.sock`),
    spool: join(stateDir, 'spool.db'),
    own: join(stateDir, ownFolderName, hostId),
  }
}

/** The folder for sockets of hosts whose state folder has too long a path; one for all, so that it can be hidden from runs. */
export function shortFolder(stateDir: string): string {
  return join(tmpdir(), `svc-${createHash('sha256').update(stateDir).digest('hex').slice(0, 16)}`)
}

/** Makes the folder, or refuses one that somebody else has put there: other users may write where it lies. */
export function makeShortFolder(stateDir: string): string {
  const folder = shortFolder(stateDir)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const found = lstatSync(folder)
  const isOwn = found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o077) === 0
  if (!isOwn) throw new Error(`${folder} is not a folder of this user alone`)
  return folder
}

export interface RunPaths {
  root: string
  /** The base, from which the daemon makes the change-set when this host dies. */
  base: string
  /** The private git folder of the run's base (change-set/base-store.ts). */
  store: string
}
export function runPaths(stateDir: string, runId: RunId): RunPaths {
  const root = join(stateDir, 'runs', runId)
  return { root, base: join(root, 'base.json'), store: join(root, 'change-set') }
}

export function makePrivateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 })
}

/** Writes a file whole or not at all, also for a reader that comes in between. */
export function writePrivateFile(path: string, content: string, { isDurable = false } = {}): void {
  const temporary = `${path}.${process.pid}.new`
  try {
    writeFileSync(temporary, content, { mode: 0o600, flush: isDurable })
    renameSync(temporary, path)
    if (isDurable) syncFolder(dirname(path))
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

/** Writes the folder itself to the disk: only then does a name in it outlive a power cut. */
function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

export function writeHostRecord(paths: HostPaths, record: HostRecord, options?: { isDurable: boolean }): void {
  writePrivateFile(paths.record, `${JSON.stringify(record)}\n`, options)
}

/** Removes the record of a host that leaves: a daemon that finds none knows that nothing of the host is left. */
export function removeHostFiles(paths: HostPaths): void {
  rmSync(paths.socket, { force: true })
  rmSync(paths.record, { force: true })
}
