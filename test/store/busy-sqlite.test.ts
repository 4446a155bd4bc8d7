import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { migrate } from '../../control-plane/db/migrate.ts'
import type { Database } from '../../control-plane/db/open.ts'
import { inTransaction, writeStateOf } from '../../control-plane/db/transaction.ts'
import { openSqlite } from '../kit/database.ts'

// A SQLite file that a server and an operator's command write at the same time, each through a connection of its own.

let folder: string
let server: Database
let command: Database

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-busy-'))
  const file = join(folder, 'svc.db')
  server = openSqlite(file)
  command = openSqlite(file)
  await server.root.schema.createTable('things', (t) => void t.text('name'))
})
afterAll(async () => {
  await Promise.all([server.close(), command.close()])
  rmSync(folder, { recursive: true })
})

const names = () => server.root('things').orderBy('name').pluck('name')
const insert = (db: Database['root'], name: string) => db('things').insert({ name })

/** Begins a transaction that has written; returns what commits it. */
async function holdTheFile({ root }: Database, name: string): Promise<() => Promise<void>> {
  const { promise: mayEnd, resolve: release } = Promise.withResolvers<void>()
  const { promise: holds, resolve: held } = Promise.withResolvers<void>()
  const ended = inTransaction(root, async (tx) => {
    await insert(tx, name)
    held()
    await mayEnd
  })
  await Promise.race([holds, ended])
  return async () => {
    release()
    await ended
  }
}

/** The turns of the loop that pass while the other side waits: it blocks nobody. */
const someTurns = async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
}

test('a transaction that reads before it writes waits for the one that is at work, and blocks nobody', async () => {
  const release = await holdTheFile(command, 'by the command')
  let seen: string[] = []
  const waiting = inTransaction(server.root, async (tx) => {
    seen = await tx('things').pluck('name')
    await insert(tx, 'by the server')
  })
  await someTurns()
  await release()
  await waiting
  expect(seen).toEqual(['by the command'])
  expect(await names()).toEqual(['by the command', 'by the server'])
})

test('a single write waits as well', async () => {
  const release = await holdTheFile(command, 'b')
  const waiting = insert(server.root, 'a')
  await someTurns()
  await release()
  await waiting
  expect(await names()).toEqual(expect.arrayContaining(['a', 'b']))
})

test('a command gets its turn beside a server that writes without a pause', async () => {
  const over = new AbortController()
  let count = 0
  const busy = Array.from({ length: 4 }, async (_, each) => {
    while (!over.signal.aborted)
      await inTransaction(server.root, async (tx) => {
        await tx('things').first()
        await insert(tx, `busy ${each} ${count++}`)
      })
  })
  for (let turn = 0; turn < 20; turn++)
    await inTransaction(command.root, async (tx) => {
      await tx('things').first()
      await insert(tx, `command ${turn}`)
    })
  over.abort()
  await Promise.all(busy)
  expect((await names()).filter((name) => name.startsWith('command'))).toHaveLength(20)
})

test('a schema that is up to date is found so while somebody else is at work', async () => {
  const release = await holdTheFile(server, 'migrating')
  expect(await migrate(command.root, 1)).toBe(0)
  await release()
})

test('whoever waited for too long is told that it did nothing, in the words of the database alone', async () => {
  const writes = writeStateOf(command.root)
  const { writeMs } = writes
  writes.writeMs = 20
  const release = await holdTheFile(server, 'long')
  try {
    let isBegun = false
    const late = inTransaction(command.root, async () => void (isBegun = true))
    await expect(late).rejects.toMatchObject({ name: 'NotBegunError', message: 'database is locked' })
    expect(isBegun).toBe(false)
    await expect(insert(command.root, 'late')).rejects.toThrow(/^database is locked$/)
  } finally {
    writes.writeMs = writeMs
    await release()
  }
})

test('the message of a failed query holds no statement, which stands beside it for the log', async () => {
  const failed = await server
    .root('nothing')
    .where({ name: 'a value' })
    .then(
      () => null,
      (error: unknown) => error,
    )
  expect(failed).toMatchObject({ message: 'no such table: nothing', sql: 'select * from `nothing` where `name` = ?' })
})
