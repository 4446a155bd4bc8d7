import type { ThingKind } from '../../shared/api/looks/look.ts'
import { toProjectRef } from '../../shared/lib/project-ref.ts'
import type { Caller } from '../calls/client.ts'
import type { NameThings } from '../output/things.ts'
import { listAt, textAt } from '../replies/fields.ts'
import { quickRead } from './quick-read.ts'

// What people call the things that a reply names by their ids. A table is worth having without names, so they come soon or not at all.

interface Source {
  path: string
  /** The list is asked for the ids and has a slot for each. Otherwise it is whole, and its rows say their ids. */
  isBatch?: boolean
  key?: string
  name: string
  /** The ids by which replies may name the thing of a row. */
  idsOf?: (row: unknown) => readonly (string | null)[]
}

const by =
  (...keys: readonly string[]) =>
  (row: unknown) =>
    keys.map((key) => textAt(row, key))

const sources: Readonly<Record<ThingKind, Source>> = {
  agent: { path: 'agents', isBatch: true, name: 'handle' },
  task: { path: 'tasks', isBatch: true, name: 'key' },
  person: { path: 'members', name: 'name', idsOf: by('userId') },
  device: { path: 'devices', key: 'devices', name: 'displayName', idsOf: by('deviceId', 'publicId') },
  folder: { path: 'folders', key: 'sources', name: 'displayName', idsOf: by('shortId') },
  repo: { path: 'repos', name: 'name', idsOf: by('id') },
  // Tasks name a project by another form of its id.
  project: { path: 'projects?limit=100', name: 'name', idsOf: (row) => idsOfProject(textAt(row, 'id')) },
}

const idsOfProject = (uuid: string | null) => (uuid === null ? [] : [uuid, toProjectRef(uuid)])

const mostAtOnce = 100
const limits = { withinMs: 2_000, maxBytes: 8 * 1024 * 1024 }

/** Makes one request at most for each kind of thing. */
export async function thingNames(caller: Caller, wanted: Parameters<NameThings>[0]): Promise<Map<string, string>> {
  const asked = [...wanted].filter(([, ids]) => ids.size > 0)
  const found = await Promise.all(asked.map(([kind, ids]) => namesOf(caller, sources[kind], [...ids])))
  return new Map(found.flat())
}

async function namesOf(caller: Caller, source: Source, ids: readonly string[]): Promise<(readonly [string, string])[]> {
  const { path, isBatch = false, key = 'data', name, idsOf } = source
  const some = ids.slice(0, mostAtOnce)
  const query = isBatch ? `?ids=${some.map(encodeURIComponent).join(',')}` : ''
  const rows = listAt(await quickRead(caller, `/api/v1/${path}${query}`, limits), key)
  return rows.flatMap((row, at) => {
    const called = textAt(row, name)
    if (called === null || called === '') return []
    const ofRow = idsOf === undefined ? [some[at] ?? null] : idsOf(row)
    return ofRow.flatMap((id) => (id === null ? [] : [[id, called] as const]))
  })
}
