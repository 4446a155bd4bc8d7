import type { RepoUuid } from '../../../shared/lib/ids.ts'
import { addressOfRepo } from '../../resources/repos/rules.ts'
import { isBound } from '../../resources/repos/binding-store.ts'
import { findRepo, type RepoRow } from '../../resources/repos/store.ts'
import { gitTokens } from '../../../shared/runs/brokered.ts'
import { isBranchName, type RunRepo } from '../../../shared/runs/repo.ts'
import type { RunRow } from '../../resources/runs/store.ts'
import type { Knex } from 'knex'

/** The branches of its repository that a run may reach, and the way there. */
export interface RepoPermit {
  id: RepoUuid
  url: string
  /** The branch to which the run pushes; null: it may push no more, but for what is to be rescued. */
  branch: string | null
  rescueBranch: string
  /**
   * Looks up the credential of the account as which git is asked, when it is needed: it may be asked for elsewhere. null: git is asked as
   * nobody.
   */
  credential(): Promise<RepoCredential | null>
}

export interface RepoCredential {
  user: string
  secret: string
}

export interface RepoSourcesOfKeys {
  root: Knex
  /** The value of a secret of the agent, by the first of these names of variables that it has; null: it has none that can be used. */
  secretOf: (run: RunRow, names: readonly string[]) => Promise<string | null>
  /** The server's own connection to a git host; `tokenFor` answers null for a repository that it does not reach. */
  gitHost: { host: string; tokenFor: (repository: string) => Promise<string | null> } | null
}

export async function findRepoPermit(
  sources: RepoSourcesOfKeys,
  run: RunRow,
  { id, branch, rescueBranch }: RunRepo,
): Promise<RepoPermit | null> {
  const repo = await findRepo(sources.root, run.workspaceId, id)
  const url = repo === null ? null : URL.parse(addressOfRepo(repo))
  if (repo === null || url === null || !isBranchName(branch) || !isBranchName(rescueBranch)) return null
  return {
    id,
    url: url.href,
    branch: run.endedAt === null ? branch : null,
    rescueBranch,
    credential: () => credentialOf(sources, run, { repo, url }),
  }
}

/** The agent's own before the server's, which is for the repositories alone that the operator bound to the workspace. */
async function credentialOf(
  { root, secretOf, gitHost }: RepoSourcesOfKeys,
  run: RunRow,
  { repo, url }: { repo: RepoRow; url: URL },
): Promise<RepoCredential | null> {
  const own = await secretOf(run, variablesFor(url))
  if (own !== null) return accountIn(own, url)
  const isOfHost =
    gitHost !== null && url.protocol === 'https:' && url.host === gitHost.host && repo.host === gitHost.host
  if (!isOfHost || !(await isBound(root, run.workspaceId, repo.name))) return null
  const token = await gitHost.tokenFor(repo.name)
  return token === null ? null : { user: 'x-access-token', secret: token }
}

const usual: Readonly<Record<string, { names: readonly string[]; user: string }>> = {
  'github.com': { names: gitTokens['github.com'], user: 'x-access-token' },
  'gitlab.com': { names: gitTokens['gitlab.com'], user: 'oauth2' },
  'bitbucket.org': { names: gitTokens['bitbucket.org'], user: 'x-token-auth' },
}

/**
 * Names of variables of secrets that are for this host, and for no other: each host has one of its own. Whoever adds a repository names a
 * host, and must not come so by what is for another.
 */
export function variablesFor({ host }: URL): string[] {
  const own = host.toUpperCase().replaceAll('-', '__').replaceAll(/[.:]/g, '_')
  return [`REPO_${own}_TOKEN`, ...(usual[host]?.names ?? [])]
}

/** `user:password`, or a token alone. */
function accountIn(secret: string, { host }: URL): RepoCredential {
  const colon = secret.indexOf(':')
  if (colon > 0) return { user: secret.slice(0, colon), secret: secret.slice(colon + 1) }
  return { user: usual[host]?.user ?? 'git', secret }
}
