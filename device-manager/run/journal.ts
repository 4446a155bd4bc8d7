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
    this.db = new Database(path)
    this.db.pragma('journal_mode = WAL')
    this.db.pragma('synchronous = FULL')
    this.db.pragma('busy_timeout = 5000')
    if (process.platform === 'darwin') this.db.pragma('fullfsync = 1')
    this.db.exec(
      'create table if not exists runs (run_id text primary key, fence integer not null, state text not null)',
    )
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

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
