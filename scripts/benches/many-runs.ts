import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { Context } from './context.ts'
import { startServer, type BenchServer } from './stack.ts'

/** When the first of them was made. */
export const bornAt = Date.UTC(2026, 0, 1)

/** A server on SQLite whose one agent has had this many runs, all of them ended. */
export async function serverWithRuns(
  context: Context,
  { name, count }: { name: string; count: number },
): Promise<BenchServer> {
  const first = await startServer(context, { name })
  const { id } = await first.call<{ id: string }>('POST', '/agents', {
    name: 'Runner',
    harness: 'command',
    command: 'true',
  })
  await first.end()
  const db = new Database(join(first.dataDir, 'svc.db'))
  const agent = db.prepare('select id, workspace_id from agents where id = ?').get(id) as {
    id: string
    workspace_id: string
  }
  context.say(`${count.toLocaleString('en')} runs are written`)
  db.pragma('synchronous = OFF')
  db.pragma('cache_size = -262144')
  db.prepare(
    `with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < ${count})
     insert into runs (id, workspace_id, agent_id, status, trigger_source, harness, environment_type, exit_reason,
                       error_message, fence, created_at, started_at, ended_at)
     select printf('run_%016d', i), ?, ?, case when i % 5 = 0 then 'failed' else 'succeeded' end, 'manual', 'command', 'device',
            case when i % 5 = 0 then 'error' else 'completed' end, case when i % 5 = 0 then 'it broke' end, 1,
            ${bornAt} + i * 1000, ${bornAt} + i * 1000 + 10, ${bornAt} + i * 1000 + 900 from n`,
  ).run(agent.workspace_id, agent.id)
  db.pragma('wal_checkpoint(TRUNCATE)')
  db.close()
  return startServer(context, { name })
}
