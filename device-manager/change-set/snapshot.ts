import type { RunId } from '../../shared/lib/ids.ts'
import type { World } from '../../shared/lib/world.ts'
import {
  createStore,
  indexMarkOf,
  ownObjects,
  refNameOf,
  removeStore,
  stateDirOf,
  writeBaseRecord,
  type BaseRecord,
  type WatchedFile,
  markOf,
  momentIn,
} from './base-store.ts'
import { readGitSettings } from './carried-settings.ts'
import { isWithin } from '../wall/mounts.ts'
import { exchangedSince, momentBefore, untilLater } from './exchanged.ts'
import { asRefusal, ChangeSetFailure, failureOf, type ChangeSetErrorCode } from './failure.ts'
import { gitFileTarget } from './git-file.ts'
import { runGit } from './git.ts'
import { defaultLimits, type ChangeSetLimits } from './limits.ts'
import {
  callIn,
  listDirty,
  listStaged,
  listUntracked,
  readEntries,
  ownFoldersIn,
  realOr,
  watch,
  type DirtyEntry,
  type View,
  pathsUnderFilters,
} from './listing.ts'
import { resolveNested, withForeignHeads } from './nested.ts'
import { readNotedTree, treeOfLooseCommit } from './index-tree.ts'
import { locatePlain } from './plain-repository.ts'
import { writeRef, changeReftable, hasReftable } from './plain-ref.ts'
import { locateRepository, type Repository } from './repository.ts'

/** The working tree as it was before a run. Plain JSON, so that whoever outlives the run's host can make its change-set. */
export interface BaseSnapshot {
  topLevel: string
  /** The run's folder below `topLevel`, with a slash at its end; only what lies in it counts. Empty: all of it. */
  prefix: string
  /** null on a branch without a commit. */
  commit: string | null
  branch: string | null
  tree: string
  /** Keeps the commit from being collected. */
  refName: string
  takenAt: number
  /** The private git folder with all the rest; see base-store.ts. */
  storeDir: string
  /** The repository's. */
  commonDir: string
}

export type BaseResult = { ok: true; base: BaseSnapshot } | { ok: false; code: ChangeSetErrorCode; message: string }

export interface TakeBaseOptions {
  folder: string
  runId: RunId
  /** The private git folder, which is made here: `<state>/runs/<runId>/change-set`. */
  storeDir: string
  /** Other folders of svc on this machine than the state folder: where one lies in the repository, it is no part of the run. */
  ownFolders?: readonly string[]
  world: World
  limits?: ChangeSetLimits
}

/**
 * Records the base of a run's change-set. Never throws: no repository is `source_unknown`; one that is bare, foreign or
 * broken is `repo_unavailable`. Calling it again for the same run replaces the base.
 */
export async function takeBase(options: TakeBaseOptions): Promise<BaseResult> {
  const { folder, runId, storeDir, ownFolders = [], world, limits = defaultLimits } = options
  let hasStore = false
  try {
    const refName = refNameOf(runId)
    const { repository, settings } = await locate(folder, limits)
    const { gitDir, commonDir } = repository
    demandForeign([gitDir, commonDir], [stateDirOf(storeDir), ...ownFolders])
    const record: BaseRecord = {
      gitDir,
      commonDir,
      repositoryMark: markOf(commonDir),
      gitFileTarget: gitFileTarget(repository.topLevel),
      moment: momentIn(commonDir)?.ns.toString() ?? null,
      objectFormat: repository.objectFormat,
      settings,
      indexMark: await indexMarkOf(gitDir),
      watched: [],
      ownFolders: [...ownFolders],
    }
    hasStore = true
    await createStore(storeDir, record, limits.fileBytes)
    const { topLevel, prefix, commit, branch } = repository
    const own = ownFoldersIn(topLevel, [stateDirOf(storeDir), ...ownFolders])
    const view: View = { storeDir, topLevel, prefix, indexFile: `${storeDir}/index`, limits, own }
    const [dirty, untracked, staged] = await Promise.all([
      listDirty(view),
      listUntracked(view),
      findStaged(view, repository),
      keepCommit(repository, refName, view),
      writeBaseRecord(storeDir, record),
    ])
    const isClean = typeof staged === 'string' && dirty.length === 0 && untracked.length === 0
    let tree = staged as string
    if (!isClean) {
      await ownObjects(storeDir)
      if (typeof staged !== 'string') await keepStaged(view, staged)
      record.watched = await recordWorkingTree(view, record, { dirty, untracked, world })
      ;[tree] = await Promise.all([writeTree(view), writeBaseRecord(storeDir, record)])
    }
    const takenAt = world.now()
    return { ok: true, base: { topLevel, prefix, commit, branch, tree, refName, takenAt, storeDir, commonDir } }
  } catch (error) {
    if (hasStore) await removeStore(storeDir).catch(() => undefined)
    return asRefusal(error)
  }
}

