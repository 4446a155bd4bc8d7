import type { GithubClient } from './client.ts'
import { compare, listReviews, readParents, type Pull } from './reads.ts'
import { isSameChange, verdictsIn, type Verdict } from './verdict.ts'

/**
 * Reads the verdicts on a pull request's head. Either one was made at the head, or an approval of an earlier head still
 * counts (only a clean merge of the base branch lies between them), or there is none.
 */
export async function judgedAs(
  client: GithubClient,
  repo: string,
  pull: Pull,
): Promise<'verdict_exists' | 'carried' | null> {
  const verdicts = verdictsIn(await listReviews(client, repo, pull.number))
  if (verdicts.some(({ sha }) => sha === pull.headSha)) return 'verdict_exists'
  const last = verdicts.at(-1)
  return last?.isApproval === true && (await isCarried(client, repo, { pull, approval: last })) ? 'carried' : null
}

/** Returns whether the head merges the base branch into the approved head, and the change stayed the same. */
async function isCarried(
  client: GithubClient,
  repo: string,
  { pull, approval }: { pull: Pull; approval: Verdict },
): Promise<boolean> {
  const parents = await readParents(client, repo, pull.headSha)
  const [approved, merged] = parents ?? []
  if (parents?.length !== 2 || approved !== approval.sha || merged === undefined) return false
  const position = await compare(client, repo, { base: pull.base, head: merged })
  if (position?.status !== 'behind' && position?.status !== 'identical') return false
  const before = await compare(client, repo, { base: merged, head: approval.sha })
  const after = await compare(client, repo, { base: merged, head: pull.headSha })
  return before !== null && after !== null && isSameChange(before, after)
}
