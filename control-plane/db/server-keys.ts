import type { World } from '../../shared/lib/world.ts'
import { text } from './columns.ts'
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
