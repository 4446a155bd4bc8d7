import { z } from 'zod'
import { taskRef, timestamp, workspaceUuid } from './ids.ts'
import { defineRoute } from './route.ts'

// The pull request of a task, as the git host has it now.

export const pullRequestStates = ['open', 'closed', 'merged'] as const
export const checkStates = ['none', 'pending', 'passed', 'failed'] as const

export const pullRequest = z
  .object({
    object: z.literal('pull_request'),
    taskId: z.string().describe('The task key.'),
    repo: z.string().describe('owner/name, lower-case.'),
    number: z.number().int(),
    url: z.string(),
    title: z.string(),
    state: z.enum(pullRequestStates),
    isDraft: z.boolean(),
    author: z.string().nullable().describe('Login at the git host.'),
    headBranch: z.string(),
    headSha: z.string(),
    baseBranch: z.string(),
    isMergeable: z.boolean().nullable().describe('null: the git host has not found out yet.'),
    checks: z
      .object({
        state: z.enum(checkStates),
        passed: z.number().int(),
        failed: z.number().int(),
        pending: z.number().int(),
      })
      .describe('Checks and commit statuses at the head.'),
    commits: z.number().int(),
    changedFiles: z.number().int(),
    additions: z.number().int(),
    deletions: z.number().int(),
    createdAt: timestamp,
    updatedAt: timestamp,
    closedAt: timestamp.nullable(),
    mergedAt: timestamp.nullable(),
  })
  .meta({ id: 'PullRequest' })
export type PullRequest = z.infer<typeof pullRequest>

const params = z.object({
  companyId: workspaceUuid.describe('UUID of the workspace.'),
  taskId: taskRef,
})

export const pullRequestRoutes = {
  ofTask: defineRoute({
    id: 'tasks.pullRequest',
    endpoint: 'GET /companies/{companyId}/tasks/{taskId}/pull-request',
    aliases: { '/workspaces/{companyId}/tasks/{taskId}/pull-request': 'workspaces.tasks.pullRequest' },
    summary: "Read a task's pull request live from the git host",
    description: 'A task without a pull request is answered 404 `resource_not_found`.',
    params,
    reply: pullRequest,
    errors: ['task_not_found', 'github_not_installed', 'git_host_unavailable'],
    cli: {
      command: 'task pull-request',
      positionals: [{ name: 'task', target: 'params.taskId' }],
      flags: { company: { target: 'params.companyId', fallback: 'own_workspace', description: 'The workspace.' } },
      example: 'svc task pull-request current',
    },
  }),
} as const
