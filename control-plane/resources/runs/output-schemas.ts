import { createContext, runInContext } from 'node:vm'
import type { JsonSchemas } from '../../../shared/api/agent-runs.ts'
import { fail } from '../../../shared/api/errors.ts'
import type { Db } from '../../db/open.ts'
import { findDetails } from './details-store.ts'
import { findRun, type RunRow } from './store.ts'

/**
 * The JSON Schemas that a run's typed output may name (document 1, `run_output.invalid`). Whoever starts a run gives them
 * with it; a run that continues another one knows that one's too. Schemas come from callers, so whatever is done with one
 * has little time: a pattern may be made to take for ever.
 */
const checkMs = 1_000
/** Runs that continue one another, looked through for a schema. */
const maxAncestors = 50

export interface Misfit {
  /** Dotted path of the value that does not fit, from `data`. */
  path: string
  message: string
}

/** Fails with `validation_error` when one of them is not a schema. */
export async function checkSchemas(schemas: JsonSchemas): Promise<void> {
  for (const [name, schema] of Object.entries(schemas)) {
    const validate = await compilerOf(schema)
    const trouble = within(() => void validate())
    if (trouble === null) continue
    const path = `outputSchemas.${name}`
    fail('validation_error', { param: path, details: { fields: [{ path, message: trouble }] } })
  }
}

/** Why the data does not fit the schema; null when it does. */
export async function misfitOf(schema: JsonSchemas[string], data: unknown): Promise<Misfit | null> {
  const compile = await compilerOf(schema)
  let found: Misfit | null = null
  const trouble = within(() => {
    const validate = compile()
    if (validate(data)) return
    const [error] = validate.errors ?? []
    const { missingProperty, additionalProperty, unevaluatedProperty } = error?.params ?? {}
    const at = [missingProperty, additionalProperty, unevaluatedProperty].find((key) => typeof key === 'string')
    const path = `data${error?.instancePath ?? ''}${at === undefined ? '' : `/${at}`}`
    found = { path: path.replaceAll('/', '.'), message: error?.message ?? 'does not fit' }
  })
  return trouble === null ? found : { path: 'data', message: trouble }
}

/** All schemas the run's output may name; the run's own come before those of the runs it continues. */
export async function listOutputSchemas(db: Db, run: RunRow): Promise<JsonSchemas> {
  let found: JsonSchemas = {}
  let at: RunRow | null = run
  for (let count = 0; at !== null && count < maxAncestors; count++) {
    found = { ...(await findDetails(db, at.id))?.outputSchemas, ...found }
    at = at.parentRunId === null ? null : await findRun(db, at.parentRunId)
  }
  return found
}

/** Loaded when it is needed first: few runs have schemas. `$schema` is not looked up; formats are annotations. */
async function compilerOf(schema: JsonSchemas[string]) {
  const { Ajv2020 } = await import('ajv/dist/2020.js')
  const { $schema: _, ...rest } = schema
  const ajv = new Ajv2020({ strict: false, validateFormats: false, inlineRefs: false, logger: false })
  // Its own schema of schemas is compiled now, which takes longer than most of the callers' ones do.
  void ajv.validateSchema({})
  return () => {
    const validate = ajv.compile(rest)
    if ('$async' in validate) throw new Error('$async is not allowed')
    return validate
  }
}

/** Why the work failed; null when it did not. It is ended when it takes too long. */
function within(work: () => void): string | null {
  try {
    runInContext('work()', createContext({ work }), { timeout: checkMs })
    return null
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT')
      return 'The schema takes too long to check.'
    return error instanceof Error ? error.message.slice(0, 500) : 'The schema cannot be read.'
  }
}
