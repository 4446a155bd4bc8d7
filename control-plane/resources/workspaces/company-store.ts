import { z } from 'zod'
import { int, text } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { replaceVersioned } from '../../db/versioned.ts'

const row = z.object({ id: text, name: text, version: int })
export type CompanyRow = z.infer<typeof row>

export async function findCompany(db: Db, id: string): Promise<CompanyRow | null> {
  const found: unknown = await db('companies').where({ id }).first('id', 'name', 'version')
  return found === undefined ? null : row.parse(found)
}

/** False when somebody else changed it since it was read. */
export async function replaceCompany(
  db: Db,
  before: CompanyRow,
  after: { name: string; at: number },
): Promise<boolean> {
  return replaceVersioned(db, { table: 'companies', before }, { name: after.name, updated_at: after.at })
}

/** Removes the company unless it still has a workspace. */
export async function removeEmptyCompany(db: Db, id: string): Promise<boolean> {
  const removed = await db('companies')
    .where({ id })
    .whereNotExists((rest) => void rest.from('workspaces').select('id').where({ company_id: id }))
    .delete()
  return removed === 1
}
