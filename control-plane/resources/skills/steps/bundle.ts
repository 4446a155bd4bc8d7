import { idFrom, type ApprovalId, type BundleId, type WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { anyId } from '../../../../shared/lib/id-schema.ts'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { z } from 'zod'
import { fail } from '../../../../shared/api/errors.ts'
import type { World } from '../../../../shared/lib/world.ts'
import { byteLength } from '../../../../shared/lib/byte-length.ts'
import type { Blobs } from '../../../blobs/blobs.ts'
import { BlobMissingError, StorageError } from '../../../blobs/place.ts'
import { ownBlob } from '../../../blobs/store.ts'
import type { CostlyPool } from '../../../costly/pool.ts'
import type { Db } from '../../../db/open.ts'
import { callerKey, type Caller } from '../../../http/callers.ts'
import { rangeOfFile, totalOf, type Decoded, type DecodedBundle, type HashedFiles } from '../bundle.ts'
import {
  adoptBundle,
  findBundle,
  insertBundle,
  type BundleFile,
  type BundleRow,
  type FrontMatter,
} from '../bundle-store.ts'
import { tokensOf } from '../rules.ts'
import { skillFile } from '../../../../shared/api/skill-fields.ts'
import type { SkillRow } from '../store.ts'

/**
 * A bundle on its way to a skill. Its bytes are stored before the transaction begins, which then makes them a skill's or stages
 * them for a change that waits for approval.
 */
export type NewBundle = Pick<BundleRow, 'blobId' | 'bundleHash' | 'files' | 'frontMatter'>

/** The part of a staged bundle that stands in its change, so that whoever approves it sees what they approve. */
export const stagedBundle = z.object({
  bundleId: anyId<BundleId>(),
  bundleHash: z.string(),
  files: z.array(z.object({ path: z.string(), sizeBytes: z.number(), sha256: z.string(), executable: z.boolean() })),
})
export type StagedBundle = z.infer<typeof stagedBundle>

interface Storing {
  caller: Caller
  blobs: Pick<Blobs, 'put'>
  costly: Pick<CostlyPool, 'run'>
}

/** Fails with `invalid_skill_bundle` and `skill_bundle_storage_failed`. */
export async function storeDecoded(decoded: Decoded, { caller, blobs, costly }: Storing): Promise<NewBundle> {
  const bundle = decoded.bundle ?? fail('invalid_skill_bundle', decoded.flaw ?? {})
  return storeHashed(bundle, await frontMatterOf(bundle, { caller, costly }), { caller, blobs })
}

/** Fails with `skill_bundle_storage_failed`. */
export async function storeHashed(
  { bundleHash, files, contents }: HashedFiles,
  matter: FrontMatter,
  { caller: { workspaceId }, blobs }: Pick<Storing, 'caller' | 'blobs'>,
): Promise<NewBundle> {
  const source = Readable.from(contents.filter(({ length }) => length > 0))
  const { blobId } = await orStorageFailed(() => blobs.put(source, { workspaceId }))
  return { blobId, bundleHash, files: [...files], frontMatter: matter }
}

/** The bundle with a copy of its bytes that is the caller's workspace's. */
export async function copyBundle(
  { blobId: from, bundleHash, files, frontMatter }: BundleRow,
  { workspaceId, blobs }: { workspaceId: WorkspaceUuid; blobs: Pick<Blobs, 'put' | 'open'> },
): Promise<NewBundle> {
  const { blobId } = await orStorageFailed(async () =>
    blobs.put(await blobs.open(from, undefined, totalOf(files)), { workspaceId }),
  )
  return { blobId, bundleHash, files, frontMatter }
}

/** Reads a file of a bundle, its first `most` bytes at most; null when the bundle has no such file. Fails as `blobs.open` does. */
export async function readBundleFile(
  { blobId, files }: Pick<BundleRow, 'blobId' | 'files'>,
  { path, most = Number.POSITIVE_INFINITY, blobs }: { path: string; most?: number; blobs: Pick<Blobs, 'open'> },
): Promise<{ file: BundleFile; bytes: Buffer } | null> {
  const found = rangeOfFile(files, path)
  if (found === null) return null
  const { start, file } = found
  const end = start + Math.min(file.sizeBytes, most)
  // A range has at least one byte.
  const bytes = end === start ? Buffer.alloc(0) : await buffer(await blobs.open(blobId, { start, end }, totalOf(files)))
  return { file, bytes }
}

/** Does what reads or writes the bytes of a bundle; a failure is `skill_bundle_storage_failed`. */
export async function orStorageFailed<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof StorageError || error instanceof BlobMissingError)
      return fail('skill_bundle_storage_failed', { cause: error, headers: { 'Retry-After': '5' } })
    throw error
  }
}

