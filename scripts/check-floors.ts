import { dirname, join } from 'node:path/posix'
import { importsOf } from './imports-of.ts'

/** A folder whose files do one thing together. */
export interface Floor {
  /** A folder without the folders in it, or one file; `*` stands for any one name, `**` at the end for all below. */
  room: string
  /** What happens there. */
  does: string
}

/**
 * What breaks the order of floors, which are listed from the ground up: a file imports values from its own room and from
 * those before it in the list, every file lies in a room, every room has a file, and no files import each other in a circle.
 * Types may come from anywhere: nothing of them is left at run time. `files`: path -> text, of one part of the project.
 */
export function floorProblems(files: ReadonlyMap<string, string>, floors: readonly Floor[]): string[] {
  const problems: string[] = []
  const used = new Set<number>()
  const graph = new Map<string, string[]>()
  const part = floors[0]?.room.split('/')[0]
  for (const [file, text] of files) {
    if (file.endsWith('.test.ts')) continue
    const floor = floorOf(file, floors)
    if (floor < 0) problems.push(`${file}: lies in no room`)
    else used.add(floor)
    const targets = valuesOf(file, text).filter((target) => target.split('/')[0] === part)
    graph.set(file, targets)
    for (const target of targets) {
      const below = floorOf(target, floors)
      if (floor >= 0 && below > floor)
        problems.push(`${file}: imports ${target}, but ${floors[below]!.room} is above ${floors[floor]!.room}`)
      if (below < 0 && !files.has(target)) problems.push(`${file}: imports ${target}, which lies in no room`)
    }
  }
  for (const [at, { room }] of floors.entries()) if (!used.has(at)) problems.push(`${room}: a room without files`)
  return [...problems, ...circlesIn(graph).map((circle) => `${circle.join(' -> ')}: a circle of imports`)]
}

function valuesOf(file: string, text: string): string[] {
  return importsOf(text)
    .filter(({ specifier, typeOnly }) => specifier.startsWith('.') && !typeOnly)
    .map(({ specifier }) => join(dirname(file), specifier))
}

/** The floor of the room that names the file most closely; -1: there is none. */
function floorOf(file: string, floors: readonly Floor[]): number {
  let found = -1
  for (const [at, { room }] of floors.entries()) {
    if (isIn(file, room) && (found < 0 || room.length > floors[found]!.room.length)) found = at
  }
  return found
}

function isIn(file: string, room: string): boolean {
  const names = room.split('/')
  const isDeep = names.at(-1) === '**'
  if (isDeep) names.pop()
  const own = file.split('/')
  if (!names.every((name, at) => name === '*' || name === own[at])) return false
  return isDeep ? own.length > names.length : own.length === names.length || own.length === names.length + 1
}

/** One way around each circle that is found. */
function circlesIn(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const circles: string[][] = []
  const done = new Set<string>()
  const way: string[] = []
  const visit = (file: string): void => {
    const at = way.indexOf(file)
    if (at >= 0) return void circles.push([...way.slice(at), file])
    if (done.has(file)) return
    way.push(file)
    for (const next of graph.get(file) ?? []) visit(next)
    way.pop()
    done.add(file)
  }
  for (const file of graph.keys()) visit(file)
  return circles
}
