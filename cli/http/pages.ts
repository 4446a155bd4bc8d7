import type { Command } from '../arguments/command.ts'
import type { CommandFlag } from '../../shared/api/command.ts'
import { contractCommands } from '../arguments/commands.ts'
import { CliError, usageError } from '../errors/cli-error.ts'
import { fieldAt, listAt, textAt } from '../replies/fields.ts'
import type { ApiCall } from '../calls/api-call.ts'
import type { Client } from '../calls/client.ts'

// Reads the pages of a list one after the other. Lists differ in the query key that takes `nextCursor`; the contract's
// commands say which one a list has.

type CursorKey = 'after' | 'cursor' | 'startingAfter' | 'endingBefore'

/** `rows`: how many are read in all, and on one page; default: as the call says, to the end. */
export async function* pagesOf(client: Client, call: ApiCall, rows?: RowLimits): AsyncGenerator {
  let at = call
  let read = 0
  const key = cursorKeyOf(call)
  const seen = new Set<string>()
  for (;;) {
    const { body } = await client.call(rows === undefined ? at : withLimit(at, rows, read))
    yield body
    read += listAt(body, 'data').length
    const next = textAt(body, 'nextCursor')
    if (next === null || fieldAt(body, 'hasMore') === false || read >= (rows?.most ?? Infinity)) return
    // A list that returns to an earlier page would never end.
    if (seen.has(next)) throw neverEnds(call)
    seen.add(next)
    at = withCursor(call, key, next)
  }
}

export interface RowLimits {
  most: number
  perPage: number
}

const withLimit = (call: ApiCall, { most, perPage }: RowLimits, read: number): ApiCall => ({
  ...call,
  query: { ...call.query, limit: Math.min(perPage, most - read) },
})

export async function* rowsOf(client: Client, call: ApiCall): AsyncGenerator {
  for await (const page of pagesOf(client, call)) yield* listAt(page, 'data')
}

/** Pages that are read upwards come last one first. */
export const isUpwards = (call: ApiCall): boolean => cursorKeyOf(call) === 'endingBefore'

/** The query key for the next page's cursor, in the caller's direction of reading. */
function cursorKeyOf(call: ApiCall): CursorKey {
  const { pathname, given } = partsOf(call)
  const keys = new Set(flagsAt(pathname).map((flag) => flag.target))
  if (!keys.has('query.startingAfter')) return given.has('cursor') && !given.has('after') ? 'cursor' : 'after'
  if (given.has('around')) throw usageError('--paginate reads on from a page, and `around` gives one page alone.')
  return given.has('endingBefore') ? 'endingBefore' : 'startingAfter'
}

/** The same call with this cursor instead of its own. */
function withCursor(call: ApiCall, key: CursorKey, cursor: string): ApiCall {
  const { pathname, search } = partsOf(call)
  search.delete(key)
  const rest = search.size === 0 ? '' : `?${search.toString()}`
  return { ...call, path: pathname + rest, query: { ...call.query, [key]: cursor } }
}

function partsOf({ path, query }: ApiCall) {
  const [pathname = '', ...more] = path.split('?')
  const search = new URLSearchParams(more.join('?'))
  return { pathname, search, given: new Set([...search.keys(), ...Object.keys(query ?? {})]) }
}

/**
 * The flags of the route with the fewest parameters: `/automations/runs` comes before `/automations/{automationId}`.
 */
function flagsAt(pathname: string): readonly CommandFlag[] {
  const parameters = ({ route }: Command) => route!.path.split('{').length
  return (
    contractCommands()
      .filter(({ route }) => route?.method === 'GET' && fits(route.path, pathname))
      .sort((a, b) => parameters(a) - parameters(b))[0]?.flags ?? []
  )
}

function fits(template: string, pathname: string): boolean {
  const wanted = template.split('/')
  const words = pathname.replace(/\/$/, '').split('/')
  return wanted.length === words.length && wanted.every((word, at) => word.startsWith('{') || word === words[at])
}

const neverEnds = ({ path }: ApiCall) =>
  new CliError('list_never_ends', `The pages of ${path} come back to one that was read before.`)
