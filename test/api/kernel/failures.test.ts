import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { fail, failPlain } from '../../../shared/api/errors.ts'
import { defineRoute } from '../../../shared/api/route.ts'
import { afterCommit, writeStateOf } from '../../../control-plane/db/transaction.ts'
import { assertComplete, implement, type ImplementedRoute } from '../../../control-plane/http/implement.ts'
import { call, codeOf, startServer, type TestServer } from './server.ts'

const table = 'kernel_test_rows'
const routes = {
  fail: defineRoute({
    id: 'failing.fail',
    endpoint: 'POST /fail',
    summary: 'Fail as told',
    body: z.object({ how: z.string(), name: z.string().default('') }),
    reply: z.object({ done: z.literal(true), sawAfterCommit: z.number() }),
    errors: ['agent_md_stale'],
    plainErrors: ['plain.device_not_found'],
  }),
}

/** An error as a database driver throws it. */
const driverError = (code: string) => Object.assign(new Error(`secret detail of ${code}`), { code })

function handlers(log: string[]): ImplementedRoute[] {
  const undone = new Set<string>()
  return implement(routes, {
    fail: async ({ body, db }) => {
      afterCommit(db, () => log.push(`after ${body.name}`))
      await db(table).insert({ name: body.name })
      if (body.how === 'throw') throw new Error('the password is hunter2')
      if (body.how === 'refuse') {
        return fail('agent_md_stale', { details: { agentMd: 'now' }, logDetail: 'for the log', param: 'agentMdHash' })
      }
      if (body.how === 'plain') return failPlain('plain.device_not_found')
      if (body.how === 'undeclared') return fail('slug_taken')
      if (body.how === 'undeclared plain') return failPlain('plain.device_not_owned')
      if (body.how === 'misshapen') return { done: 'perhaps' as unknown as true, sawAfterCommit: 0 }
      if (body.how === 'constraint')
        await db('users').insert({ id: 'x', public_id: 'x', name: 'x', email: 'owner@example.com', created_at: 1 })
      if (body.how === 'bad after')
        afterCommit(db, () => {
          throw new Error('a shortcut failed')
        })
      if (body.how.startsWith('once ') && !undone.has(body.name)) {
        undone.add(body.name)
        throw driverError(body.how.slice(5))
      }
      if (body.how.startsWith('code ')) throw driverError(body.how.slice(5))
      return { done: true, sawAfterCommit: log.filter((line) => line === `after ${body.name}`).length }
    },
  })
}

let server: TestServer
const afterLog: string[] = []
beforeAll(async () => {
  server = await startServer({ routes: handlers(afterLog) })
  await server.database.root.schema.createTable(table, (t) => void t.text('name'))
})
afterAll(() => server.close())

let names = 0
async function attempt(how: string, to = server) {
  const name = `attempt-${++names}`
  const reply = await call(to, '/fail', { body: { how, name } })
  const rows = await to.database.root(table).where({ name })
  return { reply, name, isKept: rows.length === 1 }
}

test('what was written stays, and what waits for the commit runs after it', async () => {
  const { reply, name, isKept } = await attempt('not at all')
  expect(reply.body).toEqual({ done: true, sawAfterCommit: 0 })
  expect([isKept, afterLog.includes(`after ${name}`)]).toEqual([true, true])
})

test('a refusal leaves nothing behind, and tells the caller what the log need not', async () => {
  const { reply, name, isKept } = await attempt('refuse')
  expect([reply.status, codeOf(reply)]).toEqual([409, 'agent_md_stale'])
  expect(reply.body.error).toMatchObject({
    type: 'conflict_error',
    param: 'agentMdHash',
    details: { agentMd: 'now' },
    remediation: 'read_again',
  })
  expect(JSON.stringify(reply.body)).not.toContain('for the log')
  expect([isKept, afterLog.includes(`after ${name}`)]).toEqual([false, false])
})

test('an older route answers a plain error', async () => {
  const { reply } = await attempt('plain')
  expect([reply.status, reply.body]).toEqual([404, { error: 'Device not found' }])
})

