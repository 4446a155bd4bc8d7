import { contract } from '../../shared/api/index.ts'
import { flagsOf } from '../../shared/api/flags.ts'
import type { CommandSpec, PositionalSpec } from '../../shared/api/command.ts'
import { schemaAt, shapeOf } from '../../shared/api/schema-shape.ts'
import { isSharedError } from '../../shared/api/errors.ts'
import { fieldNamesOf, replyShapeOf } from '../../shared/api/reply-shape.ts'
import { declaredCodes, type AnyRoute } from '../../shared/api/route.ts'
import type { Command } from './command.ts'

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
  return {
    name: spec.command,
    summary: route.summary,
    ...(route.description === null ? {} : { description: route.description }),
    example: spec.example,
    positionals: (spec.positionals ?? []).map((positional) => positionalOf(route, positional)),
    flags: flagsOf(route, spec),
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

/** The route's declared codes first, then those for callers that the route refuses. */
function ownErrors(route: AnyRoute): string[] {
  const refusals = [...declaredCodes(route)].filter((code) => !isSharedError(code))
  return [...new Set([...route.errors, ...refusals])]
}

function positionalOf(route: AnyRoute, spec: PositionalSpec): PositionalSpec {
  if (spec.target === null) return { ...spec }
  const [part, ...path] = spec.target.split('.') as ['params' | 'query' | 'body', ...string[]]
  const schema = schemaAt(route[part], path)
  if (schema === null) throw new Error(`${route.id}: no ${spec.target} for a positional`)
  const { description } = shapeOf(schema)
  const { example } = schema.meta() ?? {}
  const told = description ?? spec.description ?? (typeof example === 'string' ? `Its id, such as ${example}.` : null)
  return { ...spec, ...(told === null ? {} : { description: told }) }
}

function callersInWords(route: AnyRoute): string {
  if (route.callers === 'none') return 'anyone, without a token'
  const { person, agent } = route.callers
  const people = typeof person === 'string' ? (person === 'member' ? 'people' : `people (${person} or above)`) : null
  const agents = agent === 'allowed' ? 'agents' : agent === 'platform_change' ? 'agents, after approval (202)' : null
  return [people, agents].filter((text) => text !== null).join('; ')
}
