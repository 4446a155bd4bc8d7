import type { BaseRecord } from './base-store.ts'
import { ChangeSetFailure } from './failure.ts'
import { pathsUnderFilters, readEntry, readEntries, watch, type DirtyEntry, type Found, type View } from './listing.ts'
import type { IndexEntry } from './index-file.ts'
import { resolveNested } from './nested.ts'
import { withoutOlder } from './unignored.ts'

/** A change told without its content: the file is too large, goes through a filter, may not be read, or is no file any more. */
export interface UnreadChange {
  path: string
  status: 'added' | 'modified' | 'deleted' | 'type_changed'
  oldMode: string | null
  newMode: string | null
}

export interface Candidates {
  entries: IndexEntry[]
  unread: UnreadChange[]
}

export interface Listed {
  dirty: DirtyEntry[]
  untracked: string[]
  /** Paths the repository tracks by now and did not at the base: a file may be committed although it is ignored. */
  newlyTracked: DirtyEntry[]
  /** The paths of all that the base holds and that is not as it was. */
  changed: readonly string[]
}

/** Chooses which of the listed paths git shall compare, and which are told by their stat data alone. */
export async function chooseCandidates(view: View, record: BaseRecord, listed: Listed): Promise<Candidates> {
  const watchedPaths = new Set(record.watched.map((file) => file.path))
  const nested = await resolveNested(view, listed.untracked)
  const submodules = listed.newlyTracked.filter((entry) => entry.mode === '160000').map((entry) => entry.path)
  const fresh = new Set<string>()
  for (const path of await withoutOlder({ view, record }, listed)) fresh.add(path)
  for (const entry of listed.newlyTracked) if (entry.mode !== '160000') fresh.add(entry.path)
  for (const path of watchedPaths) fresh.delete(path)
  if (fresh.size > view.limits.files) {
    throw new ChangeSetFailure('too_large', `More than ${view.limits.files} files are new.`)
  }
  const changed = listed.dirty.filter((entry) => entry.letter !== 'D')
  const looked = await readEntries(view.topLevel, [...changed.map((entry) => entry.path), ...fresh])
  const filtered = await pathsUnderFilters(view, record.settings.filters, [...looked.keys()])
  const chosen: Candidates = { entries: [], unread: await watchedChanges(view, record) }
  for (const path of new Set([...nested, ...submodules])) {
    if (readEntry(view.topLevel, path).kind === 'folder') chosen.entries.push({ path, mode: '160000', oid: null })
  }
  for (const entry of listed.dirty) {
    const found = looked.get(entry.path)
    const change = found === undefined ? null : unreadChange(view, entry, found, filtered.has(entry.path))
    if (change === null) chosen.entries.push({ path: entry.path, mode: entry.mode, oid: entry.oid })
    else chosen.unread.push(change)
  }
  for (const path of fresh)
    addFresh(chosen, { view, record, path, found: looked.get(path)!, isFiltered: filtered.has(path) })
  return chosen
}

function unreadChange(view: View, entry: DirtyEntry, found: Found, isFiltered: boolean): UnreadChange | null {
  const { path, mode } = entry
  if (found.kind === 'special') return { path, status: 'type_changed', oldMode: mode, newMode: null }
  if (found.kind !== 'file' || mode === '160000') return null
  if (!isFiltered && found.isReadable && found.size <= view.limits.fileBytes) return null
  return { path, status: 'modified', oldMode: mode, newMode: watch(path, found).mode }
}

function addFresh(
  chosen: Candidates,
  file: { view: View; record: BaseRecord; path: string; found: Found; isFiltered: boolean },
): void {
  const { path, found } = file
  if (found.kind !== 'file' && found.kind !== 'symlink') return
  const mode =
    file.record.settings.values['core.filemode'] === 'false' && found.kind === 'file'
      ? '100644'
      : watch(path, found).mode
  if (found.kind === 'file' && (file.isFiltered || !found.isReadable || found.size > file.view.limits.fileBytes)) {
    chosen.unread.push({ path, status: 'added', oldMode: null, newMode: mode })
  } else chosen.entries.push({ path, mode, oid: null })
}

async function watchedChanges(view: View, record: BaseRecord): Promise<UnreadChange[]> {
  const looked = await readEntries(
    view.topLevel,
    record.watched.map((file) => file.path),
  )
  const changes: UnreadChange[] = []
  for (const file of record.watched) {
    const found = looked.get(file.path)!
    const now = watch(file.path, found)
    if (found.kind === 'missing')
      changes.push({ path: file.path, status: 'deleted', oldMode: file.mode, newMode: null })
    else if (
      now.size !== file.size ||
      now.mtimeNs !== file.mtimeNs ||
      now.inode !== file.inode ||
      now.mode !== file.mode
    ) {
      changes.push({ path: file.path, status: 'modified', oldMode: file.mode, newMode: now.mode })
    }
  }
  return changes
}
