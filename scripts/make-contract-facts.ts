import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

/**
 * Rewrites test/fixtures/contract/ from an extract of the API's specification (a folder with routes.json, errors.json,
 * cli.json and limits.json), keeping only facts that a test can compare. Run it when the extract changes: `node
 * scripts/make-contract-facts.ts FOLDER`.
 */
const root = join(import.meta.dirname, '..')
const target = join(root, 'test/fixtures/contract')

const source = z.array(z.object({ doc: z.number() })).min(1)
const routeInput = z.object({
  id: z.string(),
  method: z.string().nullable(),
  path: z.string().nullable(),
  aliases: z.array(z.string()),
  aliasesJudged: z.array(z.string()),
  referredOnly: z.boolean(),
  success: z.number().nullable(),
  callers: z.array(z.string()),
  callersStated: z.boolean(),
  agentBehaviour: z.string().nullable(),
  idempotencyKey: z.string().nullable(),
  query: z.array(
    z.object({
      name: z.string(),
      required: z.boolean().nullable(),
      default: z.unknown(),
      constraints: z.string().nullable(),
      judged: z.boolean(),
    }),
  ),
  body: z.array(z.object({ name: z.string(), required: z.boolean().nullable(), judged: z.boolean() })),
  paging: z.string().nullable(),
  bodyLimit: z.string().nullable(),
  rateLimit: z.string().nullable(),
  errorCodes: z.array(z.string()),
  plainErrors: z.array(z.string()),
  errorEnvelope: z.string(),
  cli: z.array(z.string()),
  source,
})
const errorsInput = z.object({
  types: z.array(z.object({ type: z.string(), http: z.array(z.number()) })),
  codes: z.array(
    z.object({
      code: z.string(),
      http: z.array(z.number()),
      type: z.array(z.string().nullable()),
      occurrences: z.array(
        z.object({ scope: z.string(), http: z.array(z.number()), routes: z.array(z.string()), source }),
      ),
    }),
  ),
  plainErrors: z.array(z.object({ id: z.string(), http: z.array(z.number()), routes: z.array(z.string()), source })),
})
const commandInput = z.object({
  command: z.string(),
  args: z.array(z.string()),
  flags: z.array(z.object({ name: z.string(), required: z.boolean(), default: z.unknown() })),
  routes: z.array(z.string()),
  local: z.boolean(),
  source,
})
const limitInput = z.object({ name: z.string(), value: z.unknown(), unit: z.string().nullable(), source })

/** The answers to an agent, as far as they are statuses with codes; text that only describes is ignored. */
function agentFacts(text: string | null, codes: ReadonlySet<string>) {
  if (text === null) return null
  const named = [...new Set(text.match(/[a-z_.]+/g))].filter((word) => codes.has(word))
  const isRefused = /^403\b(?! list_deleted)/.test(text)
  return {
    // Every call of an agent ends with this code.
    refused: isRefused ? (named[0] ?? 'http_exception') : null,
    approval: /\b202\b/.test(text),
    codes: isRefused ? [] : named,
    judged: text.includes('judged') || text.includes('assumed'),
  }
}

function limitFacts(route: z.infer<typeof routeInput>) {
  const limit = route.query.find(({ name }) => name === 'limit')
  const text = `${limit?.constraints ?? ''} ${route.paging ?? ''}`
  const max = /(?:max |to )(\d+)|(\d+) max/.exec(text)
  const byDefault = typeof limit?.default === 'number' ? limit.default : Number(/(\d+) default/.exec(text)?.[1] ?? 0)
  if (limit === undefined && max === null) return null
  return { default: byDefault || null, max: max === null ? null : Number(max[1] ?? max[2]) }
}

function routeFacts(route: z.infer<typeof routeInput>, codes: ReadonlySet<string>) {
  const shown = (list: readonly { name: string; judged: boolean }[]) =>
    list.filter(({ judged }) => !judged).map(({ name }) => name)
  return {
    id: route.id,
    doc: route.source[0]!.doc,
    method: route.method,
    path: route.path,
    aliases: [...route.aliases, ...route.aliasesJudged].map((alias) => alias.replace(/^[A-Z]+ /, '')),
    referredOnly: route.referredOnly,
    success: route.success,
    callers: route.callersStated ? route.callers : null,
    agent: agentFacts(route.agentBehaviour, codes),
    idempotency: route.idempotencyKey,
    limit: limitFacts(route),
    query: shown(route.query),
    body: shown(route.body),
    bodyMiB: numberOf(route.bodyLimit, /(\d+) MiB/),
    rate: route.rateLimit === null ? null : (/\d+ (?:requests|calls) per \w+/.exec(route.rateLimit)?.[0] ?? null),
    codes: route.errorCodes,
    plain: route.plainErrors,
    envelope: route.errorEnvelope,
    commands: route.cli,
  }
}

function numberOf(text: string | null, pattern: RegExp): number | null {
  const found = text === null ? null : pattern.exec(text)
  return found === null ? null : Number(found[1])
}

function main(folder: string): void {
  const read = (name: string): unknown => JSON.parse(readFileSync(join(folder, name), 'utf8'))
  const routes = z.array(routeInput).parse(read('routes.json'))
  const errors = errorsInput.parse(read('errors.json'))
  const codes = new Set(errors.codes.map(({ code }) => code))
  const writes = errors.codes.find(({ code }) => code === 'payload_too_large')?.occurrences[0]?.routes ?? []
  const isAllWrites = (list: readonly string[]) =>
    list.length === writes.length && list.every((id) => writes.includes(id))
  const docOf = (each: { source: readonly { doc: number }[] }) => each.source[0]!.doc
  const facts = {
    routes: routes.map((route) => routeFacts(route, codes)),
    errors: {
      types: errors.types,
      codes: errors.codes.map(({ code, http, type, occurrences }) => ({
        code,
        http,
        type,
        occurrences: occurrences.map((one) => ({
          doc: docOf(one),
          scope: one.scope,
          http: one.http,
          // `writes`: each route that is not a GET; `*`: each route.
          routes: isAllWrites(one.routes) ? ['writes'] : one.routes,
        })),
      })),
      plain: errors.plainErrors.map((each) => ({
        id: each.id,
        doc: docOf(each),
        http: each.http,
        routes: each.routes,
      })),
    },
    commands: z
      .array(commandInput)
      .parse(read('cli.json'))
      .map((each) => ({
        command: each.command,
        doc: docOf(each),
        args: each.args,
        flags: each.flags.map(({ name, required }) => ({ name, required })),
        routes: each.routes,
        local: each.local,
      })),
    limits: z
      .array(limitInput)
      .parse(read('limits.json'))
      .map((each) => ({ name: each.name, doc: docOf(each), value: each.value, unit: each.unit })),
  }
  mkdirSync(target, { recursive: true })
  for (const [name, value] of Object.entries(facts)) {
    writeFileSync(join(target, `${name}.json`), JSON.stringify(value))
  }
  execFileSync(join(root, 'node_modules/.bin/oxfmt'), ['--write', target], { stdio: 'inherit' })
}

const folder = process.argv[2]
if (folder === undefined) {
  process.stderr.write('usage: node scripts/make-contract-facts.ts FOLDER\n')
  process.exitCode = 2
} else main(folder)