/** A `.git` file, and what it leads to, may name a git folder of svc's, which holds the base of another run. */
function demandForeign(gitFolders: readonly string[], own: readonly string[]): void {
  const isOwn = gitFolders.some((folder) => own.some((each) => isWithin(realOr(folder), realOr(each))))
  if (isOwn) throw new ChangeSetFailure('repo_unavailable', 'The git folder of the repository lies in a folder of svc.')
}

/** Without a repository both questions fail; the one about the repository has the better answer. */
async function locate(
  folder: string,
  limits: ChangeSetLimits,
): Promise<{ repository: Repository; settings: BaseRecord['settings'] }> {
  const plain = locatePlain(folder)
  if (plain !== null) return plain
  const [repository, settings] = await Promise.all([
    locateRepository(folder, limits.gitMs),
    readGitSettings(folder, limits.gitMs).catch(() => ({ values: {}, filters: [] })),
  ])
  return { repository, settings }
}

async function keepCommit(repository: Repository, refName: string, view: View): Promise<void> {
  const { commit, commonDir, objectFormat } = repository
  if (commit === null) return
  if (!hasReftable(commonDir)) return writeRef(commonDir, refName, commit)
  const { storeDir: scratchDir, limits } = view
  const args = [refName, commit]
  const outcome = await changeReftable({ commonDir, objectFormat, scratchDir, args, timeoutMs: limits.gitMs })
  if (!outcome.ok) throw failureOf(outcome, 'keeping the base commit')
}

/**
 * The objects that are staged and not committed; or, when the index notes that it is the commit's tree, that tree.
 */
async function findStaged(view: View, { commit, commonDir, isPlain }: Repository): Promise<string[] | string> {
  if (commit !== null && isPlain) {
    const [noted, committed] = await Promise.all([
      readNotedTree(view.indexFile),
      treeOfLooseCommit(commonDir, commit).then((tree) => tree ?? treeOfCommit(view, commit)),
    ])
    if (noted !== null && noted === committed) return noted
  }
  if (commit === null) return listAllStaged(view)
  return (await listStaged({ ...view, prefix: '' }, commit, 'all')).map((entry) => entry.oid)
}

/**
 * Content that is staged and not committed is held by the person's index alone: once that moves on, `git gc --prune=now` may
 * drop it. So it is packed into the private store.
 */
async function keepStaged(view: View, entries: readonly string[]): Promise<void> {
  if (entries.length === 0) return
  const args = ['pack-objects', '-q', '--threads=1', `${view.storeDir}/objects/pack/pack`]
  const outcome = await runGit({ ...callIn(view, args), input: Buffer.from([...new Set(entries)].join('\n') + '\n') })
  if (!outcome.ok) throw failureOf(outcome, 'keeping the staged files')
}

async function treeOfCommit(view: View, commit: string): Promise<string | null> {
  const outcome = await runGit(callIn(view, ['rev-parse', '--verify', '-q', `${commit}^{tree}`]))
  return outcome.ok ? outcome.stdout.toString('latin1').trim() : null
}

async function listAllStaged(view: View): Promise<string[]> {
  const entries = await listIndex(view)
  return entries.filter((entry) => !entry.startsWith('160000')).map((entry) => entry.split(' ')[1]!)
}

/** `<mode> <id> <stage>` TAB path. */
async function listIndex(view: View): Promise<string[]> {
  const outcome = await runGit(callIn(view, ['ls-files', '-s', '-z']))
  if (!outcome.ok) throw failureOf(outcome, 'listing the staged files')
  return outcome.stdout.toString('latin1').split('\0').filter(Boolean)
}

