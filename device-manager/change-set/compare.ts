import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { BaseRecord } from './base-store.ts'
import { renderConfig } from './carried-settings.ts'
import { ChangeSetFailure, failureOf } from './failure.ts'
import { runGit, type GitCall } from './git.ts'
import { renderIndex, type IndexEntry } from './index-file.ts'
import type { ChangeSetLimits } from './limits.ts'
import { callIn, isOwn, readEntries, pathspecOf, type View } from './listing.ts'
import { PatchReader, type PatchedFile } from './patch.ts'
import { readRegularFile } from './regular-file.ts'

const flags = (
  '--raw -p -z -M -l1000 -U3 --inter-hunk-context=0 --full-index --no-abbrev --no-color --no-relative --no-ext-diff ' +
  '--no-textconv --ignore-submodules=dirty --submodule=short --src-prefix=a/ --dst-prefix=b/'
).split(' ')

/**
 * `diff` tells files that only have new stat data from changed ones, by reading everything twice. So the plumbing command
 * is asked first, and `diff` only when that one met such a file.
 */
const commands = ['diff-files', 'diff'] as const

export interface Comparison {
  view: View
  record: BaseRecord
  entries: readonly IndexEntry[]
  /** Patches of `GIT binary patch` for every file, whatever its attributes say. */
  asBinary?: boolean
}

/** Compares the given paths of the base with the working tree, in one or two git processes. */
export async function comparePaths({ view, record, entries, asBinary = false }: Comparison): Promise<PatchedFile[]> {
  if (entries.length === 0) return []
  const indexFile = join(view.storeDir, `capture-${crypto.randomUUID()}`)
  const binaryDir = `${indexFile}.git`
  try {
    await writeFile(indexFile, renderIndex(entries, record.objectFormat))
    const place = asBinary ? await binaryPlace(view, record, binaryDir) : {}
    for (const command of commands) {
      const args = [command, ...flags, ...(asBinary ? ['--binary'] : [])]
      const files = await readFiles({ ...callIn(view, args), indexFile, ...place }, view.limits)
      if (files !== null) return files
    }
    throw new ChangeSetFailure('diff_unavailable', 'The files changed while they were compared.')
  } finally {
    await rm(indexFile, { force: true })
    if (asBinary) await rm(binaryDir, { recursive: true, force: true })
  }
}

/** A named pipe or a huge file among the tracked ones would hold the quick comparison up. */
const quickMs = 3_000

/**
 * Compares all tracked files with the working tree in the same process that finds the changed ones. null when that does
 * not come to an end, or met what must not be read; then the paths are listed first and chosen one by one.
 */
export async function compareTracked(view: View): Promise<PatchedFile[] | null> {
  const reader = new PatchReader(view.limits)
  const call = callIn(view, ['diff-files', ...flags, ...pathspecOf(view)])
  const timeoutMs = Math.min(quickMs, view.limits.gitMs)
  const outcome = await runGit({ ...call, timeoutMs, onChunk: (chunk) => reader.push(chunk) })
  const files = (outcome.ok ? reader.end() : null)?.filter(({ path }) => !isOwn(view, path))
  if (files === undefined) return null
  const paths = files.filter((file) => file.letter !== 'D').map((file) => file.path)
  for (const found of (await readEntries(view.topLevel, paths)).values()) {
    if (found.kind === 'special' || !found.isReadable || found.size > view.limits.fileBytes) return null
  }
  return files
}

async function readFiles(call: GitCall, limits: ChangeSetLimits): Promise<PatchedFile[] | null> {
  const reader = new PatchReader(limits)
  const outcome = await runGit({ ...call, onChunk: (chunk) => reader.push(chunk) })
  if (outcome.ok) return reader.end()
  if (outcome.reason !== 'too_much_output') throw failureOf(outcome, 'comparing the files')
  throw new ChangeSetFailure('too_large', `The diff is over ${limits.diffBytes} bytes.`)
}

/**
 * Makes a git folder for this one comparison, for `info/attributes` is the only place that wins over the
 * attributes files of the working tree.
 */
async function binaryPlace(
  view: View,
  record: BaseRecord,
  gitDir: string,
): Promise<Pick<GitCall, 'gitDir' | 'objectDir'>> {
  await mkdir(join(gitDir, 'info'), { recursive: true })
  await mkdir(join(gitDir, 'refs'))
  const own = readAttributes(join(view.storeDir, 'info', 'attributes'))
  await Promise.all([
    writeFile(join(gitDir, 'HEAD'), 'ref: refs/heads/none\n'),
    writeFile(join(gitDir, 'config'), renderConfig(record.settings.values, record.objectFormat, view.limits.fileBytes)),
    writeFile(join(gitDir, 'info', 'attributes'), `${own}\n* -diff\n`, 'latin1'),
  ])
  return { gitDir, objectDir: join(view.storeDir, 'objects') }
}

function readAttributes(path: string): string {
  try {
    return readRegularFile(path, { maxBytes: 1024 * 1024, followLinks: true })?.toString('latin1') ?? ''
  } catch {
    return ''
  }
}