test('an unexpected failure says nothing of itself but the id under which the log has it', async () => {
  const { reply, isKept } = await attempt('throw')
  expect([reply.status, codeOf(reply), reply.body.error.type]).toEqual([500, 'internal_error', 'api_error'])
  expect(JSON.stringify(reply.body)).not.toContain('hunter2')
  expect(isKept).toBe(false)
  const logged = server.logged.find(
    ({ level, fields }) => level === 'error' && fields['requestId'] === reply.body.error.requestId,
  )
  expect(String(logged?.fields['err'])).toContain('hunter2')
})

test('an answer that its schema does not hold, or a code the route does not declare, is a failure and changes nothing', async () => {
  for (const how of ['misshapen', 'undeclared', 'undeclared plain']) {
    const { reply, isKept } = await attempt(how)
    expect([how, reply.status, codeOf(reply), isKept]).toEqual([how, 500, 'internal_error', false])
  }
})

test('in production they are sent as they are', async () => {
  const production = await startServer({ routes: handlers([]), isChecking: false })
  await production.database.root.schema.createTable(table, (t) => void t.text('name'))
  const undeclared = await attempt('undeclared', production)
  expect([undeclared.reply.status, codeOf(undeclared.reply)]).toEqual([409, 'slug_taken'])
  expect((await attempt('misshapen', production)).reply.body.done).toBe('perhaps')
  await production.close()
})

test('a failing step after the commit does not undo what is done', async () => {
  const { reply, isKept } = await attempt('bad after')
  expect([reply.status, isKept]).toEqual([200, true])
})

test('trouble with the database has codes of its own', async () => {
  const expected: Record<string, [number, string]> = {
    SQLITE_BUSY: [503, 'transient_conflict'],
    '40001': [503, 'transient_conflict'],
    '40P01': [503, 'transient_conflict'],
    ECONNREFUSED: [503, 'database_unavailable'],
    '53300': [503, 'database_unavailable'],
    '57P01': [503, 'database_unavailable'],
    '57014': [504, 'query_timeout'],
    XX000: [500, 'internal_error'],
  }
  for (const [code, answer] of Object.entries(expected)) {
    const { reply, isKept } = await attempt(`code ${code}`)
    expect([code, reply.status, codeOf(reply), isKept]).toEqual([code, ...answer, false])
    expect(JSON.stringify(reply.body)).not.toContain('secret detail')
  }
})

test('what the database undid in favour of another transaction is done again, once, and whole', async () => {
  for (const code of ['40P01', '40001']) {
    const { reply, name, isKept } = await attempt(`once ${code}`)
    expect([reply.status, isKept]).toEqual([200, true])
    expect(afterLog.filter((line) => line === `after ${name}`)).toHaveLength(1)
  }
})

test('a record that is there already is duplicate_resource', async () => {
  const { reply } = await attempt('constraint')
  expect([reply.status, codeOf(reply)]).toEqual([409, 'duplicate_resource'])
})

test('a database that another writer holds is a transient conflict, and the key stays free', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-kernel-'))
  const url = join(folder, 'test.db')
  const one = await startServer({ routes: handlers([]), url })
  await one.database.root.schema.createTable(table, (t) => void t.text('name'))
  const two = await startServer({
    routes: handlers([]),
    database: { url, seed: one.seed },
    instance: 'two',
    isSole: false,
  })
  await call(two, '/nowhere')
  // The token's use is noted once a minute; that write is done before the lock is taken.
  await call(two, '/fail', { body: { how: 'not at all' } })
  try {
    await one.database.root.transaction(async (tx) => {
      await tx(table).insert({ name: 'held' })
      const state = writeStateOf(two.database.root)
      const { writeMs } = state
      state.writeMs = 20
      const reply = await call(two, '/fail', { body: { how: 'not at all' } })
      state.writeMs = writeMs
      expect([reply.status, codeOf(reply), reply.headers.get('retry-after')]).toEqual([503, 'transient_conflict', '1'])
    })
    expect((await call(two, '/fail', { body: { how: 'not at all' } })).status).toBe(200)
  } finally {
    await Promise.all([one.close(), two.close()])
    rmSync(folder, { recursive: true })
  }
})

test('a server with a route of the contract missing does not start', () => {
  expect(() => assertComplete(Object.values(routes), [])).toThrow('no handler for failing.fail')
  expect(() => assertComplete(Object.values(routes), handlers([]))).not.toThrow()
})
