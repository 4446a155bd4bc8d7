import type Sqlite from 'better-sqlite3'
import type * as Pty from 'node-pty'
import { programUrl } from '../../shared/lib/program-file.ts'

/**
 * Packages with compiled code, loaded when they are first used: a start-up snapshot cannot hold any, and a run without a terminal needs no
 * terminal's.
 */
let database: typeof Sqlite | undefined
let pty: typeof Pty | undefined

export const sqlite = (): typeof Sqlite => (database ??= load('better-sqlite3') as typeof Sqlite)
export const terminals = (): typeof Pty => (pty ??= load('node-pty') as typeof Pty)

function load(name: string): unknown {
  const { createRequire } = process.getBuiltinModule('node:module')
  return createRequire(programUrl('device-manager/run-host'))(name)
}
