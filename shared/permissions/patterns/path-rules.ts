import { posix } from 'node:path'
import { folded } from './folded.ts'
import { glob, globReaches } from './glob.ts'

/** The folders by which paths and patterns are judged, as they are before the harness starts. */
export interface JudgedPlace {
  cwd: string
  homeDir: string
  /** `cwd` with every symlink resolved. */
  realCwd: string
  /** A pattern's absolute spelling -> the same with the folder that it begins with as it really was at the start. */
  realPatterns: ReadonlyMap<string, string>
  /** Folders of svc's own, in every spelling: no file tool reads or writes them. */
  ownFolders: readonly string[]
  /** The folder, of these, with the run's copies of skills, in every spelling: it is the run's. */
  skillFolders?: readonly string[]
  /** The run's own `svc`, which is first on its PATH; null: it has none. */
  svcProgram: string | null
  /** The name by which the harness loads the run's own skill `svc`; left out: the run has none. */
  svcSkill?: string
}

/** A path of a call, in all of its spellings: as given and as the system would open it (path-lookup.ts). */
export interface PathFact {
  text: string
  forms: readonly string[]
  /** A pattern of file names below the path. */
  rest: string
  isFolder: boolean
  /** The reason for which it cannot be said what the system would open; null when it can. */
  doubt: string | null
}

/**
 * `forbid`: the pattern matches one of the spellings, or a folder that holds what it names, in whatever case. `allow`:
 * every spelling matches.
 */
export function matchesPath(pattern: string, path: PathFact, place: JudgedPlace, mode: 'forbid' | 'allow'): boolean {
  const written = absolutePattern(pattern, place)
  const patterns = [...new Set([written, ...realPatternsOf(written, place, mode)])]
  if (mode === 'allow') {
    const named = path.forms.map((form) => (path.rest === '' ? form : posix.join(form, path.rest)))
    return named.length > 0 && named.every((form) => patterns.some((one) => glob(one, form)))
  }
  return path.forms.some((form) => patterns.some((one) => forbids(folded(one), folded(form), path.isFolder)))
}

function forbids(pattern: string, form: string, isFolder: boolean): boolean {
  if (glob(pattern, form)) return true
  // A rule about a folder is about what is in it, and one about what is in it about the folder.
  if (!pattern.includes('*') && isWithin(form, pattern)) return true
  if (/\/\*+$/.test(pattern) && glob(pattern.replace(/\/\*+$/, ''), form)) return true
  return isFolder && globReaches(pattern, form.endsWith('/') ? form : `${form}/`)
}

/**
 * A folder that was reached by a link when the run began is meant by a rule in both spellings. A list that allows does not
 * follow links inside of the working folder: a repository or an agent makes those.
 */
function realPatternsOf(written: string, place: JudgedPlace, mode: 'forbid' | 'allow'): string[] {
  const ofFolder = [place.cwd, place.realCwd]
    .filter((folder) => isWithin(written, folder))
    .map((folder) => place.realCwd + written.slice(folder.length))
  if (mode === 'allow' && ofFolder.length > 0) return ofFolder
  const real = place.realPatterns.get(written)
  return real === undefined ? ofFolder : [...ofFolder, real]
}

/** A pattern as an absolute path; one that begins with a star may begin anywhere. */
export function absolutePattern(pattern: string, { cwd, homeDir }: Pick<JudgedPlace, 'cwd' | 'homeDir'>): string {
  if (pattern === '~' || pattern.startsWith('~/')) return posix.join(homeDir, pattern.slice(1))
  if (pattern.startsWith('//')) return posix.normalize(pattern.slice(1))
  if (pattern.startsWith('*')) return pattern
  return posix.resolve(cwd, pattern)
}

/** The own folder that the path reaches; null: none. The working folder is the run's, wherever it lies. */
export function ownFolderOf(
  path: PathFact,
  { ownFolders, skillFolders = [], cwd, realCwd }: JudgedPlace,
  { isSearch }: { isSearch: boolean },
): string | null {
  const isRuns = (form: string, own: string) =>
    [cwd, realCwd, ...skillFolders].some(
      (folder) => isWithin(folded(folder), folded(own)) && isWithin(form, folded(folder)),
    )
  for (const own of ownFolders) {
    const reaches = path.forms.map(folded).some((form) => {
      if (isWithin(form, folded(own))) return !isRuns(form, own)
      return isSearch && path.isFolder && isWithin(folded(own), form)
    })
    if (reaches) return own
  }
  return null
}

export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
}
