import { idIn } from '../lib/id-schema.ts'
import type { RunId } from '../lib/ids.ts'
import { z } from 'zod'
import { deviceTime } from './bounds.ts'

/** A changed path of a change-set. Line counts are null for binary files and submodules. */
export const changedFile = z.object({
  path: z.string(),
  oldPath: z.string().nullable(),
  status: z.enum(['added', 'modified', 'deleted', 'renamed', 'type_changed']),
  oldMode: z.string().nullable(),
  newMode: z.string().nullable(),
  kind: z.enum(['file', 'symlink', 'submodule']),
  binary: z.boolean(),
  additions: z.number().int().nullable(),
  deletions: z.number().int().nullable(),
  /** `diff` leaves out this file's patch, which is over the limit for one file. */
  patchOmitted: z.boolean(),
})

const point = z.object({
  /** null on a branch without a commit. */
  commit: z.string().nullable(),
  /** null when the head is detached. */
  branch: z.string().nullable(),
})

/** So many runs are named with which one shared its folder. */
export const mostSharedWith = 100

/** The changes of a run in its folder: the tree at its end against the tree at its start. */
export const changeSet = z.object({
  base: point,
  head: point,
  files: z.array(changedFile),
  additions: z.number().int(),
  deletions: z.number().int(),
  /** Unified diff with a/ and b/ prefixes, as `git apply` reads it. */
  diff: z.string(),
  capturedAt: deviceTime,
  /** Runs that worked in the folder at the same time, or in one around or within it: what they changed is in here, too. Left out: none did, or the device does not look. */
  sharedWith: z
    .array(idIn<RunId>(z.string().regex(/^run_[0-9A-Za-z]{16}$/)))
    .max(mostSharedWith)
    .optional(),
})
export type ChangeSet = z.infer<typeof changeSet>
export type ChangedFile = z.infer<typeof changedFile>

export const changeSetErrorCodes = ['source_unknown', 'repo_unavailable', 'too_large', 'diff_unavailable'] as const
export const changeSetResult = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), changeSet }),
  z.object({ ok: z.literal(false), code: z.enum(changeSetErrorCodes), message: z.string() }),
])
export type ChangeSetResult = z.infer<typeof changeSetResult>

/** Marks a change-set with the runs that shared its folder. */
export function withSharers(result: ChangeSetResult, runs: Iterable<RunId>): ChangeSetResult {
  const sharedWith = [...runs].slice(0, mostSharedWith)
  if (!result.ok || sharedWith.length === 0) return result
  return { ok: true, changeSet: { ...result.changeSet, sharedWith } }
}
