import { expect } from 'vitest'
import { z } from 'zod'
import { onBoth } from '../../test/kit/database.ts'
import { flag, int, json, nullableFlag, nullableInt, nullableJson, nullableText, text } from './columns.ts'
import { table, type RowOf } from './table.ts'

const things = table(
  'things',
  {
    id: text,
    ownerName: nullableText,
    isOpen: flag,
    wasSeen: nullableFlag,
    size: nullableInt,
    tags: json(z.array(z.string())),
    place: nullableJson(z.object({ x: z.number() })),
    linkId: text,
    version: int,
  },
  { columns: { linkId: 'link_instance' } },
)
type Thing = RowOf<typeof things>

const one: Thing = {
  id: 'one',
  ownerName: null,
  isOpen: true,
  wasSeen: null,
  size: 3,
  tags: ['a', 'b'],
  place: { x: 1 },
  linkId: 'l1',
  version: 1,
}

onBoth('a table that is described once is written and read by its fields', async ({ root }) => {
  await root.schema.createTable('things', (t) => {
    for (const name of ['id', 'owner_name', 'tags', 'place', 'link_instance']) void t.text(name)
    for (const name of ['is_open', 'was_seen', 'size', 'version']) void t.integer(name)
  })
  const two: Thing = { ...one, id: 'two', ownerName: 'Ada', isOpen: false, wasSeen: false, size: null, place: null }
  await things.insert(root, [one, two])
  expect(await things.list(things.from(root).orderBy('id'))).toEqual([one, two])
  expect(await things.find(root, { linkId: 'l1', ownerName: 'Ada' })).toEqual(two)
  expect(await things.find(root, { id: 'three' })).toBeNull()
  // The rest of the conditions would find a row that was not asked for.
  for (const by of [
    { id: 'one', linkId: undefined },
    { id: 'one', owner: 'Bob' },
  ])
    await expect(things.find(root, by as Partial<Thing>)).rejects.toThrow('cannot be searched by')
  expect(await things.query('where link_instance = ? order by id').list(root, ['l1'])).toEqual([one, two])
  expect(await things.returning('update things set size = 9 where id = ?')(root, ['two'])).toEqual([
    { ...two, size: 9 },
  ])

  const insert = things.inserter(['id', 'isOpen', 'tags', 'linkId', 'version'])
  expect(await insert(root, { id: 'three', isOpen: true, tags: [], linkId: 'l3', version: 4 })).toBe(1)
  const three = { ...one, id: 'three', size: null, place: null, tags: [], linkId: 'l3', version: 4 }
  expect(await things.find(root, { id: 'three' })).toEqual(three)

  await root.schema.alterTable('things', (t) => t.unique(['id', 'link_instance']))
  expect(await things.insertNew(root, { ...three, size: 5 }, ['id', 'linkId'])).toBe(false)
  expect(await things.insertNew(root, { ...three, linkId: 'l4' }, ['id', 'linkId'])).toBe(true)
  expect((await things.list(things.from(root).where({ id: 'three' }))).map(({ size }) => size)).toEqual([null, null])

  await things.replace(root, one, { ...one, tags: ['c'], wasSeen: true })
  await expect(things.replace(root, one, { tags: ['late'] })).rejects.toMatchObject({ code: 'transient_conflict' })
  const after = { ...one, tags: ['c'], wasSeen: true, version: 2 }
  expect(await things.find(root, { id: 'one' })).toEqual(after)
  const joined = root('things')
    .select(things.fields('things'), 'other.id as other')
    .join('things as other', 'other.size', 'things.size')
  expect((await joined.where('things.id', 'one')).map(things.part)).toEqual([after])
})

onBoth('a replace writes what is new alone, and columns that are named beside the fields', async ({ root }) => {
  // The databases of a file are one on PostgreSQL.
  await root.schema.dropTableIfExists('things')
  await root.schema.createTable('things', (t) => {
    for (const name of ['id', 'owner_name', 'tags', 'place', 'link_instance', 'words']) void t.text(name)
    for (const name of ['is_open', 'was_seen', 'size', 'version']) void t.integer(name)
  })
  await things.insert(root, one)
  // Somebody who raises no version has written another field meanwhile.
  await root('things').update({ size: 8 })
  await things.replace(root, one, { ...one, ownerName: 'Bob' }, { words: 'bob' })
  expect(await root('things').first()).toMatchObject({ size: 8, owner_name: 'Bob', words: 'bob', version: 2 })
})
