import { afterAll, beforeAll, expect, test } from 'vitest'
import { belowSerializable } from '../../../control-plane/db/below-serializable.ts'
import { hasPostgres } from '../../kit/database.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'

// What a server writes without an order on PostgreSQL is what is listed with its reason.

let server: TestServer
beforeAll(async () => {
  if (hasPostgres()) server = await TestServer.start({ database: 'postgres' })
})
afterAll(async () => server?.stop())

/** knex's mark of the transaction that a query belongs to. */
const mark = '__knexTxId'
type Asked = { sql: string } & { [key in typeof mark]?: string }

/** Tables that are written to outside of a serializable transaction while `act` does its work. */
async function writtenWithoutOrder(act: () => Promise<void>): Promise<Set<string>> {
  const tables = new Set<string>()
  const ordered = new Set<string>()
  const watch = ({ sql, [mark]: id }: Asked) => {
    if (id !== undefined && sql.includes('begin isolation level serializable')) ordered.add(id)
    const written = /\b(?:insert into|update|delete from|copy) "?(\w+)"?/i.exec(sql)?.[1]
    if (written !== undefined && !/^\s*select\b/i.test(sql) && (id === undefined || !ordered.has(id)))
      tables.add(written)
  }
  const { root } = server.database
  root.on('query', watch)
  try {
    await act()
  } finally {
    root.off('query', watch)
  }
  return tables
}

test.skipIf(!hasPostgres())('nothing is written without an order but what is listed', async () => {
  const keyed = () => ({ 'idempotency-key': crypto.randomUUID() })
  const written = await writtenWithoutOrder(async () => {
    const device = await FakeDevice.connect(server)
    const agent = await server.createAgent()
    const task = await server.ok('/tasks', { body: { title: 'T', assignee: agent.id }, headers: keyed() })
    const run = await device.take()
    await run.events({ kind: 'text', data: { text: 'Words.' } })
    await server.ok(`/tasks/${task.id}/comments`, { body: { content: 'A word.' }, token: run.token })
    await run.end()
    await server.ok(`/tasks/${task.id}/transition`, { body: { status: 'done' }, headers: keyed() })
    await server.startRun(agent.id)
    await (await device.take()).end()
    await server.startRun(agent.id)
    const offer = await device.next('run.offer')
    device.send({ type: 'run.declined', runId: offer.runId, fence: offer.fence, reason: 'draining', message: 'Later.' })
    device.send({ type: 'heartbeat', claimState: { accepting: true, reason: null, message: null, activeRuns: 0 } })
    await device.next('heartbeat.ack')
    await server.plane.sweeper.runAll()
    server.world.advance(25 * 3_600_000)
    await server.plane.sweeper.runAll()
    await device.disconnect()
    await server.ok(`/agents/${agent.id}`, { method: 'DELETE' })
  })
  const listed = new Set(belowSerializable.flatMap(({ tables }) => tables))
  expect([...written].filter((table) => !listed.has(table))).toEqual([])
  // What is looked for is found.
  expect([...written]).toEqual(expect.arrayContaining(['runs', 'devices', 'idempotency']))
})
