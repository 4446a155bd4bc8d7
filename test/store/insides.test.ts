import type { Socket } from 'node:net'
import knex from 'knex'
import Client from 'knex/lib/dialects/better-sqlite3/index.js'
import type { Client as PgClient, Connection } from 'pg'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { aloneOn } from '../../control-plane/db/pipeline.ts'
import { poolUseOf } from '../../control-plane/db/pool-use.ts'
import type { PostgresClient } from '../../control-plane/db/postgres-client.ts'
import type { Askable } from '../../control-plane/db/open.ts'
import { query } from '../../control-plane/db/statement.ts'
import { writeStateOf } from '../../control-plane/db/transaction.ts'
import { hasPostgres, onBoth, openPostgres } from '../kit/database.ts'

// The insides of knex and pg that control-plane/db goes by, which an upgrade may change without a word: each test says what then no
// longer holds. pg-copy-streams goes by the same of pg (https://github.com/brianc/node-postgres/pull/1730).

const changed = (what: string) => `knex has changed: ${what}`

test('knex asks SQLite by `_query` of its client, which tells that it is of a transaction', async () => {
  const asked: { sql: string; transacting: boolean }[] = []
  class Watching extends Client {
    protected override _query(...given: Parameters<Client['_query']>): Promise<unknown> {
      asked.push({ sql: given[1].sql, transacting: this.transacting === true })
      // oxlint-disable-next-line no-underscore-dangle
      return super._query(...given)
    }
  }
  const root = knex({ client: Watching, connection: { filename: ':memory:' }, useNullAsDefault: true })
  await root.raw('select ? as n limit ?', [1, 2])
  await root.transaction(async (tx) => void (await tx.raw('select 2')))
  await root.destroy()
  const why = changed('a `limit ?` is not written into its statement any more (sqlite-client.ts)')
  expect(asked, why).toContainEqual({ sql: 'select ? as n limit ?', transacting: false })
  const transaction = changed('a transaction would read beside itself (sqlite-client.ts)')
  expect(asked, transaction).toContainEqual({ sql: 'select 2', transacting: true })
})

onBoth('knex keeps its configuration and the name of its driver with its client', async ({ root, dialect }) => {
  expect(
    writeStateOf(root)?.writeMs,
    changed('transactions do not find their limits (transaction.ts)'),
  ).toBeGreaterThan(0)
  const { driverName } = root.client as { driverName: string }
  expect(driverName, changed('nobody knows which database it is (dialect.ts)')).toBe(
    dialect === 'postgres' ? 'pg' : 'better-sqlite3',
  )
  const told: string[] = []
  root.on('query-response', (_rows: unknown, { sql }: { sql: string }) => told.push(sql))
  await root.raw('select 1 as told')
  expect(told, changed('it does not tell of its queries by this name')).toContain('select 1 as told')
})

onBoth(
  'knex keeps its pool with its client, which tells who has connections and who waits',
  async ({ root, dialect }) => {
    const most = poolUseOf(root)!.most
    expect(most, changed('the pool does not say its size (pool-use.ts)')).toBe(dialect === 'sqlite' ? 1 : most)
    let end = () => {}
    const ended = new Promise<void>((resolve) => (end = resolve))
    const begun: Promise<void>[] = []
    const all = Array.from({ length: most + 2 }, () => {
      let begin = () => {}
      begun.push(new Promise<void>((resolve) => (begin = resolve)))
      return root.transaction(() => {
        begin()
        return ended
      })
    })
    await Promise.all(begun.slice(0, most))
    expect(poolUseOf(root), changed('the metrics of the pool are wrong (pool-use.ts)')).toEqual({
      used: most,
      idle: 0,
      most,
      waiting: 2,
    })
    end()
    await Promise.all(all)
    expect(poolUseOf(root)).toMatchObject({ used: 0, waiting: 0 })
  },
)

