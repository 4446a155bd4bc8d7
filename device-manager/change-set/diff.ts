import type { RunId } from '../../shared/lib/ids.ts'
import { realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ChangedFile, ChangeSet, ChangeSetResult } from '../../shared/device/change-set.ts'
import type { World } from '../../shared/lib/world.ts'
import {
  demandObjects,
  indexMarkOf,
  linkIndex,
  olderStore,
  readBaseRecord,
  refNameOf,
  stateDirOf,
  writeConfig,
  type BaseRecord,
} from './base-store.ts'
import { binaryPatches } from './binary-patches.ts'
import { chooseCandidates, type Listed, type UnreadChange } from './candidates.ts'
import { comparePaths, compareTracked } from './compare.ts'
import { exchangedSince, hasLink, momentBefore, untilLater } from './exchanged.ts'
import { asRefusal, ChangeSetFailure } from './failure.ts'
import { readHead } from './head.ts'
import type { IndexEntry } from './index-file.ts'
import { defaultLimits, type ChangeSetLimits } from './limits.ts'
import { listDirty, listStaged, listUntracked, ownFoldersIn, type DirtyEntry, type View } from './listing.ts'
import { describeNewFiles } from './new-files.ts'
import { withForeignHeads } from './nested.ts'
import type { PatchedFile } from './patch.ts'
import { pathText } from './path-text.ts'
import type { BaseSnapshot } from './snapshot.ts'

export interface ChangeSetOptions {
  base: BaseSnapshot
  /** The run's folder; a base of another folder or another run is not compared. */
  folder: string
  runId: RunId
  world: World
  limits?: ChangeSetLimits
}

/** A working tree that changes under the eyes of git makes it fail or contradict itself; then it is read again. */
const attempts = 5
/** So often are files read again whose folders changed meanwhile. */
const patience = 2

/**
 * Computes what changed in the run's folder since its base was taken. Never throws, and changes nothing in the repository; it may
 * be called while the harness works, and several times at once.
 */
export async function computeChangeSet(options: ChangeSetOptions): Promise<ChangeSetResult> {
  const { base, world, limits = defaultLimits } = options
  try {
    await demandSameSource(options)
    const record = await readBaseRecord(base.storeDir)
    await Promise.all([writeConfig(base.storeDir, record, limits.fileBytes), demandObjects(base, record)])
    return { ok: true, changeSet: await captureAtRest({ base, record, limits, world }) }
  } catch (error) {
    return asRefusal(error)
  }
}

/** Reads again what changed meanwhile; what does not come to rest is told without the content that may be that of other files. */
async function captureAtRest(from: Capture): Promise<ChangeSet> {
  let best: ChangeSet | null = null
  for (let attempt = 1; ; attempt++) {
    try {
      const { changeSet, exchangedSince: since } = await capture(from)
      if (since === null || attempt > patience) return changeSet
      best = changeSet
      await untilLater(since, from.world)
    } catch (error) {
      if (!(error instanceof ChangeSetFailure) || error.code !== 'diff_unavailable') throw error
      if (best !== null) return best
      // What git waited for in vain it would wait for again.
      if (attempt >= attempts || error.isPassing) throw error
    }
  }
}

async function demandSameSource({ base, folder, runId }: ChangeSetOptions): Promise<void> {
  if (base.refName !== refNameOf(runId))
    throw new ChangeSetFailure('source_unknown', 'The base is that of another run.')
  if (olderStore(base.storeDir) !== null)
    throw new ChangeSetFailure('diff_unavailable', 'The base was taken by an earlier version of svc.')
  const expected = base.prefix === '' ? base.topLevel : join(base.topLevel, base.prefix)
  const [now, then] = await Promise.all([realpath(folder), realpath(expected)])
  // Both would follow a link that stands for the folder by now.
  if (now !== then || hasLink(expected))
    throw new ChangeSetFailure('repo_unavailable', 'The folder is another one than when the base was taken.')
}

interface Capture {
  base: BaseSnapshot
  record: BaseRecord
  limits: ChangeSetLimits
  world: World
}

interface Captured {
  changeSet: ChangeSet
  /** Since when folders were changed, so that the content of files was left out; null: none was. */
  exchangedSince: bigint | null
}

async function capture({ base, record, limits, world }: Capture): Promise<Captured> {
  const capturedAt = world.now()
  const { storeDir, topLevel, prefix } = base
  const own = ownFoldersIn(topLevel, [stateDirOf(storeDir), ...record.ownFolders])
  const view: View = { storeDir, topLevel, prefix, indexFile: join(storeDir, 'index'), limits, own }
  const since = momentBefore(record, view)
  const [tracked, untracked, newlyTracked, head] = await Promise.all([
    record.settings.filters.length === 0 ? compareTracked(view) : null,
    listUntracked(view),
    listNewlyTracked(view, record, base.tree),
    readHead(record, limits.gitMs),
  ])
  const compared = await compareRest({ view, record, tracked, untracked, newlyTracked })
  const literals = await binaryPatches({ view, record, entries: compared.entries, files: compared.patched })
  const read = compared.patched.filter(({ letter }) => letter !== 'D').map(({ path }) => path)
  const exchanged = await exchangedSince(topLevel, read, since)
  const foreign = await withForeignHeads(view, record.objectFormat, toldHeads(compared.patched))
  const { files, patches } = assemble(compared, { literals, exchanged: new Set([...exchanged, ...foreign]) })
  const diff = Buffer.concat(patches)
  if (files.length > limits.files) throw new ChangeSetFailure('too_large', `More than ${limits.files} files changed.`)
  if (diff.length > limits.diffBytes)
    throw new ChangeSetFailure('too_large', `The diff is over ${limits.diffBytes} bytes.`)
  const changeSet = {
    base: { commit: base.commit, branch: base.branch },
    head,
    files,
    additions: files.reduce((sum, file) => sum + (file.additions ?? 0), 0),
    deletions: files.reduce((sum, file) => sum + (file.deletions ?? 0), 0),
    diff: diff.toString('utf8'),
    capturedAt,
  }
  return { changeSet, exchangedSince: exchanged.size > 0 ? since : null }
}

