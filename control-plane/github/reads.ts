import { z } from 'zod'
import { author, isFromOutside, isReviewerOfTeam, side } from './team.ts'
import { GithubTrouble, type GithubClient } from './client.ts'

// Reads from repositories, reduced to the fields that this server uses.

const nullableTime = z.iso.datetime().nullable()

const pull = z
  .object({
    number: z.number().int(),
    html_url: z.string(),
    title: z.string(),
    body: z.string().nullish(),
    state: z.enum(['open', 'closed']),
    draft: z.boolean().default(false),
    ...author,
    head: side.extend({ sha: z.string() }),
    base: side,
    mergeable: z.boolean().nullish(),
    commits: z.number().int().default(0),
    changed_files: z.number().int().default(0),
    additions: z.number().int().default(0),
    deletions: z.number().int().default(0),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    closed_at: nullableTime,
    merged_at: nullableTime,
  })
  .transform((p) => ({
    number: p.number,
    url: p.html_url,
    title: p.title,
    body: p.body ?? '',
    isOpen: p.state === 'open',
    isDraft: p.draft,
    author: p.user?.login ?? null,
    branch: p.head.ref,
    headSha: p.head.sha,
    base: p.base.ref,
    isMergeable: p.mergeable ?? null,
    commits: p.commits,
    changedFiles: p.changed_files,
    additions: p.additions,
    deletions: p.deletions,
    createdAt: p.created_at,
    updatedAt: p.updated_at,
    closedAt: p.closed_at,
    mergedAt: p.merged_at,
    isFromOutside: isFromOutside(p),
  }))
export type Pull = z.output<typeof pull>

export function readPull(client: GithubClient, repo: string, number: number): Promise<Pull | null> {
  return client.get(repo, `/pulls/${number}`, pull)
}

const pullNumbers = z.array(z.object({ number: z.number().int() }))

/** The latest pull request from the branch; null when there is none. */
export async function findPullOfBranch(client: GithubClient, repo: string, branch: string): Promise<number | null> {
  const head = encodeURIComponent(`${repo.split('/')[0]}:${branch}`)
  const found = await client.get(
    repo,
    `/pulls?state=all&sort=created&direction=desc&per_page=1&head=${head}`,
    pullNumbers,
  )
  return found?.[0]?.number ?? null
}

export async function listPullsOfCommit(client: GithubClient, repo: string, sha: string): Promise<number[]> {
  const found = await client.get(repo, `/commits/${sha}/pulls?per_page=100`, pullNumbers)
  return (found ?? []).map(({ number }) => number)
}

export interface Checks {
  state: 'none' | 'pending' | 'passed' | 'failed'
  passed: number
  failed: number
  pending: number
}

const checkRuns = z.object({
  check_runs: z.array(z.object({ status: z.string(), conclusion: z.string().nullable() })),
})
const statuses = z.object({ statuses: z.array(z.object({ state: z.string() })) })
const goodConclusions = new Set(['success', 'neutral', 'skipped'])
const maxPages = 20

/** Summarises check runs and commit statuses of a commit. Without any the state is `none`. */
export async function readChecks(client: GithubClient, repo: string, sha: string): Promise<Checks> {
  const outcomes: ('passed' | 'failed' | 'pending')[] = []
  await eachPage(async (page) => {
    const found = await client.get(repo, `/commits/${sha}/check-runs?per_page=100&page=${page}`, checkRuns)
    for (const { status, conclusion } of found?.check_runs ?? [])
      outcomes.push(status !== 'completed' ? 'pending' : goodConclusions.has(conclusion ?? '') ? 'passed' : 'failed')
    return found?.check_runs.length ?? 0
  })
  await eachPage(async (page) => {
    const found = await client.get(repo, `/commits/${sha}/status?per_page=100&page=${page}`, statuses)
    for (const { state } of found?.statuses ?? [])
      outcomes.push(state === 'success' ? 'passed' : state === 'pending' ? 'pending' : 'failed')
    return found?.statuses.length ?? 0
  })
  return summaryOf(outcomes)
}

export interface CommitCheck {
  name: string
  status: 'pending' | 'passed' | 'failed'
  url: string | null
}