async function frontMatterOf(
  { instructions }: DecodedBundle,
  { caller, costly }: Pick<Storing, 'caller' | 'costly'>,
): Promise<FrontMatter> {
  const owner = { workspaceId: caller.workspaceId, caller: callerKey(caller), bytes: byteLength(instructions) }
  const answer = await costly.run('skills.frontMatter', instructions, owner)
  const { matter, flaw } =
    answer.kind === 'done' ? answer.value : { matter: null, flaw: 'the front matter takes too much to be read' }
  return matter ?? fail('invalid_skill_bundle', { param: 'bundle.files', message: `${skillFile}: ${flaw}.` })
}

type Written = { db: Db; world: World; workspaceId: WorkspaceUuid }

/** Stores the row of a bundle in the transaction; `staged`: its id, and the change for which it is. */
export async function keepBundle(
  { db, world, workspaceId }: Written,
  bundle: NewBundle,
  staged: { id: BundleId; changeId: ApprovalId } | null = null,
): Promise<BundleRow> {
  const now = world.now()
  await ownBlob(db, bundle.blobId, now)
  const { id, changeId } = staged ?? { id: world.id('skb_'), changeId: null }
  const { blobId, bundleHash, files, frontMatter } = bundle
  const row = { id, workspaceId, blobId, bundleHash, files, frontMatter, changeId, createdAt: now, retiredAt: null }
  await insertBundle(db, row)
  return row
}

/** Takes what was staged. Fails with `transient_conflict` when it is there no more. */
export async function takeStaged({ db, workspaceId }: Omit<Written, 'world'>, bundleId: BundleId): Promise<BundleRow> {
  const bundle = await findBundle(db, workspaceId, bundleId)
  await adoptBundle(db, bundleId)
  return bundle ?? fail('transient_conflict')
}

/** Returns what a skill says of its bundle. */
export function bundleFacts({ id: bundleId, files }: Pick<BundleRow, 'id' | 'files'>) {
  const leading = files.find(({ path }) => path === skillFile)
  return {
    bundleId,
    fileCount: files.length,
    totalBytes: totalOf(files),
    skillMdTokens: tokensOf(leading?.sizeBytes ?? 0),
  } satisfies Partial<SkillRow>
}

type Named = Pick<
  SkillRow,
  'slug' | 'name' | 'description' | 'sourceType' | 'sourceLabel' | 'enabledByDefault' | 'writtenByUuid'
>

/** The row of a new skill of the caller's workspace, of no plugin and no repository. */
export function newSkill(
  { caller: { workspaceId }, world }: { caller: Pick<Caller, 'workspaceId'>; world: World },
  bundle: BundleRow,
  named: Named,
): SkillRow {
  const now = world.now()
  return {
    id: idFrom(world.id('')),
    workspaceId,
    ...named,
    describedByUuid: named.writtenByUuid,
    repoUrl: null,
    repoPath: null,
    repoSha: null,
    pluginId: null,
    ...bundleFacts(bundle),
    bundleVersion: 1,
    unavailableReason: null,
    version: 1,
    createdAt: now,
    updatedAt: now,
  }
}

export const shownStaged = (bundleId: BundleId, { bundleHash, files }: NewBundle): StagedBundle => ({
  bundleId,
  bundleHash,
  files,
})
