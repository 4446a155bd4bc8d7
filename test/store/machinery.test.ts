import type { Tx } from '../../control-plane/db/open.ts'
import { ApiError } from '../../shared/api/errors.ts'
import { afterCommit, inSavepoint, inTransaction, publish, writeStateOf } from '../../control-plane/db/transaction.ts'
import { expect, test, vi } from 'vitest'
import { findReply, insertReply, pruneReplies } from '../../control-plane/db/device-replies.ts'
import { isMigrated, migrate, migrationLock } from '../../control-plane/db/migrate.ts'
import type { Migration } from '../../control-plane/db/migrations/migration.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { listOutbox, outboxEnd, pruneOutbox, type OutboxCursor } from '../../control-plane/db/outbox.ts'
import { randomServerKey, serverKey } from '../../control-plane/db/server-keys.ts'
import { realWorld } from '../../shared/lib/world.ts'
import {
  claimKey,
  completeKey,
  findKey,
  freeKey,
  markKeyUnknown,
  pruneKeys,
  removeExpiredKey,
} from '../../control-plane/http/idempotency-store.ts'
import { hasPostgres, onBoth, openPostgres, openSqlite } from '../kit/database.ts'
import { at, seedWorkspace } from './seed.ts'

onBoth('migrating again changes nothing', async ({ root }) => {
  expect(await isMigrated(root)).toBe(true)
  expect(await migrate(root, at)).toBe(0)
})

test.skipIf(!hasPostgres())('a replica waits for the one that migrates for longer than a read may take', async () => {
  const database = await openPostgres({ readMs: 200 })
  const { root } = database
  const open = await root.transaction()
  await open.raw('select pg_advisory_xact_lock(?)', [migrationLock])
  const up = () => Promise.resolve()
  const migrated = migrate(root, at, [{ version: 9_000, name: 'next', up }])
  // Longer than what the limit of a read would have let it wait.
  const [slept] = await Promise.allSettled([open.raw('set local statement_timeout = 0; select pg_sleep(0.6)')])
  await open.commit()
  expect([slept.status, await migrated]).toEqual(['fulfilled', 1])
  await database.close()
})

test.skipIf(!hasPostgres())('a migration may take longer than a read, but waits for no table for long', async () => {
  const database = await openPostgres({ readMs: 200 })
  const { root } = database
  const slow: Migration = {
    version: 9_001,
    name: 'slow',
    up: async (tx) => void (await tx.raw('select pg_sleep(0.6)')),
  }
  expect(await migrate(root, at, [slow])).toBe(1)
  const reader = await root.transaction()
  await reader('users').first()
  const altering: Migration = {
    version: 9_002,
    name: 'altering',
    up: async (tx) => void (await tx.raw('alter table users add column extra text')),
  }
  await expect(migrate(root, at, [altering], { lockMs: 100 })).rejects.toMatchObject({ code: '55P03' })
  await reader.rollback()
  expect(await root('schema_migrations').where('version', '>', 9_000).pluck('version')).toEqual([9_001])
  await database.close()
})

async function readOutbox(root: Db, from: OutboxCursor, { limit, count }: { limit: number; count: number }) {
  const page = await listOutbox(root, from, limit)
  expect(page.rows).toHaveLength(count)
  return page
}

onBoth('a topic that only a later release knows stops no reader', async ({ root }) => {
  const start = await outboxEnd(root)
  await root('outbox').insert({ topic: 'run.praised', key: 'a', payload: '{}', created_at: at })
  await publish(root, { topic: 'run.queued', key: 'b', at })
  const { rows } = await readOutbox(root, start, { limit: 10, count: 2 })
  expect(rows.map((row) => row.topic)).toEqual(['run.praised', 'run.queued'])
})