test.skipIf(!hasPostgres())(
  'knex begins by `begin`, marks a connection it was given, and drops one that is disposed of',
  async () => {
    const database = await openPostgres()
    const client = database.root.client as PostgresClient
    const pidOf = async (connection: PgClient) => (await connection.query('select pg_backend_pid() as pid')).rows[0].pid
    try {
      const level = "select current_setting('transaction_isolation') as level"
      const levelNow = query(level, z.object({ level: z.string() }))
      const given = await client.acquireConnection()
      const ahead: Promise<unknown>[] = []
      const config = {
        connection: given,
        begin: 'begin isolation level repeatable read',
        ahead: (db: Askable) => ahead.push(levelNow.first(db, [])),
      }
      const { rows } = await database.root.transaction((tx) => tx.raw(level), config as never)
      expect(rows, changed('transactions are not serializable (WriteTransaction)')).toEqual([
        { level: 'repeatable read' },
      ])
      expect(await Promise.all(ahead), changed('what is read ahead is read outside of the transaction')).toEqual(rows)
      expect(given, changed('it leaves another mark, which is not taken off (endTurn)')).toHaveProperty('__knexTxId')
      Reflect.deleteProperty(given, '__knexTxId')
      const pid = await pidOf(given)
      Object.assign(given, { __knex__disposed: new Error('of no more use') })
      await client.releaseConnection(given)
      const next = await client.acquireConnection()
      expect(
        await pidOf(next),
        changed('a connection that may hold a lock is given out again (releaseLocks)'),
      ).not.toBe(pid)
      await client.releaseConnection(next)
      await given.end()
    } finally {
      await database.close()
    }
  },
)

test.skipIf(!hasPostgres())('pg sends what is asked before it was answered, also after a copy', async () => {
  const database = await openPostgres()
  const client = database.root.client as PostgresClient
  const connection = await client.acquireConnection()
  const { stream } = (connection as unknown as { connection: { stream: Socket } }).connection
  const areSentTogether = async () => {
    const first = connection.query('select 1 as n')
    const sent = stream.bytesWritten
    const second = connection.query('select 2 as n')
    const isSent = stream.bytesWritten > sent
    expect([(await first).rows, (await second).rows]).toEqual([[{ n: 1 }], [{ n: 2 }]])
    return isSent
  }
  const slow = 'pg has changed: each statement waits for the answer of the one before (pipeline.ts)'
  try {
    expect(await areSentTogether(), slow).toBe(true)
    expect(await aloneOn(connection, areSentTogether), slow).toBe(false)
    expect(await areSentTogether(), slow).toBe(true)
  } finally {
    await client.releaseConnection(connection)
    await database.close()
  }
})

test.skipIf(!hasPostgres())('pg lets a query write a copy to the stream of its connection', async () => {
  const database = await openPostgres()
  const client = database.root.client as PostgresClient
  const connection = await client.acquireConnection()
  try {
    await connection.query('create temporary table copied (id int)')
    const copy = () =>
      new Promise<void>((resolve, reject) => {
        connection.query({
          submit: (to: Connection) => to.query('copy copied from stdin'),
          handleCopyInResponse: ({ stream }: Connection) => void stream.write('d\0\0\0\x061\nc\0\0\0\x04'),
          handleError: reject,
          handleReadyForQuery: () => resolve(),
          handleCommandComplete: () => undefined,
        })
      })
    const before = connection.query('select count(*) from copied')
    let behind = before
    const copied = aloneOn(connection, () => {
      const done = copy()
      behind = connection.query('select id from copied')
      return done
    })
    expect((await before).rows, 'pg has changed: a copy goes before what was asked first (pipeline.ts)').toEqual([
      { count: 0 },
    ])
    await copied
    expect((await behind).rows, 'pg has changed: large rows are not copied any more (copy.ts)').toEqual([{ id: 1 }])
  } finally {
    await client.releaseConnection(connection)
    await database.close()
  }
})
