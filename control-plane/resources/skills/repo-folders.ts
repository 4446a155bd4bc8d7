import { skillFile, skillLimits } from '../../../shared/api/skill-fields.ts'
import type { TreeEntry } from '../../repo-source/tree.ts'

// Finds where skills lie in a repository, and what belongs to them. Pure.

/** The folders whose own folders are searched, beside the root. */
export const searchedFolders = ['skills', '.agents/skills', '.claude/skills'] as const

/** The number of folders of one repository that are looked into. */
export const mostFolders = 500

/** The most that one install takes in all. */
export const installLimits = { skills: 50, files: 1_000, totalBytes: 64 * 1024 * 1024 } as const

/**
 * The folders with a SKILL.md, that of the root first; the root is ''. `isSubdir`: the root is a folder that the caller chose, so its
 * own folders are searched, too.
 */
export function skillFoldersOf(entries: readonly TreeEntry[], { isSubdir }: { isSubdir: boolean }): string[] {
  const parents: readonly string[] = isSubdir ? ['', ...searchedFolders] : searchedFolders
  const folders = entries.flatMap(({ path, kind }) => {
    if (kind !== 'file') return []
    if (path === skillFile) return ['']
    if (!path.endsWith(`/${skillFile}`)) return []
    const folder = path.slice(0, -skillFile.length - 1)
    const end = folder.lastIndexOf('/')
    return parents.includes(end === -1 ? '' : folder.slice(0, end)) ? [folder] : []
  })
  return folders.toSorted((a, b) => (a < b ? -1 : 1))
}

/**
 * The files of each skill by its folder, with paths below that. The root's are all but those of the folders where other skills lie. Each
 * entry is looked at once: a stranger decides how many there are, and how many folders.
 */
export function filesByFolder(
  entries: readonly TreeEntry[],
  folders: readonly string[],
): ReadonlyMap<string, readonly TreeEntry[]> {
  const found = new Map<string, TreeEntry[]>(folders.map((folder) => [folder, []]))
  const others = new Set<string>([...searchedFolders, ...folders])
  for (const entry of entries) {
    const above = foldersAbove(entry.path)
    for (const folder of above) found.get(folder)?.push({ ...entry, path: entry.path.slice(folder.length + 1) })
    if (!above.some((folder) => others.has(folder))) found.get('')?.push(entry)
  }
  return found
}

/** `a` and `a/b` for `a/b/c`. */
function foldersAbove(path: string): string[] {
  const folders: string[] = []
  for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1)) folders.push(path.slice(0, end))
  return folders
}

/** Returns why these files are no bundle, found before they are read; null: they may be one. */
export function filesFlaw(files: readonly TreeEntry[]): string | null {
  const odd = files.find(({ kind }) => kind !== 'file')
  if (odd !== undefined)
    return `${shownPath(odd.path)} is a link or a submodule, or has a name that is not UTF-8: a skill has files only.`
  if (files.length > skillLimits.files) return `It has ${files.length} files; a skill has at most ${skillLimits.files}.`
  if (bytesOf(files) > skillLimits.totalBytes) return `It has more than ${skillLimits.totalBytes} bytes.`
  return null
}

const shownPath = (path: string): string => JSON.stringify(path.slice(0, 100))

export const bytesOf = (files: readonly Pick<TreeEntry, 'sizeBytes'>[]): number =>
  files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)

const pointer = Buffer.from('version https://git-lfs.github.com/spec/')

/** Returns whether a file only says where Git LFS keeps the real one. */
export const isLfsPointer = (content: Uint8Array): boolean => pointer.equals(content.subarray(0, pointer.length))
