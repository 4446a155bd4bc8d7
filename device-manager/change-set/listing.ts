import { accessSync, constants, lstatSync, realpathSync } from 'node:fs'
import { relative } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type { WatchedFile } from './base-store.ts'
import { failureOf } from './failure.ts'
import { runGit, type GitCall } from './git.ts'
import type { ChangeSetLimits } from './limits.ts'

/** A private git folder over the working tree it looks at; see base-store.ts. */
export interface View {
  storeDir: string
  topLevel: string
  prefix: string
  indexFile: string
  limits: ChangeSetLimits
  /** svc's own folders below the top level, with a slash at their ends. */
  own: readonly string[]
}

/** A tracked path whose working file is not known to be what the index holds. Paths are latin1 text of their bytes. */
export interface DirtyEntry {
  path: string
  mode: string
  oid: string
  /** Letter of git's raw format: M, D, T, U or A. */
  letter: string
}

export function callIn(view: View, args: readonly string[]): GitCall {
  const { storeDir, topLevel, indexFile, limits } = view
  return {
    args,
    cwd: topLevel,
    gitDir: storeDir,
    workTree: topLevel,
    indexFile,
    timeoutMs: limits.gitMs,
    maxBytes: limits.listingBytes,
  }
}

export function pathspecOf(view: View): string[] {
  return view.prefix === '' ? [] : ['--', view.prefix]
}

/** Tracked files that differ from the index, by stat data. Submodules count by their commit, nothing is run in them. */
export async function listDirty(view: View): Promise<DirtyEntry[]> {
  const args = [
    'diff-files',
    '--raw',
    '-z',
    '--no-renames',
    '--no-abbrev',
    '--ignore-submodules=dirty',
    ...pathspecOf(view),
  ]
  const outcome = await runGit(callIn(view, args))
  if (!outcome.ok) throw failureOf(outcome, 'listing the changed files')
  return parseRaw(outcome.stdout).filter(({ path }) => !isOwn(view, path))
}

/** Files that are neither tracked nor ignored. A nested repository is listed with a slash at its end. */
export async function listUntracked(view: View): Promise<string[]> {
  const outcome = await runGit(callIn(view, ['ls-files', '-o', '-z', '--exclude-standard', ...pathspecOf(view)]))
  if (!outcome.ok) throw failureOf(outcome, 'listing the new files')
  return fields(outcome.stdout).filter((path) => !isOwn(view, path))
}

/**
 * Where a person's home is a repository, svc's own folders lie in it, with logins and keys. Returns them relative to the top
 * level, with a slash at their ends.
 */
export function ownFoldersIn(topLevel: string, folders: readonly string[]): string[] {
  const below = folders.map((folder) => relative(topLevel, realOr(folder)))
  const inside = below.filter((path) => path !== '' && path !== '..' && !path.startsWith('../'))
  return [...new Set(inside)].map((path) => `${Buffer.from(path).toString('latin1')}/`)
}

/** One that is not there yet may be made later. */
export function realOr(folder: string): string {
  try {
    return realpathSync.native(folder)
  } catch {
    return folder
  }
}

export const isOwn = ({ own }: View, path: string): boolean => own.some((folder) => path.startsWith(folder))

/**
 * Lists what the index holds that the tree does not: paths that are new to it and, unless only those are asked for, other
 * content of the same path. Reversed, so that mode and id are those of the index.
 */
export async function listStaged(view: View, tree: string, only: 'new' | 'all'): Promise<DirtyEntry[]> {
  const filter = only === 'new' ? 'D' : 'DMT'
  const args = [
    'diff-index',
    '--cached',
    '--raw',
    '-z',
    '-R',
    '--no-renames',
    '--no-abbrev',
    `--diff-filter=${filter}`,
    tree,
  ]
  const outcome = await runGit(callIn(view, [...args, ...pathspecOf(view)]))
  if (!outcome.ok) throw failureOf(outcome, 'listing the staged files')
  return parseRaw(outcome.stdout).filter(({ path }) => !isOwn(view, path))
}

function fields(bytes: Buffer): string[] {
  const parts = bytes.toString('latin1').split('\0')
  parts.pop()
  return parts
}

