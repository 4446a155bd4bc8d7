import { expect } from 'vitest'
import { databaseTroubleOf } from '../../control-plane/db/dialect.ts'
import { inSavepoint, inTransaction, writeStateOf } from '../../control-plane/db/transaction.ts'
import type { Db, Tx } from '../../control-plane/db/open.ts'
import { onBoth } from '../kit/database.ts'
import { seedWorkspace } from './seed.ts'

/** A statement that takes some milliseconds on both databases. */
const count = 'with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select count(*) from n'
/** Together they would take many times as long as the write may. */
const mostStatements = 2_000
const writeMs = 300

async function within<Result>(root: Db, work: () => Promise<Result>): Promise<Result> {
  const state = writeStateOf(root as never)
  const before = state.writeMs
  state.writeMs = writeMs
  try {
    return await work()
  } finally {
    state.writeMs = before
  }
}

async function manyStatements(tx: Tx): Promise<void> {
  for (let asked = 0; asked < mostStatements; asked++) await tx.raw(count)
}

onBoth('many short statements end within the time of a write, and leave nothing behind', async ({ root }) => {
  const began = performance.now()
  const late = within(root, () =>
    inTransaction(root, async (tx) => {
      await seedWorkspace(tx, 'late')
      await manyStatements(tx)
    }),
  )
  const error = await late.then(
    () => null,
    (failure: unknown) => failure,
  )
  expect(databaseTroubleOf(error)).toBe('query_timeout')
  expect(performance.now() - began).toBeLessThan(4 * writeMs)
  expect(await root('workspaces').select('id')).toEqual([])
})

onBoth(
  'a part that is undone by itself does not stretch it, nor does work that goes on after a refusal',
  async ({ root }) => {
    const began = performance.now()
    const late = within(root, () =>
      inTransaction(root, async (tx) => {
        await inSavepoint(tx, manyStatements).catch(() => undefined)
        await tx.raw(count)
      }),
    )
    await expect(late).rejects.toMatchObject({ code: '57014' })
    expect(performance.now() - began).toBeLessThan(4 * writeMs)
  },
)

onBoth(
  'the next transaction on the connection has all of its time, and reads outside of one have no end',
  async ({ root }) => {
    await within(root, () => inTransaction(root, manyStatements).catch(() => undefined))
    for (let asked = 0; asked < 20; asked++) await root.raw(count)
    expect(await inTransaction(root, (tx) => seedWorkspace(tx, 'next'))).toMatch(/./)
    // A transaction that no write timeout was given to.
    const plain = await root.transaction()
    await plain.raw(count)
    await plain.rollback()
  },
)

for (const end of ['commit', 'rollback'] as const)
  onBoth(`a transaction whose ${end} fails leaves nothing behind on its connection`, async ({ root }) => {
    let failed = 0
    const { client } = root as unknown as { client: { query: (connection: unknown, query: unknown) => unknown } }
    const prototype = Object.getPrototypeOf(client) as typeof client
    const { query } = prototype
    const failing: typeof query = function (this: typeof client, connection, asked) {
      const fails = typeof asked === 'string' && asked.toLowerCase().startsWith(end)
      if (fails) failed++
      return query.call(this, connection, fails ? 'select * from missing' : asked)
    }
    prototype.query = failing
    try {
      const work = inTransaction(root, async (tx) => {
        await seedWorkspace(tx, 'undone')
        if (end === 'rollback') throw new Error('refused')
      })
      await expect(work).rejects.toThrow(/missing/)
    } finally {
      prototype.query = query
    }
    expect(failed).toBe(1)
    for (let asked = 0; asked < 10; asked++) expect(await root('workspaces').select('id')).toEqual([])
    expect(await inTransaction(root, (tx) => seedWorkspace(tx, 'next'))).toMatch(/./)
  })
