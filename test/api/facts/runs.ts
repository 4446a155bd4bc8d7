import { keylessCodes } from './kit/cloud.ts'
import { manyIds, on, patch, plain, post } from './kit/recipe.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

export const runFacts: ResourceFacts = {
  requests: {
    'runs.list': plain,
    'runs.get': ({ live }) => ({ params: { runId: live.runId } }),
    'runs.cancel': async (stage) => ({ params: { runId: await stage.queuedRun() }, body: { reason: 'enough' } }),
    'runs.retry': async (stage) => ({ params: { runId: await stage.cancelledRun() }, body: { reason: 'again' } }),
  },
  codes: [
    on('runs.list', '400 too_many_ids', (stage) => manyIds(stage, '/runs', 'run_0000000000000000')),
    on('runs.list', '400 ids_exclusive', ({ server, live }) => server.call(`/runs?ids=${live.runId}&limit=5`)),
    on('runs.list', '400 expand.not_allowed_on_list', ({ server }) => server.call('/runs?expand[]=latestEvents')),
    on('runs.get', '400 expand_unknown', ({ server, live }) => server.call(`/runs/${live.runId}?expand[]=everything`)),
    on('runs.cancel', '409 run.not_cancellable', async (stage) =>
      stage.server.call(`/runs/${await stage.cancelledRun()}/cancel`, post()),
    ),
    on('runs.retry', '409 run.not_retriable', ({ server, live }) => server.call(`/runs/${live.runId}/retry`, post())),
    on('runs.retry', '503 run.not_retriable', async (stage) => {
      const { agentId, runId } = await stage.caller()
      await stage.server.ok(`/runs/${runId}/cancel`, post())
      await stage.server.ok(`/agents/${agentId}`, patch({ status: 'terminated' }))
      return stage.server.call(`/runs/${runId}/retry`, post())
    }),
    ...keylessCodes('runs.retry'),
    on('runs.cancel', '403 run.cancel_forbidden', async (stage) =>
      stage.server.call(`/runs/${await stage.queuedRun()}/cancel`, post({}, stage.member.token)),
    ),
    on('runs.retry', '403 run.cancel_forbidden', async (stage) =>
      stage.server.call(`/runs/${await stage.cancelledRun()}/retry`, post({}, stage.member.token)),
    ),
  ],

  unknownIds: { runId: 'run_0000000000000000' },
  things: async ({ server, person, agentId }) => ({ runId: await server.startRun(agentId, {}, person.token) }),
  places: [
    ['runs.list', 'GET', (_, ids) => ({ path: `/runs?ids=${ids['runId']}` })],
    ['runs.list', 'GET', (_, ids) => ({ path: `/runs?agent=${ids['agentId']}` })],
    ['runs.list', 'GET', (_, ids) => ({ path: `/runs?task=${ids['taskId']}` })],
  ],
}
