import { pullOf, sha } from '../../kit/fake-github.ts'
import { on } from './kit/recipe.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'
import { makeTask } from './kit/tasks.ts'

export const pullRequestFacts: ResourceFacts = {
  requests: {
    'tasks.pullRequest': async (stage) => {
      const { server, github } = stage
      const task = await makeTask(stage)
      const pull = pullOf('acme/web', { number: 1 })
      github.answers.set('/acme/web/pulls/1', pull)
      github.answers.set(`/acme/web/commits/${sha('a')}/check-runs`, { check_runs: [] })
      github.answers.set(`/acme/web/commits/${sha('a')}/status`, { statuses: [] })
      const known = JSON.stringify({ number: 1, url: pull.html_url })
      await server.database.root('tasks').where({ id: task.id }).update({ pull_request: known })
      return { params: { companyId: stage.owner.workspaceId, taskId: task.id } }
    },
  },
  codes: [
    on('tasks.pullRequest', '404 task_not_found', ({ server, owner }) =>
      server.call(`/companies/${owner.workspaceId}/tasks/NOPE-1/pull-request`),
    ),
  ],

  unknownIds: { companyId: '00000000-0000-4000-8000-00000000000e' },
  things: async ({ person }) => ({ companyId: person.workspaceId }),
  nothingToRead: { 'tasks.pullRequest': 'a new task has no pull request' },
  seldomNamed: ['companyId'],
}
