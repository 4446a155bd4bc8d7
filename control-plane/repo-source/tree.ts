import type { RepoSource } from './source.ts'

// Reads what git prints of trees and objects. Pure.

export interface TreeEntry {
  /** Below the root of the source. */
  path: string
  /** `other`: a link, a submodule, or a file whose name is no text. */
  kind: 'file' | 'other'
  executable: boolean
  oid: string
  sizeBytes: number
}

/** Reads `ls-tree -r -l -z`. */
export function readTree(printed: Buffer): TreeEntry[] {
  const entries: TreeEntry[] = []
  for (let start = 0; start < printed.length;) {
    const end = printed.indexOf(0, start)
    entries.push(readEntry(printed.subarray(start, end === -1 ? printed.length : end)))
    start = end === -1 ? printed.length : end + 1
  }
  return entries
}

function readEntry(line: Buffer): TreeEntry {
  const tab = line.indexOf('\t')
  const [mode = '', type = '', oid = '', size = ''] = line.toString('latin1', 0, tab).split(/ +/)
  const name = line.subarray(tab + 1)
  const path = name.toString('utf8')
  const isFile = type === 'blob' && /^100\d{3}$/.test(mode) && Buffer.from(path, 'utf8').equals(name)
  const executable = isFile && (Number.parseInt(mode, 8) & 0o100) !== 0
  return { path, kind: isFile ? 'file' : 'other', executable, oid, sizeBytes: /^\d+$/.test(size) ? Number(size) : 0 }
}

/** Reads `cat-file --batch`: the contents in the order in which they were asked for; null when one is not there. */
export function readObjects(printed: Buffer, count: number): Buffer[] | null {
  const contents: Buffer[] = []
  let at = 0
  while (contents.length < count) {
    const end = printed.indexOf('\n', at)
    const size = /^[0-9a-f]+ blob (\d+)$/.exec(end === -1 ? '' : printed.toString('latin1', at, end))?.[1]
    if (size === undefined || end + 1 + Number(size) > printed.length) return null
    contents.push(printed.subarray(end + 1, end + 1 + Number(size)))
    at = end + 1 + Number(size) + 1
  }
  return contents
}

/** What to say of a fetch that failed, by the words of git. */
export function fetchFlaw(stderr: string, { ref }: Pick<RepoSource, 'ref'>): string {
  if (/could not read (?:Username|Password)|Authentication failed|returned error: 40[13]/.test(stderr))
    return 'The repository does not exist, or it is not public. Only public repositories are read.'
  if (/returned error: 40[0-9]|not found|not valid: is this a git repository/i.test(stderr) && !isRefMissing(stderr))
    return 'There is no git repository at this address.'
  if (isRefMissing(stderr))
    return ref === null ? 'The repository is empty.' : 'The repository has no such branch, tag or commit.'
  if (/File too large|[Oo]ut of memory|malloc failed|unable to allocate/.test(stderr) || isIndexerEnded(stderr))
    return 'The repository is too large.'
  if (/dumb http transport/.test(stderr))
    return 'The server hands out the files of the repository and is no git server (the "dumb" protocol), which svc does not read.'
  return 'The repository could not be read.'
}

/** The system has ended the program that takes a pack: at its limits, where the pack came to its end. */
const isIndexerEnded = (stderr: string): boolean =>
  /invalid index-pack output/.test(stderr) &&
  !/early EOF|hung up|disconnect|transfer closed|bytes of body/i.test(stderr)

const isRefMissing = (stderr: string): boolean =>
  /couldn't find remote ref|not our ref|no such remote ref|unadvertised object/i.test(stderr)

export const isRedirect = (stderr: string): boolean => /returned error: 30[12378]|update url base/.test(stderr)
