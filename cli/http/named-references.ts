import { didYouMean } from '../arguments/nearest.ts'
import type { NamedValue } from '../arguments/named-things.ts'
import { place, type Values } from '../arguments/values.ts'
import type { Command } from '../arguments/command.ts'
import type { Client } from '../calls/client.ts'
import { CliError } from '../errors/cli-error.ts'
import { plainText } from '../output/terminal-text.ts'
import { fieldAt, listAt, textAt } from '../replies/fields.ts'

/** Where things of a kind are listed, and which fields of a row tell them. */
interface Listing {
  path: string
  key: string
  /** The list can be asked for those with a text in their name. Otherwise it is whole. */
  isSearched: boolean
  /** The list comes in pages, of which the first is read. */
  isPaged?: boolean
  id: string
  /** What a caller may call it. */
  names: readonly string[]
  /** Tells two of the same name apart. */
  toldBy: readonly string[]
}

const listings: Readonly<Record<string, Listing>> = {
  automation: {
    path: '/api/v1/automations',
    key: 'data',
    isSearched: true,
    id: 'id',
    names: ['name'],
    toldBy: ['status', 'createdAt'],
  },
  device: {
    path: '/api/v1/devices',
    key: 'devices',
    isSearched: false,
    id: 'deviceId',
    names: ['displayName', 'publicId'],
    toldBy: ['hostname', 'platform', 'createdAt'],
  },
  file: {
    path: '/api/v1/files',
    key: 'data',
    isSearched: true,
    id: 'id',
    names: ['name'],
    toldBy: ['contentType', 'createdAt'],
  },
  secret: {
    path: '/api/v1/secrets',
    key: 'data',
    isSearched: false,
    isPaged: true,
    id: 'id',
    names: ['name'],
    toldBy: ['envVarName', 'createdAt'],
  },
}

const perPage = 100
/** The longest text that a list can be asked for. */
const longestSearch = 100

/**
 * Puts ids in the place of names, by one request for each. Fails where no thing has the name, and where it cannot be told which is meant: of
 * what is changed or deleted nothing is guessed.
 */
export async function resolveNames(command: Command, values: Values, named: readonly NamedValue[], client: Client) {
  for (const one of named) place(values, one.target, await idOf(command, one, client))
}

async function idOf(command: Command, named: NamedValue, client: Client): Promise<string> {
  const listing = listings[named.kind]!
  // What is restored is deleted, and stands in a list of its own.
  const deleted = named.kind === 'file' && command.name.endsWith(' restore') ? { status: 'deleted' } : {}
  const page = await read(client, listing, { ...searchFor(listing, named.name), ...deleted })
  const found = page.rows.filter((row) => listing.names.some((key) => textAt(row, key) === named.name))
  const [only] = found
  if (only !== undefined && found.length === 1 && !page.hasMore) return textAt(only, listing.id) ?? ''
  if (found.length > 0) throw ambiguous(named, listing, { found, hasMore: page.hasMore })
  // Whoever mistyped a name wants one that is near, which the search cannot find.
  const near = listing.isSearched && page.rows.length === 0 ? await read(client, listing, deleted) : page
  throw unknown(named, listing, near.rows)
}

/** A text must not end in half a character. */
const searchFor = ({ isSearched }: Listing, name: string) =>
  isSearched ? { q: name.slice(0, longestSearch).replace(/[\uD800-\uDBFF]$/, '') } : {}

async function read(
  client: Client,
  { path, key, isSearched, isPaged = isSearched }: Listing,
  query: Record<string, string>,
) {
  const limit = isPaged ? { limit: perPage } : {}
  const { body } = await client.call({ method: 'GET', path, query: { ...query, ...limit } })
  return { rows: listAt(body, key), hasMore: fieldAt(body, 'hasMore') === true }
}

function ambiguous(
  { kind, name, spelling }: NamedValue,
  listing: Listing,
  { found, hasMore }: { found: readonly unknown[]; hasMore: boolean },
): CliError {
  const candidates = found.slice(0, 20).map((row) => ({
    id: textAt(row, listing.id) ?? '',
    told: listing.toldBy.map((key) => textAt(row, key)).filter((text) => text !== null),
  }))
  const why =
    found.length > 1
      ? `Several ${kind}s are called \`${shown(name)}\``
      : `More than ${perPage} ${kind}s have \`${shown(name)}\` in their names, so another may be called so`
  return new CliError(
    'ambiguous_name',
    `${spelling}: ${why}${hasMore && found.length > 1 ? ', perhaps more than these' : ''}.`,
    {
      remediation: [
        'Give the id:',
        ...candidates.map(({ id, told }) => `  ${id}  ${told.map(plainText).join(', ')}`),
      ].join('\n'),
      details: { candidates },
    },
  )
}

function unknown({ kind, name, spelling }: NamedValue, { names, path }: Listing, rows: readonly unknown[]): CliError {
  const known = rows.map((row) => textAt(row, names[0]!)).filter((text) => text !== null)
  const advice = didYouMean(name, known.map(plainText))
  const list = path.slice(path.lastIndexOf('/') + 1, -1)
  return new CliError('unknown_name', `${spelling}: no ${kind} that you can see is called \`${shown(name)}\`.`, {
    remediation: [advice, `See \`svc ${list} list\`. An id is taken, too.`].filter((line) => line !== '').join('\n'),
  })
}

const shown = (name: string) => (name.length <= 60 ? name : `${name.slice(0, 60)}…`)
