import type { BaseRecord } from './base-store.ts'
import { comparePaths } from './compare.ts'
import { failureOf } from './failure.ts'
import { runGit } from './git.ts'
import type { IndexEntry } from './index-file.ts'
import { callIn, readEntry, type View } from './listing.ts'
import type { PatchedFile } from './patch.ts'

/** A binary file above this is listed without a patch: git would hold all of it in memory, and its patch is rarely small. */
const binaryFileBytes = 4 * 1024 * 1024

export interface BinaryQuestion {
  view: View
  record: BaseRecord
  entries: readonly IndexEntry[]
  files: readonly PatchedFile[]
}

/**
 * Patches that `git apply` can read for the files whose content is no UTF-8 text, by path. A second git process makes
 * them, for the first must not print binary content before the sizes on both sides are known. Text in another encoding
 * is made into a binary patch too, since JSON cannot carry its bytes.
 */
export async function binaryPatches({ view, record, entries, files }: BinaryQuestion): Promise<Map<string, Buffer>> {
  const patches = new Map<string, Buffer>()
  const wanted = files.filter((file) => (file.binary || !file.isText) && file.letter !== 'T')
  if (wanted.length === 0) return patches
  const byPath = new Map(entries.map((entry) => [entry.path, entry]))
  const small = await withinSize(view, wanted, byPath)
  const chosen = new Map<string, IndexEntry>()
  for (const file of small) {
    for (const path of [file.oldPath, file.path]) {
      const entry = byPath.get(path)
      if (entry !== undefined) chosen.set(path, entry)
    }
  }
  const again = await comparePaths({ view, record, entries: [...chosen.values()], asBinary: true })
  const asked = new Map(small.map((file) => [file.path, file]))
  for (const file of again) {
    const first = asked.get(file.path)
    const isSame = first !== undefined && first.letter === file.letter && first.oldPath === file.oldPath
    if (isSame && file.patch !== null) patches.set(file.path, file.patch)
  }
  return patches
}

async function withinSize(
  view: View,
  files: readonly PatchedFile[],
  byPath: ReadonlyMap<string, IndexEntry>,
): Promise<PatchedFile[]> {
  const oids = files.map((file) => byPath.get(file.oldPath)?.oid ?? null)
  const known = oids.filter((oid) => oid !== null)
  const sizes = new Map<string, number>()
  if (known.length > 0) {
    const call = callIn(view, ['cat-file', '--batch-check=%(objectname) %(objectsize)'])
    const outcome = await runGit({ ...call, input: Buffer.from(known.join('\n') + '\n') })
    if (!outcome.ok) throw failureOf(outcome, 'reading the sizes of files')
    for (const line of outcome.stdout.toString('latin1').split('\n')) {
      const [oid, size] = line.split(' ')
      if (oid !== undefined) sizes.set(oid, Number(size))
    }
  }
  const small: PatchedFile[] = []
  for (const [at, file] of files.entries()) {
    const oid = oids[at]
    const oldSize = oid === null || oid === undefined ? 0 : (sizes.get(oid) ?? Number.NaN)
    const found = file.letter === 'D' ? null : readEntry(view.topLevel, file.path)
    const newSize = found === null ? 0 : Number(found.size)
    if (oldSize <= binaryFileBytes && newSize <= binaryFileBytes) small.push(file)
  }
  return small
}
