import { z } from 'zod'
import { author, isFromOutside, side } from './team.ts'

// The events of GitHub, reduced to the facts that this server acts on.

const sha = z.string().regex(/^[0-9a-f]{40,64}$/)
const branch = z.string().min(1).max(255)
const repo = z
  .string()
  .max(240)
  .regex(/^[^/\s]+\/[^/\s]+$/)
  .toLowerCase()

const about = {
  /** `owner/name`, lower-case. */
  repo,
  number: z.number().int(),
  url: z.string().max(2_000),
  title: z.string().max(1_000),
  branch,
  base: branch,
  headSha: sha,
  /** Task keys in its branch, title or body. */
  keys: z.array(z.string().max(40)).max(50),
  /** Anybody can have opened it. Deliveries that were stored by earlier versions do not say so. */
  isFromOutside: z.boolean().default(false),
}

export const happening = z.discriminatedUnion('kind', [
  /** A pull request was merged. */
  z.object({ kind: z.literal('merged'), ...about, defaultBranch: branch, mergeSha: sha.nullable() }),
  /** A pull request was opened, reopened or closed. */
  z.object({ kind: z.literal('moved'), ...about, to: z.enum(['opened', 'closed']) }),
  /**
   * A check of a commit ended: it passed, unless `hasPassed` says otherwise. `numbers`: its pull requests, as far as GitHub names
   * them. An earlier version ignores `hasPassed`, reads the checks of the commit, and finds that they have not all passed.
   */
  z.object({
    kind: z.literal('green'),
    repo,
    sha,
    numbers: z.array(z.number().int()).max(100),
    hasPassed: z.boolean().default(true),
  }),
])
export type Happening = z.output<typeof happening>
export type Merged = Extract<Happening, { kind: 'merged' }>
export type Moved = Extract<Happening, { kind: 'moved' }>
export type Green = Extract<Happening, { kind: 'green' }>

const repository = z.object({ full_name: repo, default_branch: branch })
const numbers = z.array(z.object({ number: z.number().int() })).default([])
const good: readonly string[] = ['success', 'neutral', 'skipped']

const pullRequestPayload = z.object({
  action: z.string(),
  repository,
  pull_request: z.object({
    number: z.number().int(),
    html_url: z.string().max(2_000),
    title: z.string(),
    body: z.string().nullish(),
    merged: z.boolean().default(false),
    merge_commit_sha: sha.nullish(),
    ...author,
    head: side.extend({ ref: branch, sha }),
    base: side.extend({ ref: branch }),
  }),
})
const check = z.object({ head_sha: sha, conclusion: z.string().max(100), pull_requests: numbers })
const checkPayload = z.object({
  action: z.literal('completed'),
  repository,
  check_suite: check.optional(),
  check_run: check.optional(),
})
const statusPayload = z.object({ repository, sha, state: z.enum(['success', 'failure', 'error']) })

/** Returns null when there is nothing to act on. Throws a ZodError when a pull request does not look like one. */
export function readHappening(event: string, payload: unknown): Happening | null {
  switch (event) {
    case 'pull_request':
      return ofPullRequest(pullRequestPayload.parse(payload))
    case 'check_suite':
    case 'check_run': {
      const { data } = checkPayload.safeParse(payload)
      const ended = data?.[event]
      return data === undefined || ended === undefined ? null : ofCheck(data.repository.full_name, ended)
    }
    case 'status': {
      const { data } = statusPayload.safeParse(payload)
      if (data === undefined) return null
      const { repository: of, sha: commit, state } = data
      return { kind: 'green', repo: of.full_name, sha: commit, numbers: [], hasPassed: state === 'success' }
    }
    default:
      return null
  }
}

const ofCheck = (name: string, ended: z.output<typeof check>): Green => ({
  kind: 'green',
  repo: name,
  sha: ended.head_sha,
  numbers: ended.pull_requests.slice(0, 100).map((pull) => pull.number),
  hasPassed: good.includes(ended.conclusion),
})

function ofPullRequest({
  action,
  repository: of,
  pull_request: pull,
}: z.output<typeof pullRequestPayload>): Happening | null {
  const facts = {
    repo: of.full_name,
    number: pull.number,
    url: pull.html_url,
    title: pull.title.slice(0, 1_000).toWellFormed().replaceAll('\0', ''),
    branch: pull.head.ref,
    base: pull.base.ref,
    headSha: pull.head.sha,
    keys: keysIn({ branch: pull.head.ref, title: pull.title, body: pull.body ?? '' }),
    isFromOutside: isFromOutside(pull),
  }
  if (action === 'closed' && pull.merged)
    return { kind: 'merged', ...facts, defaultBranch: of.default_branch, mergeSha: pull.merge_commit_sha ?? null }
  if (action === 'closed') return { kind: 'moved', ...facts, to: 'closed' }
  return action === 'opened' || action === 'reopened' ? { kind: 'moved', ...facts, to: 'opened' } : null
}

/**
 * Task keys, in capitals. Branches and titles often write them in small letters; in the text of a body small letters
 * mean nothing.
 */
export function keysIn(text: { branch: string; title: string; body: string }): string[] {
  const small = `${text.branch} ${text.title}`.toUpperCase()
  const found = [...small.matchAll(key), ...text.body.slice(0, 262_144).matchAll(key)]
  return [...new Set(found.map((match) => match[0]))].slice(0, 50)
}
const key = /(?<![A-Za-z0-9])[A-Z][A-Z0-9]{0,15}-\d{1,9}(?![A-Za-z0-9])/g
