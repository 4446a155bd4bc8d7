import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { HostRecord } from './protocol.ts'

/** Where a host and its run keep things, under the state folder. All of it is this user's alone. */
export interface HostPaths {
  hosts: string
  record: string
  socket: string
  spool: string
}

/** Longer paths cannot be bound on some systems (macOS: 104 with the zero byte). */
const maxSocketPath = 103

export function hostPaths(stateDir: string, hostId: string): HostPaths {
  const hosts = join(stateDir, 'hosts')
  const inState = join(hosts, `${hostId}.sock`)
  // The record names the socket, so it may lie elsewhere: in a folder of its own that only this user may enter.
  const isShort = Buffer.byteLength(inState) <= maxSocketPath
  return {
    hosts,
    record: join(hosts, `${hostId}.json`),
    socket: isShort ? inState : join(tmpdir(), `svc-${hostId}`, 'host.sock'),
    spool: join(stateDir, 'spool.db'),
  }
}

export interface RunPaths {
  root: string
  /** The harness's own folder. */
  harness: string
  /** What the daemon needs to make the change-set when this host dies. */
  base: string
}
export function runPaths(stateDir: string, runId: string): RunPaths {
  const root = join(stateDir, 'runs', runId)
  return { root, harness: join(root, 'harness'), base: join(root, 'base.json') }
}

export function makePrivateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 })
}

/** Whole or not at all, also for a reader that comes in between. */
export function writePrivateFile(path: string, content: string): void {
  const temporary = `${path}.${process.pid}.new`
  writeFileSync(temporary, content, { mode: 0o600 })
  renameSync(temporary, path)
}

export function writeRecord(paths: HostPaths, record: HostRecord): void {
  writePrivateFile(paths.record, `${JSON.stringify(record)}\n`)
}

/** The host leaves: a daemon that finds no record knows that nothing of it is left. */
export function removeHostFiles(paths: HostPaths): void {
  rmSync(paths.socket, { force: true })
  if (dirname(paths.socket) !== paths.hosts) rmSync(dirname(paths.socket), { recursive: true, force: true })
  rmSync(paths.record, { force: true })
}
