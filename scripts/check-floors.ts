import { dirname, normalize } from 'node:path'

/** A floor of a part: its rooms from the ground up, each with one line about it. */
export interface Floor {
  floor: string
  /** Folder or file within the part, and one line about it. A file belongs to the longest name that fits. */
  rooms: Readonly<Record<string, string>>
}

export interface Import {
  /** Path from the project's root. */
  target: string
  typeOnly: boolean
  /** Names that are imported; empty for a whole module. */
  names: readonly string[]
}

/** By file, without tests: its imports of other files of the project. */
export type ImportGraph = ReadonlyMap<string, readonly Import[]>

/** Store functions whose names begin like this read rows. Any other value of a store, such as its table, may write. */
const reads = /^(?:find|list|count|is|has|repoOf)[A-Z]/

/**
 * Returns what is wrong with the imports of a part: a file in no room, a value import that points up, a circle of
 * values, a circle of types within a floor, a handler that writes by the store of another resource.
 */
export function checkFloors(part: string, floors: readonly Floor[], graph: ImportGraph): string[] {
  const places = placesOf(part, floors)
  const files = [...graph.keys()].filter((file) => file.startsWith(`${part}/`))
  const problems: string[] = []
  for (const file of files) {
    const from = placeOf(file, places)
    if (from === null) {
      problems.push(`${file}: stands in no room; give it one in the floors of ${part}`)
      continue
    }
    for (const { target, typeOnly, names } of graph.get(file) ?? []) {
      const to = placeOf(target, places)
      if (to === null) continue
      if (!typeOnly && to.rank > from.rank)
        problems.push(`${file}: imports ${target}: ${to.room} stands above ${from.room}`)
      if (typeOnly || !isHandler(from.room) || !isStoreOfAnother(file, target)) continue
      const written = names.length === 0 ? ['all'] : names.filter((name) => !reads.test(name))
      if (written.length > 0)
        problems.push(`${file}: imports ${written.join(', ')} of ${target}: handlers write to others by their steps`)
    }
  }
  for (const [path, { room }] of places)
    if (!files.some((file) => placeOf(file, places)?.room === room)) problems.push(`${path}: a room without files`)
  const values = (file: string) => (graph.get(file) ?? []).filter(({ typeOnly }) => !typeOnly)
  for (const circle of circles(files, (file) => values(file).map(({ target }) => target)))
    problems.push(`${circle.join(' -> ')}: a circle of values`)
  if (problems.length > 0) return problems
  const sameFloor = (file: string, target: string) => placeOf(file, places)?.floor === placeOf(target, places)?.floor
  const types = (file: string) =>
    (graph.get(file) ?? []).map(({ target }) => target).filter((target) => sameFloor(file, target))
  for (const circle of circles(files, types)) problems.push(`${circle.join(' -> ')}: a circle of types within a floor`)
  return problems
}

/** Returns the imports of types that point up, for a part in which none may. */
export function checkUpwardTypes(part: string, floors: readonly Floor[], graph: ImportGraph): string[] {
  const places = placesOf(part, floors)
  return [...graph].flatMap(([file, imports]) =>
    imports.flatMap(({ target, typeOnly }) => {
      const [from, to] = [placeOf(file, places), placeOf(target, places)]
      if (!typeOnly || from === null || to === null || to.rank <= from.rank) return []
      return [`${file}: imports a type of ${target}: ${to.room} stands above ${from.room}`]
    }),
  )
}

interface Place {
  room: string
  rank: number
  floor: string
}

function placesOf(part: string, floors: readonly Floor[]): Map<string, Place> {
  const places = new Map<string, Place>()
  for (const { floor, rooms } of floors)
    for (const room of Object.keys(rooms)) places.set(`${part}/${room}`, { room, rank: places.size, floor })
  return places
}

function placeOf(file: string, places: ReadonlyMap<string, Place>): Place | null {
  for (let path = file; path !== '.'; path = dirname(path)) {
    const place = places.get(path)
    if (place !== undefined) return place
  }
  return null
}

const isHandler = (room: string): boolean => room.endsWith('/handlers')

/** Whether a handler's file imports the store of another resource. */
function isStoreOfAnother(file: string, target: string): boolean {
  const own = dirname(dirname(file))
  return /\/resources\/[^/]+\/(?:[a-z-]+-)?store\.ts$/.test(target) && dirname(target) !== own
}

/** Finds circles of files, each as one way around. */
function circles(files: readonly string[], next: (file: string) => readonly string[]): string[][] {
  const done = new Set<string>()
  const found: string[][] = []
  for (const start of files) {
    const way: string[] = []
    visit(start, way)
  }
  return found

  function visit(file: string, way: string[]): void {
    const at = way.indexOf(file)
    if (at !== -1) return void found.push([...way.slice(at), file])
    if (done.has(file)) return
    way.push(file)
    for (const target of new Set(next(file))) visit(target, way)
    way.pop()
    done.add(file)
  }
}

const statement = /^\s*(?:import|export)\s+(type\s+)?([^'"]*?\sfrom\s+)?['"]([^'"]+)['"]/gm
const dynamic = /(\btypeof\s+)?\bimport\(\s*['"]([^'"]+)['"]\s*\)/g

/** The imports in a file's text: specifiers of packages as they are, and paths from the project's root. */
export function importsOf(file: string, text: string): (Import & { specifier: string })[] {
  const resolve = (specifier: string) => (specifier.startsWith('.') ? normalize(`${dirname(file)}/${specifier}`) : '')
  const found: (Import & { specifier: string })[] = []
  for (const [, type, clause = '', specifier = ''] of text.matchAll(statement)) {
    const parts = /\{([^}]*)\}/.exec(clause)?.[1]?.split(',') ?? []
    const named = parts.map((part) => part.trim()).filter((part) => part !== '')
    const isTypes = type !== undefined || (named.length > 0 && named.every((name) => name.startsWith('type ')))
    const names = named.filter((name) => !name.startsWith('type ')).map((name) => name.split(' as ')[0]!.trim())
    found.push({ specifier, target: resolve(specifier), typeOnly: isTypes, names })
  }
  for (const [, type, specifier = ''] of text.matchAll(dynamic))
    found.push({ specifier, target: resolve(specifier), typeOnly: type !== undefined, names: [] })
  return found
}
