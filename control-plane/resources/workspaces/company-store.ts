import { int, text, time } from '../../db/columns.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

const companies = table('companies', { id: text, name: text, version: int, updatedAt: time })
export type CompanyRow = RowOf<typeof companies>

export async function findCompany(db: Db, id: string): Promise<CompanyRow | null> {
  return companies.find(db, { id })
}

/** Returns false when somebody else changed it since it was read. */
export async function replaceCompany(
  db: Db,
  before: CompanyRow,
  after: { name: string; at: number },
): Promise<boolean> {
  return companies.replace(db, before, { name: after.name, updatedAt: after.at })
}

/** Removes the company unless it still has a workspace. */
export async function removeEmptyCompany(db: Db, id: string): Promise<boolean> {
  const removed = await db('companies')
    .where({ id })
    .whereNotExists((rest) => void rest.from('workspaces').select('id').where({ company_id: id }))
    .delete()
  return removed === 1
}
