import { commandWords, type CommandWords } from './command-words.ts'
import { contract } from '../../shared/api/index.ts'
import { flagsOf } from '../../shared/api/flags.ts'
import type { CommandSpec, PositionalSpec } from '../../shared/api/command.ts'
import { acceptedForm, referenceAt } from '../../shared/api/accepted-form.ts'
import type { ReferenceKind } from '../../shared/api/references.ts'
import { schemaAt, shapeOf } from '../../shared/api/schema-shape.ts'
import { isSharedError } from '../../shared/api/errors.ts'
import { fieldNamesOf, replyShapeOf } from '../../shared/api/reply-shape.ts'
import { declaredCodes, type AnyRoute } from '../../shared/api/route.ts'
import type { Command } from './command.ts'
import { isNamed } from './named-things.ts'

/**
 * Derives the commands of `svc` from the contract. The result is stored as `command-table.json`, because reading the
 * contract takes longer than everything else a command does. `scripts/make-command-table.ts` writes it, and a test
 * compares it.
 */
export function commandsFromContract(): Command[] {
  return contract
    .flatMap((route) => route.commands.map((spec) => commandOf(route, spec)))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The fields of each record that commands print, by its look. */
export function fieldsFromContract(): Record<string, string[]> {
  const fields: Record<string, string[]> = {}
  for (const route of contract) {
    const shape = replyShapeOf(route)
    if (shape !== null && route.commands.length > 0) fields[shape.look] = fieldNamesOf(shape.record)
  }
  return fields
}

function commandOf(route: AnyRoute, spec: CommandSpec): Command {
  const batch = spec.batch === undefined ? null : contract.find((candidate) => candidate.id === spec.batch)
  if (batch === undefined) throw new Error(`${spec.command}: no route ${spec.batch}`)
  const shape = replyShapeOf(route)
  const shows = spec.shows ?? shape?.look
  const own = commandWords[spec.command] ?? {}
  const description = own.description === undefined ? route.description : own.description
  return {
    name: spec.command,
    summary: own.summary ?? route.summary,
    ...(description === null ? {} : { description }),
    example: spec.example,
    positionals: (spec.positionals ?? []).map((positional) => withOwnWords(positionalOf(route, positional), own)),
    flags: flagsOf(route, spec).map((flag) => withOwnWords(flag, own)),
    route: {
      id: route.id,
      method: route.method,
      path: route.base + route.path,
      takesKey: route.idempotency !== 'none',
      errors: [...ownErrors(route), ...route.plainErrors],
      callers: callersInWords(route),
    },
    ...(shows === undefined ? {} : { shows }),
    ...(shape?.list == null ? {} : { list: shape.list }),
    ...(spec.print === undefined ? {} : { print: spec.print }),
    ...(spec.asks === undefined ? {} : { asks: spec.asks }),
    ...(batch === null ? {} : { batchPath: batch.base + batch.path }),
  }
}

function withOwnWords<Named extends { name: string; perPage?: number }>(
  named: Named,
  { words = {} }: CommandWords,
): Named {
  // The API has pages; svc fetches as many as it takes.
  const ofRows = named.perPage === undefined ? undefined : `So many rows; more than ${named.perPage} come page by page.`
  const description = words[named.name] ?? ofRows
  return description === undefined ? named : { ...named, description }
}

/** The route's declared codes first, then those for callers that the route refuses. */
function ownErrors(route: AnyRoute): string[] {
  const refusals = [...declaredCodes(route)].filter((code) => !isSharedError(code))
  return [...new Set([...route.errors, ...refusals])]
}

function positionalOf(route: AnyRoute, spec: PositionalSpec): PositionalSpec {
  if (spec.target === null) return { ...spec }
  const schema = schemaOf(route, spec.target)
  if (schema === null) throw new Error(`${route.id}: no ${spec.target} for a positional`)
  const { kind, takes } = { kind: undefined, takes: acceptedForm(schema), ...referenceAt(schema) }
  // What a reference is, and its forms, are told in one way; of all else the schema says what it is.
  const told =
    spec.description ??
    (kind === undefined ? shapeOf(schema).description : null) ??
    `${article(kind ?? spec.name)}: ${formsOf(kind, takes)}.`
  return { ...spec, description: told, ...(kind === undefined ? {} : { refers: kind }) }
}

/** `svc` also takes the names of things that the server knows by their ids alone. */
const formsOf = (kind: ReferenceKind | undefined, takes: string) =>
  kind !== undefined && isNamed(kind) ? `its name, or ${takes}` : takes

const article = (noun: string) => `${/^[aeio]/.test(noun) ? 'An' : 'A'} ${noun.replaceAll('-', ' ')}`

/** The forms that each flag and positional accepts, by command and spelling. */
export function formsFromContract(): Record<string, Record<string, string>> {
  const forms: Record<string, Record<string, string>> = {}
  for (const route of contract) {
    for (const spec of route.commands) {
      const told: Record<string, string> = {}
      const positionals = (spec.positionals ?? []).map(({ name, target, description }) => ({
        spelling: `<${name}>`,
        target,
        own: description,
      }))
      const flags = flagsOf(route, spec).map(({ name, target }) => ({ spelling: `--${name}`, target, own: undefined }))
      for (const { spelling, target, own } of [...positionals, ...flags]) {
        const schema = target === null ? null : schemaOf(route, target)
        // A flow may take another form than the route that it calls.
        if (own !== undefined) told[spelling] = `${own.charAt(0).toLowerCase()}${own.slice(1)}`.replace(/\.$/, '')
        else if (schema !== null) told[spelling] = formsOf(referenceAt(schema)?.kind, acceptedForm(schema))
      }
      forms[spec.command] = told
    }
  }
  return forms
}

function schemaOf(route: AnyRoute, target: string) {
  const [part, ...path] = target.split('.') as ['params' | 'query' | 'body', ...string[]]
  return schemaAt(route[part], path)
}

function callersInWords(route: AnyRoute): string {
  if (route.callers === 'none') return 'anyone, without a token'
  const { person, agent } = route.callers
  const people = typeof person === 'string' ? (person === 'member' ? 'people' : `people (${person} or above)`) : null
  const agents = agent === 'allowed' ? 'agents' : agent === 'platform_change' ? 'agents, after approval' : null
  return [people, agents].filter((text) => text !== null).join('; ')
}
