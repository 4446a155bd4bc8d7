import type { Db } from '../db/open.ts'
import { listTableSizes, measureDatabase } from '../db/table-sizes.ts'
import { countUsage, listSlugs, type KindUsage, type WorkspaceUsage } from './usage-store.ts'

// What takes room, for the operator.

interface Room {
  kind: string
  /** null: the database took too long to count. */
  rows: number | null
  databaseBytes: number
  /** In the folder or the bucket of files. */
  filesBytes: number
  /** ms UTC; null: it is not known, or there is none. */
  oldestAt: number | null
}

interface WorkspaceRoom extends Room {
  rows: number
  /** `databaseBytes` is the share of what all rows of the kind take. */
  isEstimated: boolean
}

export interface Usage {
  /** The database with all that is free in it. */
  databaseBytes: number
  kinds: readonly Room[]
  workspaces: readonly { workspaceId: string; workspace: string; kinds: readonly WorkspaceRoom[] }[]
}

/** Says what takes room, the most first. `workspace`: the slug of the only one that is shown by itself; null: all are. */
export async function readUsage(db: Db, { workspace }: { workspace: string | null }): Promise<Usage> {
  const [databaseBytes, sizes] = [await measureDatabase(db), await listTableSizes(db)]
  const [counted, slugs] = [await countUsage(db), await listSlugs(db)]
  const bytesOf = new Map<string, number>()
  const kindOfTable = new Map(counted.flatMap(({ kind, tables }) => tables.map((table) => [table, kind])))
  for (const { table, bytes } of sizes) {
    const kind = kindOfTable.get(table) ?? (table.startsWith('search_') ? 'search' : 'other')
    bytesOf.set(kind, (bytesOf.get(kind) ?? 0) + bytes)
  }
  const kinds = counted.map((each) => roomOf(each, bytesOf.get(each.kind) ?? 0))
  kinds.push({ kind: 'other', rows: null, databaseBytes: bytesOf.get('other') ?? 0, filesBytes: 0, oldestAt: null })
  const shown = [...slugs].filter(([, slug]) => workspace === null || slug === workspace)
  const workspaces = shown.map(([workspaceId, slug]) => ({
    workspaceId,
    workspace: slug,
    kinds: mostFirst(counted.flatMap((each) => roomIn(workspaceId, each, bytesOf.get(each.kind) ?? 0))),
  }))
  const total = ({ kinds: of }: { kinds: readonly Room[] }) => of.reduce((sum, room) => sum + roomTaken(room), 0)
  return { databaseBytes, kinds: mostFirst(kinds), workspaces: workspaces.toSorted((a, b) => total(b) - total(a)) }
}

function roomOf({ kind, workspaces }: KindUsage, databaseBytes: number): Room {
  if (workspaces === null) return { kind, rows: null, databaseBytes, filesBytes: 0, oldestAt: null }
  const times = workspaces.flatMap(({ oldestAt }) => (oldestAt === null ? [] : [oldestAt]))
  return {
    kind,
    rows: sumOf(workspaces, 'rows'),
    databaseBytes,
    filesBytes: sumOf(workspaces, 'outsideBytes'),
    oldestAt: times.length === 0 ? null : times.reduce((a, b) => Math.min(a, b)),
  }
}

/** The room of a kind in one workspace; none where it has no row. */
function roomIn(workspaceId: string, { kind, workspaces }: KindUsage, allBytes: number): WorkspaceRoom[] {
  const own = workspaces?.find((each) => each.workspaceId === workspaceId)
  if (own === undefined || own.rows === 0) return []
  const share = own.rows / sumOf(workspaces!, 'rows')
  const { rows, oldestAt, outsideBytes: filesBytes, bytes } = own
  return [
    {
      kind,
      rows,
      databaseBytes: bytes ?? Math.round(allBytes * share),
      filesBytes,
      oldestAt,
      isEstimated: bytes === null,
    },
  ]
}

const sumOf = (workspaces: readonly WorkspaceUsage[], field: 'rows' | 'outsideBytes') =>
  workspaces.reduce((sum, each) => sum + each[field], 0)

const roomTaken = ({ databaseBytes, filesBytes }: Room): number => databaseBytes + filesBytes
const mostFirst = <Of extends Room>(rooms: readonly Of[]): Of[] => rooms.toSorted((a, b) => roomTaken(b) - roomTaken(a))

/** The same as tables for people. */
export function usageTable({ databaseBytes, kinds, workspaces }: Usage): string {
  const all = table(kinds.map((room) => cellsOf(room)))
  const each = workspaces
    .filter(({ kinds: of }) => of.length > 0)
    .map(({ workspace, kinds: of }) => `${workspace}\n${table(of.map((room) => cellsOf(room, room.isEstimated)))}`)
  return [`The database takes ${sizeText(databaseBytes)}.`, all, ...each].join('\n\n')
}

const heads = ['KIND', 'ROWS', 'DATABASE', 'FILES', 'OLDEST']

function cellsOf({ kind, rows, databaseBytes, filesBytes, oldestAt }: Room, isEstimated = false): string[] {
  return [
    kind,
    rows === null ? '-' : String(rows),
    `${isEstimated ? 'about ' : ''}${sizeText(databaseBytes)}`,
    filesBytes === 0 ? '-' : sizeText(filesBytes),
    oldestAt === null ? '-' : new Date(oldestAt).toISOString().slice(0, 10),
  ]
}

function table(rows: readonly (readonly string[])[]): string {
  const all = [heads, ...rows]
  const widths = heads.map((_, at) => Math.max(...all.map((row) => row[at]!.length)))
  return all.map((row) => `  ${row.map((cell, at) => cell.padEnd(widths[at]!)).join('  ')}`.trimEnd()).join('\n')
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

function sizeText(bytes: number): string {
  let [value, unit] = [bytes, 0]
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1]
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}
