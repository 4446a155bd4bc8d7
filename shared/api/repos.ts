import { z } from 'zod'
import { repoUuid, timestamp } from './ids.ts'
import { listOf } from './paging.ts'
import { defineRoute, peopleOnly, adminsOnly } from './route.ts'

// Repos of a workspace: the git repositories that `repoId` of tasks and folders names.

export const repo = z
  .object({
    object: z.literal('repo'),
    id: repoUuid,
    name: z.string().meta({ example: 'acme/website' }),
    gitRemote: z.string().describe('`host/owner/name`.').meta({ example: 'github.com/acme/website' }),
    defaultBranch: z.string().nullable(),
    provider: z.enum(['github', 'gitlab', 'bitbucket', 'other']),
    host: z.string(),
    createdAt: timestamp,
  })
  .meta({ id: 'Repo' })
export type Repo = z.infer<typeof repo>

/** The most repos of a workspace, all of which are listed; an older workspace may have more. */
export const mostRepos = 5_000

const params = z.object({ repoId: repoUuid.describe('UUID of the repo.') })

export const repoRoutes = {
  list: defineRoute({
    id: 'repos.list',
    endpoint: 'GET /repos',
    summary: 'List the repos of the workspace by name',
    description: `Returns the first ${mostRepos}; \`hasMore\` says that others were left out.`,
    reply: listOf(repo),
    cli: { command: 'repo list', example: 'svc repo list' },
  }),

  add: defineRoute({
    id: 'repos.add',
    endpoint: 'POST /repos',
    summary: 'Let the workspace know a git repository by the address of its remote',
    callers: peopleOnly,
    body: z
      .object({
        gitRemote: z.string().trim().min(1).max(2_000).describe('Its address: https, ssh, or git@host:owner/name.'),
        defaultBranch: z.string().trim().min(1).max(255).nullable().optional().describe('Its default branch.'),
      })
      .meta({ id: 'RepoAdd' }),
    reply: repo,
    status: 201,
    errors: ['duplicate_resource'],
    cli: {
      command: 'repo add',
      positionals: [{ name: 'remote', target: 'body.gitRemote' }],
      example: 'svc repo add git@github.com:acme/website.git',
    },
  }),

  remove: defineRoute({
    id: 'repos.remove',
    endpoint: 'DELETE /repos/{repoId}',
    summary: 'Forget a repo; nothing in it changes',
    callers: adminsOnly,
    params,
    cli: {
      command: 'repo remove',
      asks: true,
      positionals: [{ name: 'repo', target: 'params.repoId' }],
      example: 'svc repo remove 5b0c7d0e-6a7e-4b52-9a8e-2f9d1c3e4a6b',
    },
  }),
} as const
