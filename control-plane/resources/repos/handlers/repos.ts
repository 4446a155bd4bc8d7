import { fail, failField } from '../../../../shared/api/errors.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import { mostRepos, repoRoutes, type Repo } from '../../../../shared/api/repos.ts'
import { databaseTroubleOf } from '../../../db/dialect.ts'
import { answer, implement, type ImplementedRoute } from '../../../http/implement.ts'
import { wholeList } from '../../../http/whole-list.ts'
import { cloneUrlOf, readRemote } from '../rules.ts'
import { countRepos, insertRepo, listRepos, removeRepo, type RepoRow } from '../store.ts'

export function repoHandlers(): ImplementedRoute[] {
  return implement(repoRoutes, {
    async list({ db, caller }) {
      const repos = await listRepos(db, caller.workspaceId, mostRepos + 1)
      const list = wholeList(repos.slice(0, mostRepos).map(presentRepo))
      return { ...list, hasMore: repos.length > mostRepos }
    },

    async add({ db, caller, body, world }) {
      const remote = readRemote(body.gitRemote)
      if (remote === null) return refuse('This is no address of a repository on a git host.')
      if ((await countRepos(db, caller.workspaceId)) >= mostRepos) refuse(`A workspace has at most ${mostRepos} repos.`)
      const repo: RepoRow = {
        ...remote,
        id: world.uuid(),
        workspaceId: caller.workspaceId,
        cloneUrl: cloneUrlOf(body.gitRemote),
        defaultBranch: body.defaultBranch ?? null,
        createdAt: world.now(),
      }
      try {
        await insertRepo(db, repo)
      } catch (error) {
        if (databaseTroubleOf(error) === 'duplicate')
          fail('duplicate_resource', {
            param: 'gitRemote',
            message: `${repo.gitRemote} is here already.`,
            cause: error,
          })
        throw error
      }
      return answer(201, presentRepo(repo))
    },

    async remove({ db, caller, params }) {
      if (!(await removeRepo(db, caller.workspaceId, params.repoId))) fail('resource_not_found', { param: 'repoId' })
    },
  })
}

const refuse = (message: string): never => failField('gitRemote', message)

function presentRepo(repo: RepoRow): Repo {
  const { id, name, gitRemote, defaultBranch, provider, host, createdAt } = repo
  return { object: 'repo', id, name, gitRemote, defaultBranch, provider, host, createdAt: toTimestamp(createdAt) }
}
