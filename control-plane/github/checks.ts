import type { GithubClient } from './client.ts'
import { compare, listReviews, readParents, type Pull } from './reads.ts'
import { isSameChange, verdictsIn, type Verdict } from './verdict.ts'

/**
 * What the verdicts on a pull request say about its head: there is one at it, an approval of an earlier head holds for it
 * too (only a clean merge of the base branch lies between them), or nobody has judged it.
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

/** The head is a merge of the base branch into the approved head, and the change is what it was. */
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
