import { dirname, posix } from 'node:path'
import type { World } from '../lib/world.ts'
import type { ToolPermissions } from '../runs/spec.ts'
import type { PathInput } from './call-inputs.ts'
import { readRule } from './rule.ts'
import { absolutePattern, type JudgedPlace, type PathFact } from './patterns/path-rules.ts'

/** The file system as far as links are told from other things: all that the judge sees of a machine. Fails with the system's codes. */
export interface LinkReader {
  readlink(path: string): Promise<string>
  isFolder(path: string): Promise<boolean>
}

/** A mount that does not answer must not hold the judge, nor take all of the threads that wait for file systems. */
const limits = { lookUpMs: 2_000, hanging: 2, links: 40, chars: 32_768, parts: 4_096 } as const

/**
 * Says what the system would open for a path: links are followed part by part, to the deepest part that exists, and the
 * target of a link that leads nowhere counts too, since writing makes it. A link that is swapped after this and before
 * the tool opens it is not seen; no check from outside can see it.
 *
 * Each look-up has an end: one that hangs is left behind with a doubt, and when two hang nothing more is looked up.
 */
export class PathLookup {
  readonly #world: World
  readonly #links: LinkReader
  #hanging = 0

  constructor(world: World, links: LinkReader) {
    this.#world = world
    this.#links = links
  }

  /** Look-ups that have not come back although they were given up. */
  get hanging(): number {
    return this.#hanging
  }

  /** `cwds`: the folders against which the tool may resolve a path that is not absolute. */
  async pathsOf(
    inputs: readonly PathInput[],
    place: Pick<JudgedPlace, 'homeDir'> & { cwds: readonly string[] },
  ): Promise<PathFact[]> {
    const known = await this.#within(() => oneByOne(inputs, (input) => this.#factOf(input, place)))
    return known ?? inputs.map(({ text }) => ({ ...unknown(text), doubt: 'the file system did not answer' }))
  }

  /** Resolves what a run's rules name, before anything of the run can make a link. It never fails. */
  async placeOf({ permissions, ...facts }: PlaceFacts): Promise<JudgedPlace> {
    const written = { ...facts, realCwd: facts.cwd, realPatterns: new Map<string, string>() }
    return (await this.#within(() => this.#placeOf(written, permissions))) ?? written
  }

  async #placeOf(written: JudgedPlace, permissions: ToolPermissions): Promise<JudgedPlace> {
    const real = async (path: string) => (await this.#walk(path).catch(() => null))?.path ?? path
    const folders = new Map<string, Promise<string>>()
    const realOnce = (path: string) => folders.get(path) ?? folders.set(path, real(path)).get(path)!
    const realPatterns = new Map<string, string>()
    for (const pattern of pathPatterns(permissions)) {
      const absolute = absolutePattern(pattern, written)
      if (!absolute.startsWith('/')) continue
      const star = absolute.indexOf('*')
      const folder = star < 0 ? absolute : absolute.slice(0, absolute.lastIndexOf('/', star))
      realPatterns.set(absolute, posix.join((await realOnce(folder)) + absolute.slice(folder.length)))
    }
    const own = await oneByOne(written.ownFolders, realOnce)
    const { skillFolders = [] } = written
    return {
      ...written,
      realCwd: await realOnce(written.cwd),
      realPatterns,
      ownFolders: [...new Set([...written.ownFolders, ...own])],
      skillFolders: [...new Set([...skillFolders, ...(await oneByOne(skillFolders, realOnce))])],
    }
  }

  /** Resolves with what the look-up found; null: it did not come back in time, or would wait behind others that do not. */
  async #within<Value>(look: () => Promise<Value>): Promise<Value | null> {
    if (this.#hanging >= limits.hanging) return null
    const looking = look()
    const late = Promise.withResolvers<null>()
    let isLate = false
    const cancel = this.#world.after(limits.lookUpMs, () => {
      isLate = true
      this.#hanging++
      late.resolve(null)
    })
    const cameBack = () => {
      cancel()
      if (isLate) this.#hanging--
    }
    looking.then(cameBack, cameBack)
    return Promise.race([looking, late.promise])
  }

  async #factOf(
    { text, rest }: PathInput,
    { homeDir, cwds }: { homeDir: string; cwds: readonly string[] },
  ): Promise<PathFact> {
    if (text.length > limits.chars) return { ...unknown(text), doubt: 'the path is too long' }
    if (text.includes('\0')) return { ...unknown(text), doubt: 'the path holds a zero byte' }
    const forms = new Set<string>()
    let isFolder = rest !== ''
    try {
      for (const spelling of spellings(text, homeDir)) {
        for (const raw of spelling.startsWith('/') ? [spelling] : cwds.map((cwd) => `${cwd}/${spelling}`)) {
          // A tool may tidy `..` away before it opens a path, or leave it to the system, for which it leads up from where a link leads.
          const tidy = withoutEnd(posix.normalize(raw))
          const found = await oneByOne(tidy === raw ? [tidy] : [tidy, raw], (path) => this.#walk(path))
          isFolder ||= found.some((one) => one.isFolder)
          for (const path of [tidy, ...found.map((one) => one.path)]) forms.add(path)
        }
      }
    } catch (error) {
      return { text, forms: [...forms], rest, isFolder, doubt: doubtOf(error) }
    }
    const all = [...forms].flatMap((form) => [form, ...otherNames(form)])
    return { text, forms: all, rest, isFolder, doubt: null }
  }

  /** Fails with a Doubt, or with the file system's error when a part of the path may not be looked at. */
  async #walk(path: string): Promise<{ path: string; isFolder: boolean }> {
    const left = path.split('/').reverse()
    let at = '/'
    let links = 0
    let exists = true
    while (left.length > 0) {
      const part = left.pop()!
      if (left.length > limits.parts) throw new Doubt('the path has too many parts')
      if (part === '' || part === '.') continue
      if (part === '..') {
        at = dirname(at)
        continue
      }
      const next = at === '/' ? `/${part}` : `${at}/${part}`
      if (isElsewhere(next)) throw new Doubt('the path leads through the files of a process or of the system')
      const target = await this.#target(next)
      if (typeof target !== 'string') {
        exists = target.exists
        at = next
        continue
      }
      if (++links > limits.links) throw new Doubt('the path leads through too many links')
      if (target.startsWith('/')) at = '/'
      left.push(...target.split('/').reverse())
    }
    return { path: at, isFolder: exists && (await this.#links.isFolder(at).catch(() => false)) }
  }

  /** Returns where the link leads, or whether there is something that is no link. */
  async #target(path: string): Promise<string | { exists: boolean }> {
    try {
      return await this.#links.readlink(path)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EINVAL' || code === 'UNKNOWN') return { exists: true }
      if (code === 'ENOENT' || code === 'ENOTDIR') return { exists: false }
      throw error
    }
  }
}

