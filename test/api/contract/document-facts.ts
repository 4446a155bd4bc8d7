import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

// Holds what the three documents say, as `scripts/make-contract-facts.ts` took it down.

/** The documents whose routes, codes and commands are built; the tests of the documents walk these. */
export const builtDocuments: readonly number[] = [1, 2]

const methods = z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
const routeFact = z.object({
  id: z.string(),
  doc: z.number(),
  /** null: the documents only refer to it. */
  method: methods.nullable(),
  path: z.string().nullable(),
  aliases: z.array(z.string()),
  success: z.number().nullable(),
  /** null: no rule is written. */
  callers: z.array(z.string()).nullable(),
  agent: z
    .object({ refused: z.string().nullable(), approval: z.boolean(), codes: z.array(z.string()), judged: z.boolean() })
    .nullable(),
  idempotency: z.literal('required').nullable(),
  limit: z.object({ default: z.number().nullable(), max: z.number().nullable() }).nullable(),
  query: z.array(z.string()),
  body: z.array(z.string()),
  bodyMiB: z.number().nullable(),
  codes: z.array(z.string()),
  plain: z.array(z.string()),
})
export type RouteFact = z.infer<typeof routeFact>

const occurrence = z.object({
  doc: z.number(),
  scope: z.string(),
  http: z.array(z.number()),
  /** Ids of routes, `*` or `writes`. */
  routes: z.array(z.string()),
})
const errorFacts = z.object({
  types: z.array(z.object({ type: z.string(), http: z.array(z.number()) })),
  codes: z.array(
    z.object({
      code: z.string(),
      http: z.array(z.number()),
      type: z.array(z.string().nullable()),
      occurrences: z.array(occurrence),
    }),
  ),
  plain: z.array(z.object({ id: z.string(), doc: z.number(), http: z.array(z.number()), routes: z.array(z.string()) })),
})

const commandFact = z.object({
  command: z.string(),
  doc: z.number(),
  args: z.array(z.string()),
  flags: z.array(z.object({ name: z.string(), required: z.boolean() })),
  routes: z.array(z.string()),
  local: z.boolean(),
})

function read<T extends z.ZodType>(name: string, schema: T): z.output<T> {
  const path = join(import.meta.dirname, '../../fixtures/contract', `${name}.json`)
  return schema.parse(JSON.parse(readFileSync(path, 'utf8')))
}

/** Of the third document, the workflows, the connections, the files, the wiki, the learnings, and the skills. */
const isBuilt = (fact: { doc: number }) =>
  builtDocuments.includes(fact.doc) ||
  (fact.doc === 3 &&
    /"((workflows|files|learnings|wiki|connections)\.|connection |learning |skills\.|skill )/.test(
      JSON.stringify(fact),
    ))

export const routeFacts = read('routes', z.array(routeFact)).filter(isBuilt)
export const commandFacts = read('commands', z.array(commandFact)).filter(isBuilt)

const allErrors = read('errors', errorFacts)
export const typeFacts = allErrors.types
/** One entry for each code and each scope in which a built document names it. */
export const codeFacts = allErrors.codes.flatMap(({ code, occurrences }) =>
  occurrences.filter(isBuilt).map((one) => ({ code, ...one })),
)
export const plainFacts = allErrors.plain.filter(isBuilt)