/** Entries of `--raw -z --no-renames`: `:<old mode> <new mode> <old id> <new id> <letter>` NUL path NUL. */
function parseRaw(bytes: Buffer): DirtyEntry[] {
  const parts = fields(bytes)
  const entries: DirtyEntry[] = []
  const seen = new Set<string>()
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [mode = '', , oid = '', , letter = ''] = parts[at]!.slice(1).split(' ')
    const path = parts[at + 1]!
    // An unmerged path comes once per stage and once more as modified.
    if (seen.has(path)) continue
    seen.add(path)
    entries.push({ path, mode, oid, letter: letter.charAt(0) })
  }
  return entries
}

type FoundKind = 'file' | 'symlink' | 'folder' | 'special' | 'missing'
export interface Found {
  kind: FoundKind
  size: bigint
  mtimeNs: bigint
  /** Set by whatever makes, writes, moves or links it, by the clock of its file system. */
  ctimeNs: bigint
  inode: bigint
  isExecutable: boolean
  isReadable: boolean
}

const missing: Found = {
  kind: 'missing',
  size: 0n,
  mtimeNs: 0n,
  ctimeNs: 0n,
  inode: 0n,
  isExecutable: false,
  isReadable: false,
}

/** The path on disk, without following a symlink. What cannot be looked at is missing. */
export function readEntry(topLevel: string, path: string): Found {
  const whole = Buffer.concat([Buffer.from(`${topLevel}/`), Buffer.from(path, 'latin1')])
  const found = lstatOrNull(whole)
  if (found === null) return missing
  const kind = found.isFile() ? 'file' : found.isSymbolicLink() ? 'symlink' : found.isDirectory() ? 'folder' : 'special'
  return {
    kind,
    size: found.size,
    mtimeNs: found.mtimeNs,
    ctimeNs: found.ctimeNs,
    inode: found.ino,
    isExecutable: (found.mode & 0o100n) !== 0n,
    isReadable: kind !== 'file' || (found.mode & 0o444n) === 0o444n || mayRead(whole),
  }
}

function lstatOrNull(path: Buffer) {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false }) ?? null
  } catch {
    return null
  }
}

function mayRead(path: Buffer): boolean {
  try {
    accessSync(path, constants.R_OK)
    return true
  } catch {
    return false
  }
}

/** Paths looked at before others get a turn. */
const batchSize = 128

/** git has just looked at them: a call costs microseconds, a turn of the thread pool for each ten times that. */
export async function readEntries(topLevel: string, paths: readonly string[]): Promise<Map<string, Found>> {
  const all = new Map<string, Found>()
  for (const [index, path] of paths.entries()) {
    if (index % batchSize === batchSize - 1) await turn()
    all.set(path, readEntry(topLevel, path))
  }
  return all
}

/** Returns the stat data by which a change of the file is told without reading it. */
export function watch(path: string, found: Found): WatchedFile {
  const mode = found.kind === 'symlink' ? '120000' : found.isExecutable ? '100755' : '100644'
  return { path, size: String(found.size), mtimeNs: String(found.mtimeNs), inode: String(found.inode), mode }
}

/**
 * The paths whose content goes through one of the configured filter drivers (Git LFS, git-crypt, ...). A filter is a
 * program and is never run, so the working file and the stored one cannot be compared: such a file is told as changed by
 * its size and time, and its content (which a filter may be there to hide) is not shown.
 */
export async function pathsUnderFilters(
  view: View,
  filters: readonly string[],
  paths: readonly string[],
): Promise<Set<string>> {
  const filtered = new Set<string>()
  if (filters.length === 0 || paths.length === 0) return filtered
  const input = Buffer.from(paths.join('\0') + '\0', 'latin1')
  const outcome = await runGit({ ...callIn(view, ['check-attr', '-z', '--stdin', 'filter']), input })
  if (!outcome.ok) throw failureOf(outcome, 'reading the attributes')
  const fields = outcome.stdout.toString('latin1').split('\0')
  for (let at = 0; at + 2 < fields.length; at += 3) {
    if (filters.includes(fields[at + 2]!)) filtered.add(fields[at]!)
  }
  return filtered
}