/** Brings the private index up to the working tree, hashing only what is dirty or untracked. Answers what was too much to hash. */
async function recordWorkingTree(
  view: View,
  record: BaseRecord,
  listed: { dirty: DirtyEntry[]; untracked: string[]; world: World },
): Promise<WatchedFile[]> {
  const nested = await resolveNested(view, listed.untracked)
  const changed = listed.dirty.filter((entry) => entry.letter !== 'D').map((entry) => entry.path)
  const plain = listed.untracked.filter((path) => !path.endsWith('/'))
  const looked = await readEntries(view.topLevel, [...changed, ...plain])
  const filtered = await pathsUnderFilters(view, record.settings.filters, [...looked.keys()])
  const removed = new Set(listed.dirty.filter((entry) => entry.letter === 'D').map((entry) => entry.path))
  const hashed: string[] = []
  const watched: WatchedFile[] = []
  let bytes = 0
  for (const [path, found] of looked) {
    if (found.kind === 'missing') continue
    const size = Number(found.size)
    const isPlain = found.kind !== 'special' && found.isReadable && size <= view.limits.fileBytes && !filtered.has(path)
    if (isPlain && hashed.length < view.limits.baseFiles && bytes + size <= view.limits.baseBytes) {
      hashed.push(path)
      bytes += size
    } else {
      watched.push(watch(path, found))
      removed.add(path)
    }
  }
  await updateIndex(view, ['--force-remove'], [...removed])
  await updateIndex(view, addFlags, nested)
  const folders = [...nested, ...hashed.filter((path) => looked.get(path)!.kind === 'folder')]
  const exchanged = await hashAll(view, { paths: hashed, record, world: listed.world })
  for (const [path, found] of await readEntries(view.topLevel, exchanged)) {
    if (found.kind !== 'missing') watched.push(watch(path, found))
  }
  await dropForeignHeads(view, record, new Set(folders))
  return watched
}

/** The commit of a repository within is told when the base is compared. */
async function dropForeignHeads(view: View, record: BaseRecord, folders: ReadonlySet<string>): Promise<void> {
  if (folders.size === 0) return
  const entries = await listIndex(view)
  const told = entries
    .filter((entry) => entry.startsWith('160000'))
    .map((entry) => [entry.slice(entry.indexOf('\t') + 1), entry.split(' ')[1]!] as const)
    .filter(([path]) => folders.has(path))
  await updateIndex(view, ['--force-remove'], [...(await withForeignHeads(view, record.objectFormat, told))])
}

const addFlags = ['--add', '--remove', '--replace']
const hashAttempts = 3

/** Returns the paths whose folders go on changing: they are not in the index, for their content may be that of other files. */
async function hashAll(
  view: View,
  { paths, record, world }: { paths: readonly string[]; record: BaseRecord; world: World },
): Promise<string[]> {
  let left = [...paths]
  for (let attempt = 1; attempt <= hashAttempts && left.length > 0; attempt++) {
    const since = momentBefore(record, view)
    await updateIndex(view, addFlags, left)
    left = [...(await exchangedSince(view.topLevel, left, since))]
    // As it was, git would take it to be known already.
    await updateIndex(view, ['--force-remove'], left)
    if (left.length > 0 && attempt < hashAttempts) await untilLater(since, world)
  }
  return left
}

async function updateIndex(view: View, flags: string[], paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return
  const input = Buffer.from(paths.join('\0') + '\0', 'latin1')
  const outcome = await runGit({ ...callIn(view, ['update-index', ...flags, '-z', '--stdin']), input })
  if (!outcome.ok) throw failureOf(outcome, 'recording the working tree')
}

async function writeTree(view: View): Promise<string> {
  let outcome = await runGit(callIn(view, ['write-tree']))
  if (!outcome.ok && /unmerged/.test(outcome.stderr)) {
    // Conflicts outside the run's folder: they belong to no change-set of this run.
    const unmerged = await runGit(callIn(view, ['ls-files', '-u', '-z']))
    if (!unmerged.ok) throw failureOf(unmerged, 'listing the conflicts')
    const paths = unmerged.stdout.toString('latin1').split('\0').filter(Boolean)
    await updateIndex(
      view,
      ['--force-remove'],
      [...new Set(paths.map((entry) => entry.slice(entry.indexOf('\t') + 1)))],
    )
    outcome = await runGit(callIn(view, ['write-tree']))
  }
  if (!outcome.ok) throw failureOf(outcome, 'recording the working tree')
  const tree = outcome.stdout.toString('latin1').trim()
  if (!/^[0-9a-f]{40,64}$/.test(tree))
    throw new ChangeSetFailure('diff_unavailable', 'git gave no tree for the working tree.')
  return tree
}
