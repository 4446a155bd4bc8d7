import type { CompanyUuid } from '../../../shared/lib/ids.ts'
import { int, text, time } from '../../db/columns.ts'
import { companyUuid } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { table, type RowOf } from '../../db/table.ts'

const companies = table('companies', { id: companyUuid, name: text, version: int, updatedAt: time })
export type CompanyRow = RowOf<typeof companies>

export async function findCompany(db: Db, id: CompanyUuid): Promise<CompanyRow | null> {
  return companies.find(db, { id })
}

/** Fails with `transient_conflict` when somebody else changed it since it was read. */
export async function replaceCompany(db: Db, before: CompanyRow, after: { name: string; at: number }): Promise<void> {
  await companies.replace(db, before, { name: after.name, updatedAt: after.at })
}

/** Removes the company unless it still has a workspace. */
export async function removeEmptyCompany(db: Db, id: string): Promise<boolean> {
  const removed = await db('companies')
    .where({ id })
    .whereNotExists((rest) => void rest.from('workspaces').select('id').where({ company_id: id }))
    .delete()
  return removed === 1
}
