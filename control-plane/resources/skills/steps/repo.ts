import type { WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import type { ErrorCode } from '../../../../shared/api/error-codes.ts'
import { ApiError, fail } from '../../../../shared/api/errors.ts'
import { skillKeys, type SkippedSkill } from '../../../../shared/api/skill-fields.ts'
import { svcSkill } from '../../../../shared/runs/svc-skill.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import type { FetchedRepo } from '../../../repo-source/repo-sources.ts'
import { SourceError } from '../../../repo-source/source-error.ts'
import { repoKey, rootName, type RepoSource } from '../../../repo-source/source.ts'
import type { TreeEntry } from '../../../repo-source/tree.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { checkBundle, type RawFile } from '../bundle.ts'
import {
  bytesOf,
  filesByFolder,
  filesFlaw,
  installLimits,
  isLfsPointer,
  mostFolders,
  searchedFolders,
  skillFoldersOf,
} from '../repo-folders.ts'
import { listSkillsBySlug, type SkillRow } from '../store.ts'
import { skillFile } from '../../../../shared/api/skill-fields.ts'
import { storeDecoded, type NewBundle } from './bundle.ts'

// Takes the skills out of a repository that was fetched, and stores their files: before the transaction.

export interface RepoSkill {
  slug: string
  name: string
  description: string | null
  /** The skill's folder in the repository. */
  path: string
}

export interface TakenSkills {
  skills: (RepoSkill & NewBundle)[]
  skipped: SkippedSkill[]
  resolvedSha: string
}

interface Taking {
  db: Db
  caller: Caller
  source: RepoSource
  /** The names of folders; undefined: all. */
  wanted: readonly string[] | undefined
  deps: Pick<ResourceDependencies, 'blobs' | 'costly'>
}

interface Fetching {
  repoSources: ResourceDependencies['repoSources']
  workspaceId: WorkspaceUuid
  signal: AbortSignal
  /** The codes with which it fails where the repository is not asked, has not the folder, or cannot be read. */
  codes: Readonly<Record<'refused' | 'noFolder' | 'unreadable', ErrorCode>>
}

/** Fetches a repository that somebody named, and hands it to `use`. Fails with these codes and `rate_limit_exceeded`. */
export async function withRepo<T>(
  source: RepoSource,
  { repoSources, workspaceId, signal, codes }: Fetching,
  use: (repo: FetchedRepo) => Promise<T>,
): Promise<T> {
  try {
    return await repoSources.with(source, { workspaceId, signal }, use)
  } catch (error) {
    // The answer is heard by nobody; that nothing has happened frees the key of the request.
    if (signal.aborted) return fail(codes.unreadable, { cause: error })
    if (error instanceof SourceError) return failFor(error, codes)
    throw error
  }
}

function failFor({ reason, message, cause }: SourceError, codes: Fetching['codes']): never {
  if (reason === 'refused') return fail(codes.refused, { param: 'url', message, cause })
  if (reason === 'no_folder') return fail(codes.noFolder, { param: 'subdir', message, cause })
  if (reason === 'busy') return fail('rate_limit_exceeded', { message, headers: { 'Retry-After': '30' } })
  return fail(codes.unreadable, { param: 'url', message, cause })
}

/** Fails with `no_skills_found` and `skill_bundle_storage_failed`; then nothing stays stored. */
export async function takeSkills(repo: FetchedRepo, taking: Taking): Promise<TakenSkills> {
  const { source, wanted, deps } = taking
  const entries = await entriesOf(repo, source)
  const folders = skillFoldersOf(entries, { isSubdir: source.subdir !== null })
  if (folders.length === 0) return fail('no_skills_found', { param: source.subdir === null ? 'url' : 'subdir' })
  const taken: TakenSkills = { skills: [], skipped: [], resolvedSha: await repo.sha() }
  const skip: Skip = (folder, reason, message) => {
    const path = pathOf(source, folder)
    taken.skipped.push({ slug: nameOf(folder, source), path, reason, message })
    return null
  }
  const files = filesByFolder(entries, folders)
  const room: InstallRoom = { ...installLimits }
  let looked = 0
  try {
    for (const folder of folders) {
      // The name of the root may stand in its SKILL.md alone.
      if (folder !== '' && wanted?.includes(nameOf(folder, source)) === false) continue
      if (++looked > mostFolders) {
        taken.skipped.push({ slug: null, path: null, reason: 'too_much', message: tooManyFolders })
        break
      }
      const skill = await takeOne({ folder, files: files.get(folder) ?? [], room, repo, taken, skip }, taking)
      if (skill !== null) taken.skills.push(skill)
    }
    const missing = (wanted ?? []).filter((name) => !namesIn(taken, source).has(name))
    if (wanted !== undefined && missing.length === wanted.length) fail('no_skills_found', { param: 'skills' })
    for (const slug of missing)
      taken.skipped.push({
        slug,
        path: null,
        reason: 'not_found',
        message: 'The repository has no skill of this name.',
      })
    return taken
  } catch (error) {
    for (const { blobId } of taken.skills) await deps.blobs.giveUp(blobId)
    throw error
  }
}

const tooManyFolders = `No more than ${mostFolders} skills of a repository are looked at: name skills, or their folder by subdir.`

type Skip = (folder: string, reason: SkippedSkill['reason'], message: string) => null

async function entriesOf(repo: FetchedRepo, { subdir }: RepoSource): Promise<TreeEntry[]> {
  if (subdir !== null) return repo.list()
  // A skill at the root, and no other, takes what lies elsewhere.
  const some = await repo.list([skillFile, ...searchedFolders])
  return some.some(({ path }) => path === skillFile) ? repo.list() : some
}

interface One {
  folder: string
  files: readonly TreeEntry[]
  room: InstallRoom
  repo: FetchedRepo
  taken: TakenSkills
  skip: Skip
}

/** The room that an install has left. */
export interface InstallRoom {
  skills: number
  files: number
  totalBytes: number
}

/**
 * Stores the files of one skill, or says why they are none. What is read counts, whether it is a skill or not: whoever makes a
 * repository decides how much of it is none. Fails with `skill_bundle_storage_failed`.
 */
export async function storeFiles(
  files: readonly TreeEntry[],
  { from, room }: { from: Pick<FetchedRepo, 'read'>; room: InstallRoom },
  storing: Pick<Taking, 'caller'> & Taking['deps'],
): Promise<NewBundle | { reason: 'invalid_bundle' | 'too_much'; message: string }> {
  const refused = (message: string) => ({ reason: 'invalid_bundle', message }) as const
  const flaw = filesFlaw(files)
  if (flaw !== null) return refused(flaw)
  const bytes = bytesOf(files)
  if (room.skills < 1 || room.files < files.length || room.totalBytes < bytes)
    return { reason: 'too_much', message: 'One install reads no more. A part of a repository is named by its folder.' }
  room.skills -= 1
  room.files -= files.length
  room.totalBytes -= bytes
  const given = await readFiles(files, from)
  if (typeof given === 'string') return refused(given)
  const stored = await orFlaw(async () => storeDecoded(await checkBundle(given), storing))
  return typeof stored === 'string' ? refused(stored) : stored
}

/** Returns why they cannot be had where Git LFS has them. */
export async function readFiles(
  files: readonly TreeEntry[],
  from: Pick<FetchedRepo, 'read'>,
): Promise<RawFile[] | string> {
  const contents = await from.read(files)
  if (contents.some(isLfsPointer)) return 'It has files that Git LFS keeps elsewhere.'
  return files.map(({ path, executable }, at) => ({ path, executable, bytes: contents[at]! }))
}

/** Returns null when it is skipped, or is not among those that are wanted. */
async function takeOne(one: One, taking: Taking): Promise<(RepoSkill & NewBundle) | null> {
  const { folder, files, room, repo, skip } = one
  const { caller, source, wanted, deps } = taking
  if (folder !== '' && (await slugTrouble(nameOf(folder, source), one, taking))) return null
  const stored = await storeFiles(files, { from: repo, room }, { caller, ...deps })
  if ('reason' in stored) return skip(folder, stored.reason, stored.message)
  const { name, description } = stored.frontMatter
  const slug = folder === '' ? (name ?? nameOf('', source)) : nameOf(folder, source)
  const isWanted = wanted === undefined || wanted.includes(slug) || wanted.includes(nameOf(folder, source))
  if (!isWanted || (folder === '' && (await slugTrouble(slug, one, taking)))) {
    await deps.blobs.giveUp(stored.blobId)
    return null
  }
  return { slug, name: name ?? slug, description, path: pathOf(source, folder), ...stored }
}

/** Returns whether the skill is skipped for its slug, and notes so. */
async function slugTrouble(slug: string, { folder, taken, skip }: One, { db, caller, source }: Taking) {
  const trouble = async (): Promise<[SkippedSkill['reason'], string] | null> => {
    const checked = skillKeys.slug.safeParse(slug)
    if (!checked.success) return ['invalid_slug', `Its slug ${checked.error.issues[0]?.message ?? 'cannot be taken'}.`]
    if (taken.skills.some((known) => known.slug === slug)) return ['slug_taken', 'The repository has two of this name.']
    const known = await findOwnSkill(db, caller.workspaceId, slug)
    return isFree(slug, { known, url: repoKey(source.url) }) ? null : ['slug_taken', slugTaken]
  }
  const found = await trouble()
  if (found !== null) skip(folder, ...found)
  return found !== null
}

export const slugTaken = 'A skill that is not from this repository has the slug.'

/** Returns whether the skill of this slug may come from the repository. `known`: the skill of no plugin that has the slug. */
export const isFree = (slug: string, { known, url }: { known: SkillRow | null; url: string }): boolean =>
  known === null ? slug !== svcSkill.slug : known.repoUrl === url

/** The skill of no plugin with this slug. */
export async function findOwnSkill(db: Db, workspaceId: WorkspaceUuid, slug: string): Promise<SkillRow | null> {
  return (await listSkillsBySlug(db, workspaceId, slug)).find(({ pluginId }) => pluginId === null) ?? null
}

async function orFlaw<T>(store: () => Promise<T>): Promise<T | string> {
  try {
    return await store()
  } catch (error) {
    if (error instanceof ApiError && error.code === 'invalid_skill_bundle') return error.message
    throw error
  }
}

const nameOf = (folder: string, source: RepoSource): string => (folder === '' ? rootName(source) : baseOf(folder))
const baseOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
const pathOf = ({ subdir }: RepoSource, folder: string): string =>
  [subdir ?? '', folder].filter((part) => part !== '').join('/')

/** Returns all names by which skills that were taken or skipped may have been asked for. */
function namesIn({ skills, skipped }: TakenSkills, source: RepoSource): Set<string> {
  const root = skills.some(({ path }) => path === (source.subdir ?? '')) ? [rootName(source)] : []
  return new Set([...skills.map(({ slug }) => slug), ...skipped.flatMap(({ slug }) => slug ?? []), ...root])
}
