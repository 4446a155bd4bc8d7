import { expect, test } from 'vitest'
import { openDatabase } from './open.ts'

test.each([
  ['sqlite', ':memory:'],
  ['postgres', 'postgres://localhost/nowhere'],
])('%s: nobody who waits for a connection is refused before what holds it must have ended', async (_, url) => {
  for (const [limits, longest] of [
    [{}, 20_000],
    [{ readMs: 40_000 }, 40_000],
    [{ writeMs: 60_000 }, 60_000],
  ] as const) {
    const database = openDatabase({ url, ...limits })
    const { pool } = database.root.client as { pool: { acquireTimeoutMillis: number } }
    expect(pool.acquireTimeoutMillis).toBeGreaterThan(longest)
    await database.close()
  }
})
