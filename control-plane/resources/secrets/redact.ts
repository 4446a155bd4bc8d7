import { Redactor } from '../../../shared/lib/redact.ts'
import type { Db } from '../../db/open.ts'
import type { RunRow } from '../runs/store.ts'
import { secretsForRun } from './store.ts'
import type { Vault } from '../../vault/vault.ts'

/** A redactor for the values of the secrets of the run's agent. */
export async function redactorFor(db: Db, run: Pick<RunRow, 'agentId'>, vault: Pick<Vault, 'open'>): Promise<Redactor> {
  const values = await secretsForRun(db, run, vault)
  return new Redactor(Object.entries(values).map(([name, value]) => ({ name, value })))
}
