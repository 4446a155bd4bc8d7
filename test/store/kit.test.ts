import { expect } from 'vitest'
import { onBoth } from '../kit/database.ts'

for (const round of [1, 2])
  onBoth(`each test begins with empty tables, round ${round}`, async ({ root }) => {
    expect(await root('outbox').select('seq')).toEqual([])
    await root('outbox').insert({ topic: 'run.queued', key: 'k', payload: '{}', created_at: 1 })
    expect(await root('outbox').select('seq')).toHaveLength(1)
  })
