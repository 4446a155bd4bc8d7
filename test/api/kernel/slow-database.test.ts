import { afterAll, beforeAll, expect, test } from 'vitest'
import { hasPostgres } from '../../kit/database.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'

// Somebody holds a table of PostgreSQL, as a migration by hand does: nobody waits longer than the settings say.

const readMs = 300
const writeMs = 900
let server: TestServer
let agentId: string
beforeAll(async () => {
  if (!hasPostgres()) return
  const settings = { SVC_READ_TIMEOUT_MS: String(readMs), SVC_WRITE_TIMEOUT_MS: String(writeMs) }
  server = await TestServer.start({ database: 'postgres', settings })
  agentId = (await server.createAgent()).id
})
afterAll(async () => server?.stop())

/** The outcome, and after how long it came, while the table is held. */
async function whileHeld(act: () => ReturnType<TestServer['call']>[]): Promise<[outcome: string, ms: number][]> {
  const holder = await server.database.root.transaction()
  try {
    await holder.raw('lock table agents in access exclusive mode')
    const began = performance.now()
    return await Promise.all(
      act().map(async (reply): Promise<[string, number]> => [outcomeOf(await reply), performance.now() - began]),
    )
  } finally {
    await holder.rollback()
  }
}

test.skipIf(!hasPostgres())('a read is answered 504 when its time is over', async () => {
  const runId = await server.startRun(agentId)
  const [[outcome, ms]] = (await whileHeld(() => [server.call(`/agents/${agentId}`)])) as [[string, number]]
  expect(outcome).toBe('504 query_timeout')
  expect(ms).toBeGreaterThanOrEqual(readMs)
  // Its query is ended, so what came late is known to be the limit's and not the lock's.
  expect(outcomeOf(await server.call(`/runs/${runId}`))).toBe('200')
})

test.skipIf(!hasPostgres())(
  'writes are answered 504 when their time is over, those that wait for them too',
  async () => {
    const rename = (name: string) => server.call(`/agents/${agentId}`, { method: 'PATCH', body: { name } })
    const answers = await whileHeld(() => [rename('One'), rename('Two'), rename('Three')])
    expect(answers.map(([outcome]) => outcome)).toEqual(answers.map(() => '504 query_timeout'))
    // One after another they would take a limit each: the time in which they wait for each other counts.
    for (const [, ms] of answers) expect(ms).toBeLessThan(answers.length * writeMs)
    expect(outcomeOf(await rename('Four'))).toBe('200')
  },
)

test.skipIf(!hasPostgres())('a write that was given up did nothing, so its key may be used again', async () => {
  const headers = { 'idempotency-key': crypto.randomUUID() }
  const rename = () => server.call(`/agents/${agentId}`, { method: 'PATCH', body: { name: 'Keyed' }, headers })
  const [[outcome]] = (await whileHeld(() => [rename()])) as [[string, number]]
  expect(outcome).toBe('504 query_timeout')
  expect(outcomeOf(await rename())).toBe('200')
  expect((await server.ok(`/agents/${agentId}`)).name).toBe('Keyed')
})
