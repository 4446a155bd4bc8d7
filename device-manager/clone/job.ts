import { z } from 'zod'

// The job that the program of this folder is given, and its answer: one line of JSON each.

const branch = z.string().min(1).max(255)
const place = {
  /** Where git is asked: a path of the broker. */
  url: z.string().max(2_100),
  /** Of the clone; what the program needs for itself lies in a folder beside it. */
  folder: z.string().max(4_096),
  branch,
}

export const cloneJob = z.discriminatedUnion('do', [
  z.object({
    do: z.literal('bring'),
    ...place,
    /** As the clone names its origin. */
    address: z.string().max(2_100),
    baseBranch: branch.nullable(),
    /** Who commits, unless somebody says otherwise. */
    committer: z.object({ name: z.string().max(500), email: z.string().max(500) }),
  }),
  z.object({ do: z.literal('deliver'), ...place, rescueBranch: branch, runId: z.string().max(64) }),
])
export type CloneJob = z.infer<typeof cloneJob>
export type Bring = Extract<CloneJob, { do: 'bring' }>
export type Deliver = Extract<CloneJob, { do: 'deliver' }>

const oid = z.string().regex(/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/)
const sentence = z.string().max(4_000)

/** What became of the work of a run. */
export const delivered = z.object({
  /** The commit at which the run's branch is now; null: nothing of it was pushed. */
  pushed: oid.nullable(),
  /** What could not be pushed, or was not committed, and where it is. `why`: for people. */
  rescued: z.object({ oid, why: sentence }).nullable(),
  /** What is lost, for people; null: nothing. */
  lost: sentence.nullable(),
})
export type Delivered = z.infer<typeof delivered>

export const cloneAnswer = z.union([
  z.object({ ok: z.literal(true), delivered: delivered.optional() }),
  z.object({ ok: z.literal(false), message: sentence }),
])
export type CloneAnswer = z.infer<typeof cloneAnswer>

/** What `bring` notes beside the clone once it is whole. */
export const cloneStart = z.object({
  /** Where the run's branch began; null: the repository was empty. */
  start: oid.nullable(),
  /** What else the git host had. */
  known: z.array(oid).max(10),
})
