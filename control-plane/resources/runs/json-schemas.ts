import { Ajv2020 } from 'ajv/dist/2020.js'
import type { JsonSchemas } from '../../../shared/api/agent-runs.ts'

// JSON Schemas (draft 2020-12) as callers write them. A pattern can be made to take for ever, so this runs in a worker only
// (`control-plane/costly`). `$schema` is not looked up; formats are annotations.

export interface Misfit {
  /** Dotted path of the value that does not fit, from `data`. */
  path: string
  message: string
}

/** The first of the schemas that cannot be used; null when all can. Takes `JsonSchemas` as JSON. */
export function findSchemaFlaw(text: string): { name: string; message: string } | null {
  for (const [name, schema] of Object.entries(JSON.parse(text) as JsonSchemas)) {
    const compiled = compile(schema)
    if (typeof compiled === 'string') return { name, message: compiled }
  }
  return null
}

/** Returns why the data does not fit the schema; null: it does. Takes `{ schema, data }` as JSON. */
export function findMisfit(text: string): Misfit | null {
  const { schema, data } = JSON.parse(text) as { schema: JsonSchemas[string]; data: unknown }
  const validate = compile(schema)
  if (typeof validate === 'string') return { path: 'data', message: validate }
  try {
    if (validate(data)) return null
  } catch (error) {
    return { path: 'data', message: messageOf(error) }
  }
  const [error] = validate.errors ?? []
  const { missingProperty, additionalProperty, unevaluatedProperty } = error?.params ?? {}
  const at = [missingProperty, additionalProperty, unevaluatedProperty].find((key) => typeof key === 'string')
  const path = `data${error?.instancePath ?? ''}${at === undefined ? '' : `/${at}`}`
  return { path: path.replaceAll('/', '.').slice(0, 1_000), message: (error?.message ?? 'does not fit').slice(0, 500) }
}

/** A check, or why there is none. */
function compile(schema: JsonSchemas[string]) {
  const { $schema: _, ...rest } = schema
  try {
    const validate = new Ajv2020({ strict: false, validateFormats: false, inlineRefs: false, logger: false }).compile(
      rest,
    )
    return '$async' in validate ? '$async is not allowed' : validate
  } catch (error) {
    return messageOf(error)
  }
}

const messageOf = (error: unknown) =>
  error instanceof Error ? error.message.slice(0, 500) : 'The schema cannot be read.'
