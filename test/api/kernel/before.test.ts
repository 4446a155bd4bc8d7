import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { fail } from '../../../shared/api/errors.ts'
import { defineRoute } from '../../../shared/api/route.ts'
import { implement, prepared, type ImplementedRoute } from '../../../control-plane/http/implement.ts'
import { call, codeOf, startServer, type TestServer } from './server.ts'

// A step before the transaction of a write: what it found reaches the handler, and the key is held meanwhile.

const routes = {
  ask: defineRoute({
    id: 'before.ask',
    endpoint: 'POST /ask',
    summary: 'Ask another server, then write',
    idempotency: 'accepted',
    body: z.object({ how: z.string() }),
    reply: z.object({ found: z.number() }),
    errors: ['agent_md_stale'],
  }),
}

/** The other server: it counts who asks, and answers when it is let. */
interface Elsewhere {
  asked: number
  answer: () => Promise<void>
}

function handlers(elsewhere: Elsewhere): ImplementedRoute[] {
  let undone = false
  return implement(routes, {
    ask: prepared({
      before: async ({ body }) => {
        const count = ++elsewhere.asked
        if (body.how === 'refuse') fail('agent_md_stale', { param: 'how' })
        if (body.how === 'break') throw new Error('the other server sent rubbish')
        await elsewhere.answer()
        return { count }
      },
      handle: async ({ db, body }, { count }) => {
        await db('before_rows').insert({ how: body.how, count })
        if (body.how === 'again' && !undone) {
          undone = true
          fail('transient_conflict')
        }
        return { found: count }
      },
    }),
  })
}

const folder = mkdtempSync(join(tmpdir(), 'svc-before-'))
const url = join(folder, 'test.db')
const elsewhere: Elsewhere = { asked: 0, answer: async () => undefined }
let server: TestServer
beforeAll(async () => {
  server = await startServer({ routes: handlers(elsewhere), url })
  await server.database.root.schema.createTable('before_rows', (t) => {
    t.text('how')
    t.integer('count')
  })
})
afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true })
})

const ask = (how: string, key: string = crypto.randomUUID(), to = server) =>
  call(to, '/ask', { body: { how }, headers: { 'idempotency-key': key } })
const rowsOf = (how: string) => server.database.root('before_rows').where({ how })

test('what the step found reaches each attempt of the transaction, and the step is done once', async () => {
  elsewhere.asked = 0
  const reply = await ask('again')
  expect([reply.status, reply.body]).toEqual([200, { found: 1 }])
  expect([elsewhere.asked, await rowsOf('again')]).toEqual([1, [{ how: 'again', count: 1 }]])
})

test('nobody waits for a step but requests with its key, which another process calls unknown once this one is gone', async () => {
  let release = () => {}
  let entered = () => {}
  const isEntered = new Promise<void>((resolve) => (entered = resolve))
  const hold = new Promise<void>((resolve) => (release = resolve))
  elsewhere.answer = () => {
    entered()
    return hold
  }
  const key = crypto.randomUUID()
  const first = ask('held', key)
  await isEntered
  elsewhere.answer = async () => undefined
  const beside = { url, seed: server.seed }
  const successor = await startServer({ routes: handlers(elsewhere), database: beside, instance: 'two', isSole: true })
  try {
    expect(codeOf(await ask('held', key))).toBe('idempotency_request_in_progress')
    expect((await ask('beside')).status).toBe(200)
    // To a server that is alone on the database, the claim of another process is that of a dead one.
    expect(codeOf(await ask('held', key, successor))).toBe('idempotency_effect_unknown')
    expect(await rowsOf('held')).toEqual([])
  } finally {
    release()
    await successor.close()
  }
  expect((await first).status).toBe(200)
  const again = await ask('held', key)
  expect([again.headers.get('idempotency-replayed'), again.body]).toEqual(['true', (await first).body])
  expect(await rowsOf('held')).toHaveLength(1)
})

test('a refusal frees the key; any other failure leaves the effect unknown', async () => {
  const refused = crypto.randomUUID()
  expect(codeOf(await ask('refuse', refused))).toBe('agent_md_stale')
  expect((await ask('instead', refused)).status).toBe(200)
  const broken = crypto.randomUUID()
  expect(codeOf(await ask('break', broken))).toBe('internal_error')
  expect(codeOf(await ask('break', broken))).toBe('idempotency_effect_unknown')
  expect(await rowsOf('break')).toEqual([])
})
