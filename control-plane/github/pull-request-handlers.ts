import { fail } from '../../shared/api/errors.ts'
import { pullRequestRoutes, type PullRequest } from '../../shared/api/pull-requests.ts'
import type { Db } from '../db/open.ts'
import { implement, type ImplementedRoute } from '../http/implement.ts'
import type { ResourceDependencies } from '../resources/dependencies.ts'
import { findProject } from '../resources/projects/store.ts'
import { isBound } from '../resources/repos/binding-store.ts'
import { readRemote } from '../resources/repos/rules.ts'
import { findRepo } from '../resources/repos/store.ts'
import { readableTask } from '../resources/tasks/lookup.ts'
import type { TaskRow } from '../resources/tasks/store.ts'
import { namedWorkspace } from '../resources/workspaces/lookup.ts'
import { GithubTrouble, type GithubClient } from './client.ts'
import { findPullOfBranch, readChecks, readPull, type Checks, type Pull } from './reads.ts'

/** The pull request of a task, as the git host has it now. */
export function pullRequestHandlers({ github }: Pick<ResourceDependencies, 'github'>): ImplementedRoute[] {
  return implement(pullRequestRoutes, {
    async ofTask({ db, caller, params, log }) {
      await namedWorkspace(db, caller, params.companyId)
      const task = await readableTask(db, caller, params.taskId)
      if (github === null) return fail('github_not_installed')
      try {
        return (await read(db, github, task)) ?? noPullRequest()
      } catch (error) {
        if (!(error instanceof GithubTrouble)) throw error
        log.warn({ err: error, taskId: task.id }, 'the git host could not be read')
        return fail('git_host_unavailable', { cause: error })
      }
    },
  })
}

function noPullRequest(): never {
  return fail('resource_not_found', {
    param: 'taskId',
    message: 'The task has no pull request that this server can see.',
  })
}

async function read(db: Db, github: GithubClient, task: TaskRow): Promise<PullRequest | null> {
  const place = knownPull(task, github.host) ?? (await pullOfBranch(db, github, task))
  if (place === null || !(await isBound(db, task.workspaceId, place.repo))) return null
  const pull = await readPull(github, place.repo, place.number)
  if (pull === null) return null
  return present({ task, repo: place.repo, pull, checks: await readChecks(github, place.repo, pull.headSha) })
}

interface Place {
  repo: string
  number: number
}

/**
 * Reads the place from the task's stored address. Addresses of other hosts are ignored: the token is for this host
 * only.
 */
function knownPull(task: TaskRow, host: string): Place | null {
  const match = /^https?:\/\/([^/]+)\/([^/]+\/[^/]+)\/pull\/(\d{1,9})\b/.exec(task.pullRequest?.url ?? '')
  if (match === null || match[1]!.toLowerCase() !== host) return null
  return { repo: match[2]!.toLowerCase(), number: Number(match[3]) }
}

/** Finds the pull request by the task's branch in its repository, else in its project's. */
async function pullOfBranch(db: Db, github: GithubClient, task: TaskRow): Promise<Place | null> {
  if (task.branchName === null) return null
  const repo = await repoOf(db, github.host, task)
  const isReachable = repo !== null && (await isBound(db, task.workspaceId, repo))
  const number = !isReachable ? null : await findPullOfBranch(github, repo, task.branchName)
  return repo === null || number === null ? null : { repo, number }
}

async function repoOf(db: Db, host: string, task: TaskRow): Promise<string | null> {
  if (task.repoId !== null) {
    const repo = await findRepo(db, task.workspaceId, task.repoId)
    return repo?.host === host ? repo.name : null
  }
  const project = task.projectId === null ? null : await findProject(db, task.workspaceId, task.projectId)
  const remote = project?.repoUrl == null ? null : readRemote(project.repoUrl)
  return remote?.host === host ? remote.name : null
}

function present(found: { task: TaskRow; repo: string; pull: Pull; checks: Checks }): PullRequest {
  const { task, repo, checks } = found
  const { body: _, isFromOutside: _outside, isOpen, branch, base, ...pull } = found.pull
  return {
    object: 'pull_request',
    taskId: task.key,
    repo,
    ...pull,
    state: pull.mergedAt !== null ? 'merged' : isOpen ? 'open' : 'closed',
    headBranch: branch,
    baseBranch: base,
    checks,
  }
}
