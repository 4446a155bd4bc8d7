import { join } from 'node:path'
import { Agent } from 'node:http'
import Database from 'better-sqlite3'
import { encodeCursor } from '../../shared/lib/cursor.ts'
import type { Bench, Context } from './context.ts'
import { atMost, compare, type Result } from './measure.ts'
import { ask, startServer, type BenchServer } from './stack.ts'

const few = 1_000
const many = 1_000_000
const bornAt = Date.UTC(2026, 0, 1)

/** Two servers, one with few runs and one with many, asked the same in turn. */
export const lists: Bench = {
  name: 'lists',
  about: `a page of GET /runs with ${many.toLocaleString('en')} runs, against the same with ${few.toLocaleString('en')}`,
  async run(context) {
    const small = await seeded(context, few)
    const large = await seeded(context, many)
    try {
      const results: Result[] = []
      for (const [name, path, limit] of [
        ['first page', () => '/runs?limit=50', 1.1],
        ['page in the middle', middle, 2],
        ['first page of failed runs', () => '/runs?limit=50&status=failed', 1.1],
      ] as const) {
        results.push(
          await compare({
            goal: 13,
            name: `GET /runs, ${name}, 1,000,000 to 1,000 runs`,
            unit: 'ms',
            peerIs: '1,000 runs',
            target: atMost(limit),
            rounds: context.rounds,
            ours: () => latencies(large, () => path(many)),
            peer: () => latencies(small, () => path(few)),
          }),
        )
      }
      return results
    } finally {
      await small.end()
      await large.end()
    }
  },
}

/** A page that begins at a run anywhere in the list. */
function middle(count: number): string {
  const at = 100 + Math.floor(Math.random() * (count - 200))
  return `/runs?limit=50&cursor=${encodeCursor([bornAt + at * 1000, 'run_zzzzzzzzzzzzzzzz'])}`
}

async function latencies(server: BenchServer, path: () => string): Promise<number[]> {
  const agent = new Agent({ keepAlive: true })
  const samples: number[] = []
  for (let i = 0; i < 220; i++) {
    const url = `${server.url}/api/v1${path()}`
    const start = performance.now()
    const { status, text } = await ask({ agent, url, method: 'GET', token: server.token })
    // The first ones of a new connection are not counted.
    if (i >= 20) samples.push(performance.now() - start)
    if (status !== 200) throw new Error(`${url} answered ${status}: ${text}`)
  }
  agent.destroy()
  return samples
}

async function seeded(context: Context, count: number): Promise<BenchServer> {
  const name = `lists-${count}`
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
