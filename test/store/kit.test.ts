import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { hasPostgres, onBoth, openPostgres } from '../kit/database.ts'
import { resetDatabase, schemaOf, SpareDatabases } from '../kit/spare-databases.ts'

for (const round of [1, 2])
  onBoth(`each test begins with empty tables, round ${round}`, async ({ root }) => {
    expect(await root('outbox').select('seq')).toEqual([])
    await root('outbox').insert({ topic: 'run.queued', key: 'k', payload: '{}', created_at: 1 })
    expect(await root('outbox').select('seq')).toHaveLength(1)
  })

test('a spare database is given to one', () => {
  const folder = join(inject('databases').folder, 'kit-spare')
  const [here, there] = [new SpareDatabases(folder), new SpareDatabases(folder)]
  expect(here.take()).toBeNull()
  here.give('one')
  here.give('two')
  expect(new Set([there.take(), here.take(), there.take()])).toEqual(new Set(['one', 'two', null]))
  there.give('one')
  expect(here.take()).toBe('one')
})

test.skipIf(!hasPostgres())('a database is reset to the template, and what is left of a test shows', async () => {
  const { template } = inject('databases')
  const database = await openPostgres()
  const { root } = database
  const reset = async () => {
    await resetDatabase(root, template!.tables)
    return (await schemaOf(root)) === template!.schema
  }
  try {
    expect(await schemaOf(root)).toBe(template!.schema)
    const row = { topic: 'run.queued', key: 'k', payload: '{}', created_at: 1 }
    expect(await root('outbox').insert(row).returning('seq')).toEqual([{ seq: 1 }])
    await root.raw('create table letters (id text primary key)')
    expect(await schemaOf(root)).not.toBe(template!.schema)
    expect(await reset()).toBe(true)
    expect(await root('outbox').insert(row).returning('seq')).toEqual([{ seq: 1 }])
    const changes = [
      'alter table outbox add column more text',
      'alter table outbox drop column more',
      'create index more on outbox (created_at)',
      'alter table outbox alter column payload drop not null',
      'create function more() returns trigger language plpgsql as $$ begin return null; end $$',
      'create trigger more after insert on outbox for each row execute function more()',
      'drop table search_chunks cascade',
    ]
    const seen = new Set([template!.schema])
    for (const change of changes) {
      await root.raw(change)
      expect([change, await reset()]).toEqual([change, false])
      seen.add(await schemaOf(root))
    }
    expect(seen.size).toBe(changes.length + 1)
  } finally {
    await database.close()
  }
})
