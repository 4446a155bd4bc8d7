import { usageError } from '../errors/cli-error.ts'
import type { Output } from './output.ts'
import { rowsIn, type Shape } from './shape.ts'

/** What of the JSON is printed. */
export interface Form {
  /** null: all of them. */
  fields: readonly string[] | null
  /** What `--jq` makes of it. */
  expression: string | null
}

/** The same output, which prints its JSON in the form. */
export async function withForm(out: Output, { fields, expression }: Form): Promise<Output> {
  const filter = expression === null ? null : await (await import('./jq.ts')).jqFilter(expression)
  const print = async (value: unknown) => {
    if (filter === null) return out.result(value)
    const text = filter(value)
    if (text !== '') out.exact(text)
  }
  return {
    ...out,
    async result(value, shape) {
      if (value !== undefined) await print(fields === null ? value : pickedFrom(value, fields, shape))
    },
    async pages(pages, shape) {
      if (fields === null && filter === null) return out.pages(pages, shape)
      const rows: unknown[] = []
      for await (const page of pages) for (const row of rowsIn(page, shape) ?? []) rows.push(row)
      await print(fields === null ? { [shape?.list ?? 'data']: rows } : rows.map((row) => picked(row, fields)))
    },
    jsonLine(value) {
      const shown = fields === null ? value : picked(value, fields)
      if (filter === null) out.jsonLine(shown)
      else {
        const text = filter(shown)
        if (text !== '') out.exact(text)
      }
    },
  }
}

/** Of a list the rows alone. A change that waits for approval is no such record. */
function pickedFrom(value: unknown, fields: readonly string[], shape: Shape | undefined): unknown {
  if ((value as { object?: unknown } | null)?.object === 'platform_change') return value
  const rows = rowsIn(value, shape)
  return rows === null ? picked(value, fields) : rows.map((row) => (row === null ? null : picked(row, fields)))
}

/** A field that is known and not there is null. */
function picked(record: unknown, fields: readonly string[]): Record<string, unknown> {
  const has = (name: string) => typeof record === 'object' && record !== null && Object.hasOwn(record, name)
  return Object.fromEntries(fields.map((name) => [name, has(name) ? (record as Record<string, unknown>)[name] : null]))
}

/**
 * The fields of `--json`, or null for all of them. Fails when the record of the command has none of that name. `adviceOn` says what such a
 * field is called here, or ''.
 */
export async function fieldsOf(
  given: unknown,
  { name, shows }: { name: string; shows?: string | undefined },
  adviceOn: (field: string, known: readonly string[]) => Promise<string>,
): Promise<readonly string[] | null> {
  if (typeof given !== 'string' || given === '') return null
  const fields = given
    .split(',')
    .map((field) => field.trim())
    .filter((field) => field !== '')
  const { default: all } = await import('../arguments/command-fields.json', { with: { type: 'json' } })
  const known = shows === undefined ? undefined : (all as Readonly<Record<string, readonly string[]>>)[shows]
  const unknown = known === undefined ? undefined : fields.find((field) => !known.includes(field))
  if (unknown !== undefined)
    throw usageError(
      `\`svc ${name}\` has no field \`${unknown}\`.`,
      `${await adviceOn(unknown, known!)}Its fields are:\n${known!.map((each) => `  ${each}`).join('\n')}`,
    )
  return fields
}