onBoth('the outbox is read in order, from where a reader is, and is pruned by time', async ({ root }) => {
  const start = await outboxEnd(root)
  await publish(root, { topic: 'run.queued', key: 'a', at })
  await publish(root, { topic: 'run.ended', key: 'b', payload: { exitReason: 'completed' }, at: at + 1 })
  const { rows, next } = await readOutbox(root, start, { limit: 10, count: 2 })
  expect(rows.map(({ topic, key, payload }) => ({ topic, key, payload }))).toEqual([
    { topic: 'run.queued', key: 'a', payload: {} },
    { topic: 'run.ended', key: 'b', payload: { exitReason: 'completed' } },
  ])
  // Page by page, each row once, also when more come meanwhile.
  const first = await readOutbox(root, start, { limit: 1, count: 1 })
  await publish(root, { topic: 'run.queued', key: 'c', at: at + 2 })
  const keys = first.rows.map((row) => row.key)
  let cursor = first.next
  for (let page = 0; page < 2; page++) {
    const { rows, next: after } = await readOutbox(root, cursor, { limit: 1, count: 1 })
    keys.push(...rows.map((row) => row.key))
    cursor = after
  }
  expect([first.hasMore, keys]).toEqual([true, ['a', 'b', 'c']])
  expect((await readOutbox(root, next, { limit: 10, count: 1 })).rows.map((row) => row.key)).toEqual(['c'])
  const end = await outboxEnd(root)
  expect((await listOutbox(root, end, 10)).rows).toEqual([])
  expect(await pruneOutbox(root, at + 1)).toBe(1)
  await readOutbox(root, start, { limit: 10, count: 2 })
})

onBoth('old rows go some at a time, however many there are', async ({ root }) => {
  const entries = Array.from({ length: 1_300 }, (_, n) => ({
    topic: 'run.queued',
    key: `${n}`,
    payload: '{}',
    created_at: at + (n < 1_200 ? 0 : 1),
  }))
  for (let from = 0; from < entries.length; from += 100) await root('outbox').insert(entries.slice(from, from + 100))
  const removed: number[] = []
  const watch = (response: unknown, { sql }: { sql: string }) => {
    const { changes, rowCount } = response as { changes?: number; rowCount?: number }
    if (/^delete /i.test(sql)) removed.push(changes ?? rowCount ?? Number(response))
  }
  root.on('query-response', watch)
  expect(await pruneOutbox(root, at + 1)).toBe(1_200)
  root.off('query-response', watch)
  expect(Math.max(...removed)).toBeLessThanOrEqual(500)
  expect(
    await root('outbox')
      .where('created_at', at + 1)
      .select('key'),
  ).toHaveLength(100)
})

test('a reader on SQLite remembers the last number alone', async () => {
  const database = openSqlite()
  const { root } = database
  let cursor = await outboxEnd(root)
  for (const key of ['a', 'b', 'c']) await publish(root, { topic: 'run.queued', key, at })
  for (const count of [2, 1]) cursor = (await readOutbox(root, cursor, { limit: 2, count })).next
  expect(cursor.given.size).toBe(0)
  await database.close()
})

test.skipIf(!hasPostgres())('a reader waits for no open transaction, and passes none of its rows', async () => {
  const [database, neighbour] = [await openPostgres(), await openPostgres()]
  const { root } = database
  // Of another database of the same server, which may go on for hours.
  const foreign = await neighbour.root.transaction()
  await publish(foreign, { topic: 'run.queued', key: 'foreign', at })
  const start = await outboxEnd(root)
  const open = await root.transaction()
  await publish(open, { topic: 'run.queued', key: 'slow', at })
  let cursor = start
  const keys: string[][] = []
  const read = async () => {
    const { rows, next } = await listOutbox(root, cursor, 2)
    cursor = next
    keys.push(rows.map((row) => row.key))
  }
  for (const key of ['a', 'b', 'c']) await publish(root, { topic: 'run.queued', key, at })
  for (let page = 0; page < 3; page++) await read()
  await open.commit()
  await publish(root, { topic: 'run.queued', key: 'd', at })
  for (let page = 0; page < 2; page++) await read()
  expect(keys).toEqual([['a', 'b'], ['c'], [], ['slow', 'd'], []])
  // What was given is remembered while a transaction is open that began before it, and no longer.
  expect(cursor.given.size).toBe(5)
  await foreign.rollback()
  // Other tests have transactions open on this server, too, each for as long as it takes.
  const nobodyElse = { timeout: 30_000 }
  await vi.waitFor(async () => {
    await publish(root, { topic: 'run.queued', key: 'later', at })
    await read()
    expect(cursor.given.size).toBeLessThan(5)
  }, nobodyElse)
  await database.close()
  await neighbour.close()
})

