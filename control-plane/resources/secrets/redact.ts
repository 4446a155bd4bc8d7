import { fail } from '../../../shared/api/errors.ts'
import { pieceOf } from '../../../shared/lib/redact-forms.ts'
import { labelOf, Redactor, type SecretValue } from '../../../shared/lib/redact.ts'
import type { Db } from '../../db/open.ts'
import type { RunRow } from '../runs/store.ts'
import { secretsForRun } from './store.ts'
import type { Vault } from '../../vault/vault.ts'

/** The characters of all long values that are in one body: to make tables for more takes longer than a server may stand still. */
const maxFoundChars = 32 * 1024
/** Values that overlap are found one after the other. */
const maxLooks = 8

/** Takes the values of the secrets of the run's agent, and others that it is given, out of all texts of a body. */
export async function withoutSecrets(
  db: Db,
  {
    run,
    body,
    vault,
    others,
  }: { run: Pick<RunRow, 'agentRef'>; body: unknown; vault: Pick<Vault, 'open'>; others: readonly SecretValue[] },
): Promise<unknown> {
  const values = await secretsForRun(db, run, vault)
  const ofAgent = Object.entries(values).map(([name, value]) => ({ name, value }))
  return censored(body, [...ofAgent, ...others])
}

/**
 * Looks for pieces of the values first: nearly every body holds none, and tables of long values take long to make. Pure. Fails with
 * `validation_error` when the body holds more of them than can be taken out in time.
 */
export function censored(body: unknown, secrets: readonly SecretValue[]): unknown {
  if (secrets.length === 0) return body
  const pieces = secrets.map(({ value }) => pieceOf(value))
  const isShort = secrets.map(({ value }, at) => value.trim().length === pieces[at]!.length)
  const found = new Set<number>()
  for (let look = 1; look <= maxLooks; look++) {
    const added = indexesIn(body, pieces, found)
    if (added.length === 0 && look === 1) return body
    if (added.length === 0) return new Redactor(secrets.filter((_, at) => found.has(at))).redactJson(body)
    for (const at of added) found.add(at)
    if (look === 1) for (const at of secrets.keys()) if (isShort[at]!) found.add(at)
    const long = [...found].filter((at) => !isShort[at]!)
    if (long.length > 1 && long.reduce((sum, at) => sum + secrets[at]!.value.length, 0) > maxFoundChars) break
  }
  fail('validation_error', { message: 'The body holds the values of many secrets. Leave them out.' })
}

/** Returns the indexes of the pieces that the body holds, but for those that are known; of such as overlap, one at least. */
function indexesIn(body: unknown, pieces: readonly string[], known: ReadonlySet<number>): number[] {
  const wanted = [...pieces.keys()].filter((at) => !known.has(at))
  const labels = new Set<string>()
  new Redactor(wanted.map((at) => ({ name: String(at), value: pieces[at]! }))).findLabels(body, labels)
  const same = new Set(wanted.filter((at) => labels.has(labelOf(String(at)))).map((at) => pieces[at]))
  return wanted.filter((at) => same.has(pieces[at]))
}