const namedRuns = z.object({
  check_runs: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      conclusion: z.string().nullable(),
      html_url: z.string().nullish(),
    }),
  ),
})
const namedStatuses = z.object({
  statuses: z.array(z.object({ context: z.string(), state: z.string(), target_url: z.string().nullish() })),
})
const mostChecks = 200

/** The check runs and commit statuses of a commit by their names, the first of them. */
export async function listChecks(client: GithubClient, repo: string, sha: string): Promise<CommitCheck[]> {
  const checks: CommitCheck[] = []
  const add = (name: string, status: CommitCheck['status'], url: string | null | undefined) =>
    checks.push({ name: name.slice(0, 200), status, url: url?.slice(0, 500) ?? null })
  await eachPage(async (page) => {
    const found = await client.get(repo, `/commits/${sha}/check-runs?per_page=100&page=${page}`, namedRuns)
    for (const { name, status, conclusion, html_url: url } of found?.check_runs ?? [])
      add(name, status !== 'completed' ? 'pending' : goodConclusions.has(conclusion ?? '') ? 'passed' : 'failed', url)
    return found?.check_runs.length ?? 0
  })
  await eachPage(async (page) => {
    const found = await client.get(repo, `/commits/${sha}/status?per_page=100&page=${page}`, namedStatuses)
    for (const { context, state, target_url: url } of found?.statuses ?? [])
      add(context, state === 'success' ? 'passed' : state === 'pending' ? 'pending' : 'failed', url)
    return found?.statuses.length ?? 0
  })
  return checks.slice(0, mostChecks)
}

function summaryOf(outcomes: readonly ('passed' | 'failed' | 'pending')[]): Checks {
  const count = (kind: string) => outcomes.filter((outcome) => outcome === kind).length
  const [passed, failed, pending] = [count('passed'), count('failed'), count('pending')]
  const state = failed > 0 ? 'failed' : pending > 0 ? 'pending' : passed > 0 ? 'passed' : 'none'
  return { state, passed, failed, pending }
}

const reviews = z.array(
  z
    .object({ state: z.string(), body: z.string().nullish(), commit_id: z.string().nullish(), ...author })
    .transform((r) => ({
      state: r.state.toUpperCase(),
      body: r.body ?? '',
      sha: r.commit_id ?? null,
      isOfTeam: isReviewerOfTeam(r),
    })),
)
export type Review = z.output<typeof reviews>[number]

/** Lists reviews, oldest first. */
export async function listReviews(client: GithubClient, repo: string, number: number): Promise<Review[]> {
  const all: Review[] = []
  await eachPage(async (page) => {
    const found = await client.get(repo, `/pulls/${number}/reviews?per_page=100&page=${page}`, reviews)
    all.push(...(found ?? []))
    return found?.length ?? 0
  })
  return all
}

const commit = z.object({ parents: z.array(z.object({ sha: z.string() })) })

/** Hashes of the parents in order; null when the commit does not exist. */
export async function readParents(client: GithubClient, repo: string, sha: string): Promise<string[] | null> {
  const found = await client.get(repo, `/commits/${sha}`, commit)
  return found === null ? null : found.parents.map((parent) => parent.sha)
}

const comparison = z.object({
  status: z.enum(['ahead', 'behind', 'identical', 'diverged']),
  files: z
    .array(
      z.object({
        filename: z.string(),
        previous_filename: z.string().optional(),
        status: z.string(),
        sha: z.string().nullish(),
        patch: z.string().optional(),
      }),
    )
    .default([]),
})
export type Comparison = z.output<typeof comparison>

/** Compares `head` with the commit where it parted from `base`. */
export function compare(
  client: GithubClient,
  repo: string,
  { base, head }: { base: string; head: string },
): Promise<Comparison | null> {
  return client.get(repo, `/compare/${encodeURIComponent(base)}...${encodeURIComponent(head)}`, comparison)
}

/** Asks for pages until one is not full. Fails on a list that does not end. */
async function eachPage(read: (page: number) => Promise<number>): Promise<void> {
  for (let page = 1; page <= maxPages; page++) if ((await read(page)) < 100) return
  throw new GithubTrouble('a list of GitHub is too long')
}
