import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { dialectOfDb, databaseTroubleOf } from '../../control-plane/db/dialect.ts'
import { inOneTrip } from '../../control-plane/db/one-trip.ts'
import { inSavepoint, inTransaction, publish } from '../../control-plane/db/transaction.ts'
import { openDatabase, type Askable, type Database, type Db, type Tx } from '../../control-plane/db/open.ts'
import {
  columnsOf,
  command,
  commandAtEnd,
  inserter,
  query,
  readTogether,
  Texts,
} from '../../control-plane/db/statement.ts'
import { ApiError } from '../../shared/api/errors.ts'
import { hasPostgres, onBoth, openPostgres } from '../kit/database.ts'

/** Written statements against knex's builder, in memory, in a file (which has a connection that only reads) and on PostgreSQL. */
const row = z.object({ id: z.string(), rank: z.coerce.number(), note: z.string().nullable() })
type Letter = z.output<typeof row>
const select = `select ${columnsOf(row)} from letters`
const byId = query(`${select} where id = ?`, row)
const byIds = query(`${select} where id in ? and rank > ? order by id`, row)
const byIdLocked = query(`${select} where id = ? locked`, row)
const byHighestRank = query(`${select} where rank in [select max(rank) from letters where rank < ?]`, row)
const setNote = command('update letters set note = ? where rank >= ?')
const addColumn = 'alter table letters add column more text'

async function fill(root: Db): Promise<void> {
  await root.raw('create table letters (id text primary key, rank bigint not null, note text)')
  await root('letters').insert(['a', 'b', 'c'].map((id, rank) => ({ id, rank, note: null })))
}

async function inFile(): Promise<Database> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-statements-'))
  const database = openDatabase({ url: join(folder, 'svc.db') })
  onTestFinished(async () => {
    await database.close()
    rmSync(folder, { recursive: true })
  })
  await fill(database.root)
  return database
}

async function answersAsTheBuilder(root: Db): Promise<void> {
  expect(await byId.first(root, ['b'])).toEqual(await root('letters').where({ id: 'b' }).first('id', 'rank', 'note'))
  expect(await byId.first(root, ['z'])).toBeNull()
  const ids = ['c', 'a', 'z', "o'", '"', '{}', 'a,b']
  expect(await byIds.list(root, [ids, 0])).toEqual(
    await root('letters').whereIn('id', ids).where('rank', '>', 0).select('id', 'rank', 'note'),
  )
  expect(await byIds.list(root, [[], 0])).toEqual([])
  expect((await byHighestRank.list(root, [2])).map(({ id }) => id)).toEqual(['b'])
  expect(await setNote(root, ['new', 1])).toBe(2)
  expect(await setNote(root, [null, 9])).toBe(0)
  expect((await byId.first(root, ['c']))?.note).toBe('new')
  // The release that runs goes on asking while another one migrates.
  await root.raw(addColumn)
  expect((await byId.first(root, ['c']))?.note).toBe('new')
}

onBoth('texts that depend on what is given are prepared up to a number, and asked all the same', async ({ root }) => {
  await fill(root)
  const texts = new Texts(2)
  try {
    await root.transaction(async (tx) => {
      for (const columns of ['id', 'rank', 'note', 'id, rank', 'note'])
        expect(await texts.first(tx, `select ${columns} from letters where id = ?`, ['b'])).toMatchObject(
          columns === 'note' ? { note: null } : {},
        )
      expect(await texts.change(tx, 'update letters set note = ? where id = ?', ['last', 'b'])).toBe(1)
      if (dialectOfDb(tx) === 'postgres') {
        const prepared = "select statement from pg_prepared_statements where statement like '%from letters%' order by 1"
        const { rows } = (await tx.raw(prepared)) as { rows: { statement: string }[] }
        expect(rows.map(({ statement }) => statement)).toEqual([
          'select id from letters where id = $1',
          'select rank from letters where id = $1',
        ])
      }
    })
    expect((await byId.first(root, ['b']))?.note).toBe('last')
  } finally {
    await root.raw('drop table letters')
  }
})

onBoth('a written statement answers as the builder does', async ({ root }) => {
  await fill(root)
  try {
    await answersAsTheBuilder(root)
  } finally {
    await root.raw('drop table letters')
  }
})

onBoth(
  'what is asked in one trip is asked in its order, and each sees what those before it wrote',
  async ({ root }) => {
    await fill(root)
    try {
      const read = await inTransaction(root, (tx) =>
        inOneTrip(tx, [
          () => byId.first(tx, ['a']),
          () => setNote(tx, ['new', 1]),
          () => null,
          () => byId.first(tx, ['b']),
        ]),
      )
      expect(read).toEqual([{ id: 'a', rank: 0, note: null }, 2, null, { id: 'b', rank: 1, note: 'new' }])
    } finally {
      await root.raw('drop table letters')
    }
  },
)