interface Compared {
  entries: IndexEntry[]
  unread: UnreadChange[]
  patched: PatchedFile[]
}

interface Rest extends Omit<Listed, 'dirty' | 'changed'> {
  view: View
  record: BaseRecord
  tracked: PatchedFile[] | null
}

/** Compares what the quick comparison of the tracked files left: all of it, or the new files, to be paired with deleted ones. */
async function compareRest({ view, record, tracked, ...listed }: Rest): Promise<Compared> {
  if (tracked === null) {
    const dirty = await listDirty(view)
    const changed = dirty.map((entry) => entry.path)
    const { entries, unread } = await chooseCandidates(view, record, { ...listed, dirty, changed })
    return { entries, unread, patched: await comparePaths({ view, record, entries }) }
  }
  const deleted = tracked.filter((file) => file.letter === 'D')
  const others = tracked.filter((file) => file.letter !== 'D')
  const changed = tracked.map((file) => file.oldPath)
  const { entries, unread } = await chooseCandidates(view, record, { ...listed, dirty: deleted.map(entryOf), changed })
  if (deleted.length === 0) {
    const { patched, rest } = await describeNewFiles(view, record, entries)
    const asked = await comparePaths({ view, record, entries: rest })
    return { entries: [...entries, ...others.map(entryOf)], unread, patched: [...others, ...patched, ...asked] }
  }
  const hasNew = entries.some((entry) => entry.oid === null)
  const rest = hasNew ? await comparePaths({ view, record, entries }) : deleted
  return { entries: [...entries, ...others.map(entryOf)], unread, patched: [...others, ...rest] }
}

function entryOf(file: PatchedFile): DirtyEntry {
  return { path: file.oldPath, mode: file.oldMode, oid: file.oldOid, letter: file.letter }
}

/** Only asked when the repository's index is another one than at the base. */
async function listNewlyTracked(view: View, record: BaseRecord, tree: string): Promise<DirtyEntry[]> {
  const mark = await indexMarkOf(record.gitDir)
  if (mark === null || mark === record.indexMark) return []
  const name = `capture-${crypto.randomUUID()}`
  const indexFile = join(view.storeDir, name)
  try {
    if (!(await linkIndex(record.gitDir, view.storeDir, name))) return []
    return await listStaged({ ...view, indexFile }, tree, 'new')
  } finally {
    await rm(indexFile, { force: true })
  }
}

interface Content {
  /** Patches of binary files. */
  literals: ReadonlyMap<string, Buffer>
  /** Files whose content may not be theirs. */
  exchanged: ReadonlySet<string>
}

function assemble(
  { unread, patched }: Compared,
  { literals, exchanged }: Content,
): { files: ChangedFile[]; patches: Buffer[] } {
  const patches: Buffer[] = []
  const listed: { key: string; file: ChangedFile }[] = []
  for (const file of patched.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
    if (exchanged.has(file.path)) {
      listed.push({ key: file.path, file: { ...describe(file, true), ...unreadContent } })
      continue
    }
    const patch = literals.get(file.path) ?? (file.binary ? null : file.patch)
    if (patch !== null) patches.push(patch)
    listed.push({ key: file.path, file: describe(file, patch === null) })
  }
  for (const change of unread) listed.push({ key: change.path, file: describeUnread(change) })
  listed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
  return { files: listed.map((one) => one.file), patches }
}

/** Commits of repositories within, as git told them. */
function toldHeads(patched: readonly PatchedFile[]): (readonly [path: string, commit: string])[] {
  return patched.flatMap(({ path, newMode, patch }) => {
    if (newMode !== '160000' || patch === null) return []
    const [, commit] = /^\+Subproject commit (\S+)$/m.exec(patch.toString('latin1')) ?? []
    return commit === undefined ? [] : [[path, commit] as const]
  })
}

const statuses: Record<string, ChangedFile['status']> = { A: 'added', D: 'deleted', R: 'renamed', T: 'type_changed' }

function describe(file: PatchedFile, patchOmitted: boolean): ChangedFile {
  const oldMode = file.oldMode === '000000' ? null : file.oldMode
  const newMode = file.newMode === '000000' ? null : file.newMode
  const kind = kindOf(newMode ?? oldMode)
  const isCounted = !file.binary && kind !== 'submodule'
  return {
    path: pathText(file.path),
    oldPath: file.letter === 'R' ? pathText(file.oldPath) : null,
    status: statuses[file.letter] ?? 'modified',
    oldMode,
    newMode,
    kind,
    binary: file.binary,
    additions: isCounted ? file.additions : null,
    deletions: isCounted ? file.deletions : null,
    patchOmitted,
  }
}

const unreadContent = { binary: true, additions: null, deletions: null, patchOmitted: true } as const

function describeUnread(change: UnreadChange): ChangedFile {
  const { path, status, oldMode, newMode } = change
  const kind = kindOf(newMode ?? oldMode)
  return { path: pathText(path), oldPath: null, status, oldMode, newMode, kind, ...unreadContent }
}

function kindOf(mode: string | null): ChangedFile['kind'] {
  if (mode === '120000') return 'symlink'
  return mode === '160000' ? 'submodule' : 'file'
}

export { releaseBase } from './release.ts'
