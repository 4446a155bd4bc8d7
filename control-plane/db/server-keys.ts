import type { World } from '../../shared/lib/world.ts'
import { z } from 'zod'
import { text, time } from './columns.ts'
import { cellOf } from './reads.ts'
import type { Db } from './open.ts'

/** The key of that name, if it was made; null: it was not. */
export async function findServerKey(db: Db, name: string): Promise<string | null> {
  return cellOf(db('server_keys').where({ name }), 'value', text)
}

/** The server's own key of that name, made on first use. Every replica on the same database gets the same one. */
export async function serverKey(db: Db, name: string, fresh: { value: string; at: number }): Promise<string> {
  await db('server_keys').insert({ name, value: fresh.value, created_at: fresh.at }).onConflict('name').ignore()
  const row: unknown = await db('server_keys').where({ name }).first('value')
  return (row as { value: string }).value
}

/** The server's own key of that name: 32 random bytes. */
export async function randomServerKey(db: Db, name: string, world: Pick<World, 'bytes' | 'now'>): Promise<Buffer> {
  const value = Buffer.from(world.bytes(32)).toString('base64')
  return Buffer.from(await serverKey(db, name, { value, at: world.now() }), 'base64')
}

/** Puts another value in the place of the one before, if that is there still. */
export async function replaceServerKey(
  db: Db,
  name: string,
  { before, after }: { before: string; after: string },
): Promise<void> {
  await db('server_keys').where({ name, value: before }).update({ value: after })
}

const keyWithTime = z.object({ value: text, at: time })

/** The key of that name, and when it was made; null: there is none. */
export async function findServerKeyWithTime(db: Db, name: string): Promise<z.infer<typeof keyWithTime> | null> {
  const row: unknown = await db('server_keys').where({ name }).first({ value: 'value', at: 'created_at' })
  return row === undefined ? null : keyWithTime.parse(row)
}

/** Gives the key another name, in place of whatever had that, so that a new one is made under its own. */
export async function moveServerKey(db: Db, name: string, { to, at }: { to: string; at: number }): Promise<void> {
  await db('server_keys').where({ name: to }).delete()
  await db('server_keys').where({ name }).update({ name: to, created_at: at })
}
