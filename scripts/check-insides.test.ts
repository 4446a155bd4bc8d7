import { expect, test } from 'vitest'
import { insideProblems } from './check-insides.ts'

const file = 'control-plane/resources/runs/store.ts'

test.each([
  ["import Client from 'knex/lib/client.js'", 'knex/lib/client.js'],
  ["const x = await import('@koa/router/dist/layer.js')", '@koa/router/dist/layer.js'],
  ["const socket = (pty as unknown as Record<string, Socket>)['_socket']", '_socket'],
  ['const { format } = check._zod.def', '_zod'],
  ['const isInteger = ({ _zod }: Check) => true', '_zod'],
  ['Object.assign(connection, { __knex__disposed: error })', '__knex__disposed'],
  ['const { pool } = root.client', 'root.client'],
  ['const { pool } = (db as Knex).client', 'Knex).client'],
])('refuses the inside of a library: %s', (text, name) => {
  expect(insideProblems(file, `// a file\n${text}\n`)).toEqual([
    `${file}: \`${name}\` is the inside of a library; give it one file with a test and list both in scripts/check-insides.ts`,
  ])
})

test.each([
  "import { Ajv2020 } from 'ajv/dist/2020.js'",
  "import { parse } from './lib/parse.ts'",
  "db('runs').where({ agent_id: id, 'a._b': 1 })",
  'const names = list.map(([, _other]) => names_of(x))',
  'const open = github.client',
  '/** Reads `_zod` of a check. */',
  ' * what `__knexTxId` says',
])('passes what is public, our own, or only spoken of: %s', (text) => {
  expect(insideProblems(file, text)).toEqual([])
})

test('the home of an inside may touch it, and its tests may', () => {
  const text = "import Client from 'knex/lib/client.js'"
  expect(insideProblems('control-plane/db/sqlite-client.ts', text)).toEqual([])
  expect(insideProblems('control-plane/db/table.test.ts', text)).toEqual([])
  expect(insideProblems('control-plane/db/table.ts', 'const client = root.client')).toEqual([])
})
