import type { Db } from './open.ts'

/** Writes columns of a row and raises its version; false when somebody else wrote it since it was read. */
export async function replaceVersioned(
  db: Db,
  { table, before }: { table: string; before: { id: string; version: number } },
  columns: Record<string, unknown>,
): Promise<boolean> {
  const changed = await db(table)
    .where({ id: before.id, version: before.version })
    .update({ ...columns, version: before.version + 1 })
  return changed === 1
}