onBoth('of what fails in one trip the cause is told, when all of it has ended', async ({ root }) => {
  await fill(root)
  try {
    let ended: string[] = []
    const asked = inTransaction(root, (tx) => {
      // A duplicate is tried again.
      ended = []
      return inOneTrip(tx, [
        // On PostgreSQL its second statement is refused, since the insert that was asked before it was.
        async () => {
          try {
            await byId.first(tx, ['a'])
            await setNote(tx, ['late', 0])
          } finally {
            ended.push('late')
          }
        },
        async () => {
          try {
            await tx('letters').insert({ id: 'a', rank: 9 })
          } finally {
            ended.push('insert')
          }
        },
      ])
    })
    expect(databaseTroubleOf(await asked.catch((reason: unknown) => reason))).toBe('duplicate')
    expect(ended.toSorted()).toEqual(['insert', 'late'])
    expect((await byId.first(root, ['a']))?.note).toBeNull()
  } finally {
    await root.raw('drop table letters')
  }
})

test('a written statement answers as the builder does (sqlite in a file)', async () => {
  await answersAsTheBuilder((await inFile()).root)
})

/** Tests that what a transaction wrote is its own until it commits, and everybody's from then on. */
async function keepsToItsTransaction(root: Database['root']): Promise<void> {
  const tx = await root.transaction()
  await setNote(tx, ['written', 0])
  expect((await byId.first(tx, ['a']))?.note).toBe('written')
  expect((await byIdLocked.first(tx, ['a']))?.note).toBe('written')
  // Not waited for, either: the root handle reads beside the transaction.
  expect((await byId.first(root, ['a']))?.note).toBeNull()
  await tx.commit()
  expect((await byId.first(root, ['a']))?.note).toBe('written')
  await expect(byId.first(tx, ['a'])).rejects.toThrow('already complete')
  const undone = root.transaction(async (other) => {
    await setNote(other, ['undone', 0])
    throw new Error('no')
  })
  await expect(undone).rejects.toThrow('no')
  expect((await byId.first(root, ['a']))?.note).toBe('written')
}

test('a written statement sees what its transaction does, and others only what is committed (sqlite in a file)', async () => {
  await keepsToItsTransaction((await inFile()).root)
})

test.skipIf(!hasPostgres())(
  'a written statement sees what its transaction does, and others only what is committed (postgres)',
  async () => {
    const database = await openPostgres()
    await fill(database.root)
    await keepsToItsTransaction(database.root)
    const tx = await database.root.transaction()
    await byIdLocked.first(tx, ['a'])
    const noWait = database.root('letters').where({ id: 'a' }).forUpdate().noWait()
    await expect(noWait).rejects.toThrow('could not obtain lock')
    await tx.rollback()
    await database.close()
  },
)

test('what another process commits is read at once (sqlite in a file)', async () => {
  const { root } = await inFile()
  expect((await byId.first(root, ['a']))?.note).toBeNull()
  const { filename } = (root.client as { connectionSettings: { filename: string } }).connectionSettings
  const other = openDatabase({ url: filename })
  await setNote(other.root, ['of another', 0])
  expect((await byId.first(root, ['a']))?.note).toBe('of another')
  await other.close()
  expect((await byId.first(root, ['a']))?.note).toBe('of another')
})

test('a failed statement names itself and not its values', async () => {
  const { root } = await inFile()
  const wrong = query('select id from nowhere where id = ?', row)
  await expect(wrong.first(root, ['a secret'])).rejects.toThrow(/no such table/)
  await expect(wrong.first(root, ['a secret'])).rejects.not.toThrow(/a secret/)
})

onBoth(
  'reads that are asked together are answered in their order, and go on when one of them fails',
  async ({ root }) => {
    await fill(root)
    try {
      const found = await readTogether(root, (db) =>
        Promise.all([byId.first(db, ['c']), byIds.list(db, [['a', 'b'], -1]), byId.first(db, ['z'])]),
      )
      expect([found[0]?.rank, found[1].map(({ id }) => id), found[2]]).toEqual([2, ['a', 'b'], null])
      const wrong = query('select nowhere from letters', row)
      const broken = readTogether(root, (db) => Promise.all([wrong.list(db, []), byId.first(db, ['a'])]))
      await expect(broken).rejects.toThrow(/nowhere/)
      expect((await byId.first(root, ['a']))?.rank).toBe(0)
    } finally {
      await root.raw('drop table letters')
    }
  },
)

