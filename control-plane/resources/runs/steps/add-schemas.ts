import type { RunId } from '../../../../shared/lib/ids.ts'
import { jsonSchemas, type JsonSchemas } from '../../../../shared/api/agent-runs.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { Db } from '../../../db/open.ts'
import { findDetails, replaceOutputSchemas } from '../details-store.ts'

/**
 * A wake that folded into a run that waits adds to what that run knows. The limits of one wake hold for all of them
 * together: any number of wakes may fold into one run, and each reads and writes the schemas of all.
 * Fails with `validation_error`, which undoes the wake.
 */
export async function addOutputSchemas(db: Db, runId: RunId, schemas: JsonSchemas): Promise<void> {
  const known = (await findDetails(db, runId))?.outputSchemas ?? {}
  if (Object.keys(schemas).every((name) => Object.hasOwn(known, name))) return
  const together = jsonSchemas.safeParse({ ...schemas, ...known })
  if (together.success) return replaceOutputSchemas(db, runId, together.data)
  const excess = together.error.issues[0]?.message ?? 'too much'
  const message = `This wake folds into ${runId}, which waits with schemas of its own; together there may be ${excess}.`
  fail('validation_error', {
    message,
    param: 'outputSchemas',
    details: { fields: [{ path: 'outputSchemas', message: excess }] },
  })
}
