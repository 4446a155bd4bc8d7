import { renameSync, rmSync } from 'node:fs'
import Database from 'better-sqlite3'
import { z } from 'zod'
import { exitReasonNames } from '../../shared/runs/exit-reasons.ts'
import { runSpec } from '../../shared/runs/spec.ts'
import type { RunState } from './machine.ts'

const runState = z.object({
  runId: z.string(),
  fence: z.number().int(),
  phase: z.enum(['accepted', 'starting', 'live', 'ended']),
  spec: runSpec,
  hostId: z.string().nullable(),
  hostsLost: z.number().int(),
  cancel: z.object({ exitReason: z.enum(exitReasonNames), message: z.string().nullable() }).nullable(),
  givenUp: z.boolean(),
  closed: z.boolean().default(false),
  acceptedAt: z.number(),
  secretNames: z.array(z.string()).default([]),
})

/**
 * What the daemon has promised: the state of each run, on the disk before anything is done about it. No secret is in
 * it: tokens and secret values come with the start and stay in memory.
 */
export class Journal {
  private readonly db: Database.Database
  private readonly put: Database.Statement<[string, number, string]>
  private readonly drop: Database.Statement<[string]>

  constructor(path: string) {
    this.db = openOrSetAside(path)
    this.put = this.db.prepare(
      'insert into runs (run_id, fence, state) values (?, ?, ?) on conflict (run_id) do update set fence = excluded.fence, state = excluded.state',
    )
    this.drop = this.db.prepare('delete from runs where run_id = ?')
  }

  /** One synchronous transaction; on the disk when it returns. */
  write(runId: string, state: RunState | null): void {
    if (state === null) this.drop.run(runId)
    else this.put.run(runId, state.fence, JSON.stringify(state))
  }

  /** Rows that cannot be read are dropped and named: the control plane ends their runs when the device says hello. */
  load(): { states: RunState[]; unreadable: string[] } {
    const states: RunState[] = []
    const unreadable: string[] = []
    for (const row of this.db.prepare<[], { run_id: string; state: string }>('select run_id, state from runs').all()) {
      const parsed = runState.safeParse(parseJson(row.state))
      if (parsed.success) states.push(parsed.data)
      else unreadable.push(row.run_id)
    }
    for (const runId of unreadable) this.drop.run(runId)
    return { states, unreadable }
  }

  close(): void {
    this.db.close()
  }
}

/**
 * A file that is no database any more is set aside (`<path>.corrupt`, the last one): with it the daemon could never start
 * again. What it held is as lost as a row that cannot be read, and ends in the same way.
 */
function openOrSetAside(path: string): Database.Database {
  try {
    return open(path)
  } catch (error) {
    if (!/^SQLITE_(CORRUPT|NOTADB)/.test(String((error as { code?: unknown }).code))) throw error
    renameSync(path, `${path}.corrupt`)
    for (const suffix of ['-wal', '-shm']) rmSync(path + suffix, { force: true })
    return open(path)
  }
}

function open(path: string): Database.Database {
  const db = new Database(path)
  try {
    db.pragma('journal_mode = WAL')
    db.pragma('synchronous = FULL')
    db.pragma('busy_timeout = 5000')
    if (process.platform === 'darwin') db.pragma('fullfsync = 1')
    db.exec('create table if not exists runs (run_id text primary key, fence integer not null, state text not null)')
    const verdict = String(db.pragma('quick_check(1)', { simple: true }))
    if (verdict !== 'ok') throw Object.assign(new Error(verdict), { code: 'SQLITE_CORRUPT' })
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