onBoth('statements that are asked together are done in their order', async ({ root, dialect }) => {
  await fill(root)
  try {
    const seen = await root.transaction((tx) =>
      Promise.all([
        setNote(tx, ['first', 1]),
        byId.first(tx, ['b']),
        setNote(tx, ['second', 2]),
        byIds.list(tx, [['b', 'c'], 0]),
        byId.first(tx, ['c']),
      ]),
    )
    const [b, c] = [
      { id: 'b', rank: 1, note: 'first' },
      { id: 'c', rank: 2, note: 'second' },
    ]
    expect(seen).toEqual([2, b, 1, [b, c], c])
    const broken = root.transaction((tx) =>
      Promise.all([setNote(tx, ['lost', 0]), tx.raw('select nowhere from letters'), setNote(tx, ['lost as well', 0])]),
    )
    await expect(broken).rejects.toThrow(dialect === 'postgres' ? /column "nowhere"/ : /no such column/)
    expect((await byIds.list(root, [['a', 'b', 'c'], -1])).map(({ note }) => note)).toEqual([null, 'first', 'second'])
  } finally {
    await root.raw('drop table letters')
  }
})

const insertLetter = commandAtEnd('insert into letters (id, rank, note) values (?, ?, ?)')

onBoth(
  'a statement that its transaction waits for at the end undoes all of it when it fails',
  async ({ root, dialect }) => {
    await fill(root)
    const notes = async () =>
      (await byIds.list(root, [['a', 'b', 'c', 'd'], -1])).map(({ id, note }) => `${id} ${note}`)
    let attempts = 0
    const failing = async (work: (tx: Tx) => Promise<unknown>) =>
      inTransaction(root, async (tx) => {
        attempts++
        await setNote(tx, ['lost', 0])
        await insertLetter(tx, ['a', 9, null])
        return work(tx)
      })
    try {
      await inTransaction(root, async (tx) => {
        await insertLetter(tx, ['d', 3, 'whole'])
        expect(await byId.first(tx, ['d'])).toMatchObject({ note: 'whole' })
      })
      const before = ['a null', 'b null', 'c null', 'd whole']
      expect(await notes()).toEqual(before)
      // Behind it nothing is asked, something is, or is asked and its failure ignored: told is why the first one failed.
      const works: ((tx: Tx) => Promise<unknown>)[] = [
        () => Promise.resolve(),
        (tx) => setNote(tx, ['lost as well', 0]),
        (tx) => setNote(tx, ['lost as well', 0]).catch(() => null),
        (tx) => publish(tx, { topic: 'run.ended', key: 'x', at: 0 }),
      ]
      // On PostgreSQL the row that is in the way may be one that was not there when the transaction began.
      for (const work of works) await expect(failing(work)).rejects.toThrow(/unique/i)
      expect(attempts).toBe((dialect === 'postgres' ? 3 : 1) * works.length)
      expect([await notes(), await root('outbox').where({ key: 'x' })]).toEqual([before, []])
      // In a savepoint and outside of a transaction it is waited for at once.
      const caught = await inTransaction(root, async (tx) => {
        const refused = await inSavepoint(tx, (inner) => insertLetter(inner, ['a', 9, null])).catch(() => 'refused')
        await setNote(tx, ['kept', 3])
        return refused
      })
      expect([caught, await notes()]).toEqual(['refused', ['a null', 'b null', 'c null', 'd kept']])
      await expect(insertLetter(root, ['a', 9, null])).rejects.toThrow(/unique/i)
    } finally {
      await root.raw('drop table letters')
    }
  },
)

onBoth('what is read ahead is read in the transaction, anew in each attempt', async ({ root }) => {
  await fill(root)
  try {
    const pairs: unknown[] = []
    const work = async (tx: Tx, [b, none]: (Letter | null)[]) => {
      pairs.push([b?.note, none])
      await setNote(tx, [`after ${pairs.length}`, 1])
      if (pairs.length < 3) throw new ApiError('transient_conflict')
      return byId.first(tx, ['b'])
    }
    const ahead = (db: Askable) => Promise.all([byId.first(db, ['b']), byId.first(db, ['z'])])
    expect(await inTransaction(root, work, { locks: ['w'], ahead })).toMatchObject({ note: 'after 3' })
    expect(pairs).toEqual([1, 2, 3].map(() => [null, null]))
    const failing = (db: Askable) => query('select nowhere from letters', row).first(db, [])
    const never = async (tx: Tx) => setNote(tx, ['never', 0])
    await expect(inTransaction(root, never, { ahead: failing })).rejects.toThrow('nowhere')
    expect((await byIds.list(root, [['a', 'b', 'c'], -1])).map(({ note }) => note)).toEqual([
      null,
      'after 3',
      'after 3',
    ])
  } finally {
    await root.raw('drop table letters')
  }
})