export interface PlaceFacts {
  cwd: string
  homeDir: string
  permissions: ToolPermissions
  ownFolders: readonly string[]
  skillFolders?: readonly string[]
  svcProgram: string | null
  svcSkill?: string
}

/** Looks up one after another, never two at once: each that hangs holds a thread. */
async function oneByOne<Item, Value>(items: readonly Item[], each: (item: Item) => Promise<Value>): Promise<Value[]> {
  const values: Value[] = []
  for (const item of items) values.push(await each(item))
  return values
}

class Doubt extends Error {}
const doubtOf = (error: unknown): string =>
  error instanceof Doubt
    ? error.message
    : `the path cannot be looked at (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`
const unknown = (text: string): Omit<PathFact, 'doubt'> => ({
  text,
  forms: [],
  rest: '',
  isFolder: false,
})

/** Tools take blanks away at the ends, know `~`, or compose accents; nobody knows which of them do. */
function spellings(text: string, homeDir: string): string[] {
  const plain = [...new Set([text, text.trim(), text.trim().normalize('NFC')])]
  return plain.flatMap((one) => (one === '~' || one.startsWith('~/') ? [`${homeDir}${one.slice(1)}`] : [one]))
}

const withoutEnd = (path: string): string => (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path)

/**
 * Places where the same name is another file for another process (Linux: what a process has open, its root, its folder),
 * or a file has names that no link tells of (macOS: by its number, and the parts of a file).
 */
function isElsewhere(path: string): boolean {
  return (
    /^\/proc\/(?:self|thread-self|\d+)\/(?:task\/\d+\/)?(?:root|cwd|exe|fd|map_files)(?:\/|$)/i.test(path) ||
    /^\/dev\/fd(?:\/|$)/i.test(path) ||
    /^\/\.(?:vol|nofollow|resolve)(?:\/|$)/i.test(path) ||
    /\/\.\.namedfork(?:\/|$)/i.test(path)
  )
}

/** macOS shows the volume of the person's files in a second place, without a link. */
function otherNames(path: string): string[] {
  const volume = '/System/Volumes/Data/'
  return path.startsWith(volume) ? [path.slice(volume.length - 1)] : []
}

function pathPatterns({ allow, ask, deny }: ToolPermissions): string[] {
  const patterns = [...allow, ...ask, ...deny].flatMap((rule) => {
    const { pattern } = readRule(rule)
    return pattern === null || pattern.includes(':*') || pattern.includes('\0') ? [] : [pattern]
  })
  return [...new Set(patterns)]
}