test.skipIf(!hasPostgres())('a row is given although one with a higher number was committed before it', async () => {
  const database = await openPostgres()
  const { root } = database
  const start = await outboxEnd(root)
  const [early, late] = [await root.transaction(), await root.transaction()]
  // The first writes first, and so is the older transaction, but numbers its row after the other one.
  await early.raw('select pg_current_xact_id()')
  await publish(late, { topic: 'run.queued', key: 'lower', at })
  await publish(early, { topic: 'run.queued', key: 'higher', at })
  await early.commit()
  const first = await listOutbox(root, start, 10)
  await late.commit()
  const second = await readOutbox(root, first.next, { limit: 10, count: 2 - first.rows.length })
  expect([...first.rows, ...second.rows].map((row) => row.key).toSorted()).toEqual(['higher', 'lower'])
  await database.close()
})

onBoth('replies of devices are kept once and pruned', async ({ root }) => {
  await insertReply(root, { requestId: 'r', body: '1', at })
  await insertReply(root, { requestId: 'r', body: '2', at: at + 1 })
  expect(await findReply(root, 'r')).toBe('1')
  expect(await findReply(root, 'x')).toBeNull()
  expect(await pruneReplies(root, at)).toBe(0)
  expect(await pruneReplies(root, at + 1)).toBe(1)
})

onBoth('a server key is made on first use and stays', async ({ root }) => {
  expect(await serverKey(root, 'k', { value: 'one', at })).toBe('one')
  expect(await serverKey(root, 'k', { value: 'two', at })).toBe('one')
  expect(await serverKey(root, 'other', { value: 'three', at })).toBe('three')
  const random = await randomServerKey(root, 'random', realWorld)
  expect([random.length, await randomServerKey(root, 'random', realWorld)]).toEqual([32, random])
})

onBoth('an idempotency key is claimed, completed, freed or unknown, and expires', async ({ root }) => {
  const row = { scopeHash: 's', requestHash: 'r', state: 'running:1', createdAt: at, expiresAt: at + 10 }
  expect(await claimKey(root, row)).toBe(true)
  expect(await claimKey(root, { ...row, state: 'running:2' })).toBe(false)
  await freeKey(root, { scopeHash: 's', state: 'running:2' })
  expect((await findKey(root, 's'))?.state).toBe('running:1')
  const answer = { status: 201, headers: { a: 'b' }, body: '{}' }
  expect(await completeKey(root, { scopeHash: 's', state: 'running:2', ...answer })).toBe(false)
  expect(await completeKey(root, { scopeHash: 's', state: 'running:1', ...answer })).toBe(true)
  expect(await findKey(root, 's')).toEqual({
    scopeHash: 's',
    requestHash: 'r',
    state: 'done',
    createdAt: at,
    expiresAt: at + 10,
    answer,
  })
  await claimKey(root, { ...row, scopeHash: 't' })
  await markKeyUnknown(root, { scopeHash: 't', state: 'running:1' })
  expect((await findKey(root, 't'))?.state).toBe('unknown')
  await removeExpiredKey(root, 't', at + 9)
  expect(await findKey(root, 't')).not.toBeNull()
  await removeExpiredKey(root, 't', at + 10)
  expect(await findKey(root, 't')).toBeNull()
  await claimKey(root, { ...row, scopeHash: 'u' })
  await freeKey(root, { scopeHash: 'u', state: 'running:1' })
  expect(await findKey(root, 'u')).toBeNull()
  expect(await pruneKeys(root, at + 10)).toBe(1)
})

onBoth('the message of a failed query, which is logged, holds none of its values', async ({ root }) => {
  const failed = await root('outbox')
    .insert({ no_such_column: 'a-secret-value' })
    .catch((error: unknown) => String(error))
  expect(failed).toContain('no_such_column')
  expect(failed).not.toContain('a-secret-value')
})