test.skipIf(!hasPostgres())(
  'what is read ahead is asked behind the beginning, and dropped when that fails',
  async () => {
    const database = await openPostgres({ writeMs: 300 })
    const { root } = database
    try {
      const settings = z.object({ level: z.string(), ms: z.string() })
      const asked = query(
        `select current_setting('transaction_isolation') as level, current_setting('statement_timeout') as ms`,
        settings,
      )
      const ahead = (db: Askable) => asked.first(db, [])
      expect(await inTransaction(root, (_tx, read) => Promise.resolve(read), { locks: ['w'], ahead })).toMatchObject({
        level: 'serializable',
        ms: expect.stringMatching(/^\d{1,3}ms$/),
      })
      const { promise: held, resolve: isHeld } = Promise.withResolvers<void>()
      const { promise: over, resolve: end } = Promise.withResolvers<void>()
      const other = openDatabase({ url: database.url })
      const holder = inTransaction(
        other.root,
        async () => {
          isHeld()
          await over
        },
        { locks: ['w'] },
      )
      await held
      let works = 0
      const work = () => Promise.resolve(works++)
      await expect(inTransaction(root, work, { locks: ['w'], ahead })).rejects.toThrow(/statement timeout/)
      end()
      await holder
      await other.close()
      expect([works, await inTransaction(root, work, { locks: ['w'], ahead })]).toEqual([0, 0])
    } finally {
      await database.close()
    }
  },
)

const insertParts = inserter({
  table: 'parts',
  columns: { id: 'text', small: 'integer', large: 'bigint', body: 'binary' },
})
const part = z.object({ id: z.string(), small: z.number(), large: z.number(), body: z.instanceof(Buffer) })
const parts = query(`select ${columnsOf(part)} from parts order by id`, part)

onBoth('rows with large values arrive as they are, or not at all', async ({ root, dialect }) => {
  await root.raw('drop table if exists parts')
  const binary = dialect === 'postgres' ? 'bytea' : 'blob'
  await root.raw(`create table parts (id text primary key, small integer, large bigint, body ${binary})`)
  try {
    const bodies = [0, 1, 4095, 4096, 4097, 300_000].map((size) => Buffer.alloc(size, 'Ab\0\xff\\.\n'))
    const ids = ['a', 'caf\u00e9', '\u65e5\u672c', '\u{1f600}', "'; \\N \t\n", '']
    const rows = ids.map((id, index) => [id, index - 3, (index - 3) * 2 ** 50, bodies[index]!] as const)
    await root.transaction(async (tx) => {
      await insertParts(tx, rows)
      await insertParts(tx, [])
    })
    const stored = new Map((await parts.list(root, [])).map((row) => [row.id, row]))
    for (const [id, small, large, body] of rows) expect(stored.get(id)).toEqual({ id, small, large, body })
    const again = root.transaction(async (tx) => {
      await insertParts(tx, [['new', 1, 1, Buffer.from('x')], rows[0]!])
    })
    expect(databaseTroubleOf(await again.catch((error: unknown) => error))).toBe('duplicate')
    expect(await parts.list(root, [])).toHaveLength(rows.length)
    // The connection is as good as before.
    await Promise.all(
      ['x', 'y', 'z'].map((id) => root.transaction((tx) => insertParts(tx, [[id, 1, 1, Buffer.alloc(10_000)]]))),
    )
    expect(await parts.list(root, [])).toHaveLength(rows.length + 3)
  } finally {
    await root.raw('drop table parts')
  }
})

test('in a file, neither reads that follow one another nor a long transaction keep the event loop to themselves', async () => {
  const { root } = await inFile()
  const turnsDuring = async (work: () => Promise<unknown>): Promise<number> => {
    let turns = 0
    let isOver = false
    const count = () => {
      if (isOver) return
      turns++
      setImmediate(count)
    }
    setImmediate(count)
    const until = performance.now() + 300
    while (performance.now() < until) await work()
    isOver = true
    return turns
  }
  // Without turns of its own it would see one at most.
  expect(await turnsDuring(async () => byId.first(root, ['b']))).toBeGreaterThan(2)
  await root.transaction(async (tx) => {
    expect(await turnsDuring(() => setNote(tx, ['x', 0]))).toBeGreaterThan(2)
    expect(await turnsDuring(() => tx('letters').first())).toBeGreaterThan(2)
  })
})
