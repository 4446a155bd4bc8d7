import type { Comparison, Review } from './reads.ts'

/**
 * Verdicts on a pull request. A review by somebody of the team holds one by its state (approved, changes requested), or by a line
 * that begins with `Verdict:`, for reviewers without the right to approve.
 */
export interface Verdict {
  sha: string
  isApproval: boolean
}

/** Repetitions are all bounded: anybody may write a review. */
const line = /^[ \t>*_#-]{0,20}verdict[*_]{0,4}[ \t]{0,4}:[ \t*_]{0,8}(\w{1,40})/im

export function verdictOf({ state, body, sha, isOfTeam }: Review): Verdict | null {
  if (sha === null || !isOfTeam) return null
  if (state === 'APPROVED') return { sha, isApproval: true }
  if (state === 'CHANGES_REQUESTED') return { sha, isApproval: false }
  const word = state === 'COMMENTED' ? line.exec(body)?.[1]?.toLowerCase() : undefined
  return word === undefined ? null : { sha, isApproval: word === 'approve' || word === 'approved' }
}

/** Verdicts in their order; the last one counts. */
export const verdictsIn = (reviews: readonly Review[]): Verdict[] =>
  reviews.flatMap((review) => verdictOf(review) ?? [])

/** A comparison with this many files may leave some out. */
const mostFiles = 300

/**
 * Returns whether the pull request's change is the same in both comparisons: the same files, each with the same content or the same lines
 * added and removed. In doubt it is not.
 */
export function isSameChange(before: Comparison, after: Comparison): boolean {
  if (before.files.length !== after.files.length || after.files.length >= mostFiles) return false
  const earlier = new Map(before.files.map((file) => [file.filename, file]))
  return after.files.every((file) => {
    const was = earlier.get(file.filename)
    if (was === undefined || was.status !== file.status || was.previous_filename !== file.previous_filename)
      return false
    if (file.sha != null && was.sha === file.sha) return true
    return file.patch !== undefined && was.patch !== undefined && linesOf(file.patch) === linesOf(was.patch)
  })
}

/** Removes the positions, which move with merges above. */
const linesOf = (patch: string) => patch.replaceAll(/^@@ .*$/gm, '@@')