onBoth(
  'a commit that published tells so, at once and once; one that was undone or wrote nothing else does not',
  async ({ root }) => {
    let told = 0
    const tell = () => void told++
    writeStateOf(root).onPublished.add(tell)
    const row = { topic: 'run.queued', key: 'run_told', at } as const
    await inTransaction(root, async (tx) => {
      await publish(tx, row)
      await publish(tx, row)
      expect(told).toBe(0)
    })
    expect(told).toBe(1)
    await expect(
      inTransaction(root, async (tx) => {
        await publish(tx, row)
        throw new Error('undone')
      }),
    ).rejects.toThrow('undone')
    await inTransaction(root, async (tx) => void (await tx('outbox').first()))
    const undone = async (inner: Tx) => {
      await publish(inner, row)
      throw new Error('undone')
    }
    await inTransaction(root, async (tx) => inSavepoint(tx, undone).catch(() => undefined))
    expect(told).toBe(1)
    await inTransaction(root, async (tx) => inSavepoint(tx, async (inner) => publish(inner, row)))
    expect(told).toBe(2)
    await publish(root, row)
    expect(told).toBe(3)
    // What was undone is not written, and the rest stands in the order in which it was published.
    await root('outbox').delete()
    await inTransaction(root, async (tx) => {
      await publish(tx, { ...row, key: 'first' })
      await inSavepoint(tx, undone).catch(() => undefined)
      await inSavepoint(tx, async (inner) => publish(inner, { ...row, key: 'second', payload: { quoted: '{"a\\' } }))
      await publish(tx, { ...row, key: 'third' })
    })
    expect(await root('outbox').orderBy('seq').select('key', 'payload')).toEqual([
      { key: 'first', payload: '{}' },
      { key: 'second', payload: JSON.stringify({ quoted: '{"a\\' }) },
      { key: 'third', payload: '{}' },
    ])
    writeStateOf(root).onPublished.delete(tell)
  },
)

onBoth('what cannot be published undoes its transaction, and nothing is done after it', async ({ root }) => {
  const said: string[] = []
  const tell = () => void said.push('published')
  writeStateOf(root).onPublished.add(tell)
  let undone = ''
  const unwritable = { topic: 'run.queued', key: null as unknown as string, at } as const
  const refused = await inTransaction(root, async (tx) => {
    undone = await seedWorkspace(tx)
    afterCommit(tx, () => said.push('after the commit'))
    await publish(tx, unwritable)
  }).catch((error: unknown) => String(error))
  expect(refused).toMatch(/null|NULL/)
  expect([said, await root('workspaces').where({ id: undone })]).toEqual([[], []])
  writeStateOf(root).onPublished.delete(tell)
})

onBoth(
  'a step after the commit runs once for each commit, whatever attempts were undone, and none is lost to another',
  async ({ root }) => {
    const done: string[] = []
    const failures: unknown[] = []
    const failed = (error: unknown) => void failures.push(error)
    writeStateOf(root).onStepFailed.add(failed)
    let attempts = 0
    await inTransaction(root, async (tx) => {
      const attempt = ++attempts
      afterCommit(tx, () => done.push(`first of attempt ${attempt}`))
      afterCommit(tx, () => {
        throw new Error('a shortcut failed')
      })
      await inSavepoint(tx, async (inner) => afterCommit(inner, () => done.push('of a part that stays')))
      const undone = async (inner: Tx) => {
        afterCommit(inner, () => done.push('of a part that was undone'))
        throw new Error('undone')
      }
      await inSavepoint(tx, undone).catch(() => undefined)
      afterCommit(tx, () => done.push('last'))
      if (attempt === 1) throw new ApiError('transient_conflict')
      expect(done).toEqual([])
    })
    expect(done).toEqual(['first of attempt 2', 'of a part that stays', 'last'])
    expect(failures.map(String)).toEqual(['Error: a shortcut failed'])
    const refused = inTransaction(root, async (tx) => {
      afterCommit(tx, () => done.push('of what was refused'))
      throw new Error('undone')
    })
    await expect(refused).rejects.toThrow('undone')
    expect(done).toHaveLength(3)
    writeStateOf(root).onStepFailed.delete(failed)
  },
)
