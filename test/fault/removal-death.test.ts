import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase, type Database } from '../../control-plane/db/open.ts'
import { waitFor } from '../kit/programs.ts'
import { TestServer } from '../kit/system-server.ts'

// `kill -9` of a real server while the rows of a removed workspace go: they go on going after its next start.

const tasks = 8_000

let folder: string
let server: TestServer
let database: Database
beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-removal-')))
  server = new TestServer({
    name: 'server',
    root: folder,
    env: { SVC_SWEEP_MS: '500' },
    databaseUrl: null,
    tokenOf: null,
  })
  await server.start()
  database = openDatabase({ url: join(server.dataDir, 'svc.db') })
})
afterAll(async () => {
  await server.end()
  await database.close()
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
})

async function ask(method: string, path: string, body?: unknown) {
  const reply = await fetch(`${server.url}/api/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${server.token}`,
      'content-type': 'application/json',
      'idempotency-key': crypto.randomUUID(),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  // oxlint-disable-next-line typescript/no-explicit-any
  return { status: reply.status, body: (await reply.json()) as any }
}

const countOf = async (table: string, where: Record<string, unknown> = {}): Promise<number> =>
  Number((await database.root(table).where(where).count({ n: '*' }))[0]!['n'])

/** Tasks like this one, each with an entry of its activity. */
async function addTasks(id: string): Promise<void> {
  const { root } = database
  const columns = Object.keys((await root('tasks').where({ id }).first()) as object)
  const values = columns.map((column) => ({ id: `'tsk_' || (1000 + i)`, key: `'X-' || i` })[column] ?? column)
  const numbers = `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${tasks})`
  await root.raw(
    `insert into tasks (${columns.join(', ')}) ${numbers} select ${values.join(', ')} from n, tasks where id = ?`,
    [id],
  )
  await root.raw(`insert into task_activity (id, task_id, source, kind, actor_type, data, created_at)
    select 'act_' || id, id, 'activity', 'task.created', 'system', '{}', 1 from tasks where key like 'X-%'`)
}

test('what a killed server has left of a removed workspace goes after its next start', async () => {
  const { id: workspaceId, name } = (await ask('GET', '/workspaces')).body
  const other = (await ask('POST', '/workspaces', { name: 'Other', slug: 'other' })).body
  await addTasks((await ask('POST', '/tasks', { title: 'Work' })).body.id)
  const ofWorkspace = { workspace_id: workspaceId }
  expect(await countOf('tasks', ofWorkspace)).toBe(tasks + 1)

  expect((await ask('DELETE', `/workspaces/${workspaceId}`, { confirmName: name })).status).toBe(200)
  await waitFor(async () => (await countOf('task_activity')) < tasks, 'rows go', { everyMs: 1 })
  await server.kill9()
  const left = await countOf('tasks', ofWorkspace)
  expect([left > 0, await countOf('workspaces', { id: workspaceId })]).toEqual([true, 1])

  await server.start()
  expect((await ask('GET', '/workspaces')).status).toBe(401)
  await waitFor(async () => (await countOf('workspaces', { id: workspaceId })) === 0, 'the workspace is gone', {
    ms: 60_000,
  })
  for (const table of ['tasks', 'task_activity', 'members', 'login_tokens'])
    expect([table, await countOf(table, table === 'task_activity' ? {} : ofWorkspace)]).toEqual([table, 0])
  expect(await countOf('workspaces', { id: other.id })).toBe(1)
})
