import { halfRequest } from '../../kit/half-request.ts'
import type { Reply } from '../../kit/server.ts'
import type { Stage } from '../contract/stage.ts'
import { on, post } from './kit/recipe.ts'
import type { Recipe, ResourceFacts } from './kit/resource-facts.ts'

const liveRun: Recipe = ({ live }) => ({ params: { runId: live.runId } })

/** A run that the stage's device has taken, and that ends afterwards. */
async function withWork(stage: Stage, use: (runId: string, run: { fence: number; token: string }) => Promise<Reply>) {
  const agentId = await stage.agent({}, stage.worker.token)
  await stage.server.ok(`/agents/${agentId}/runs`, { body: {}, token: stage.worker.token })
  const run = await stage.device.take()
  try {
    return await use(run.runId, run)
  } finally {
    const { status } = await stage.server.ok(`/runs/${run.runId}`)
    if (status === 'running') await run.end()
  }
}

export const runRecordFacts: ResourceFacts = {
  requests: {
    'runs.context': liveRun,
    'runs.manifest': liveRun,
    'runs.network': liveRun,
    'runs.changeSet': liveRun,
    'runs.output': ({ live }) => ({ params: { runId: live.runId }, token: live.token, body: { data: { n: 1 } } }),
    'runs.output.get': async ({ server, live }) => {
      await server.ok('/runs/current/output', post({ data: { n: 1 } }, live.token))
      return { params: { runId: live.runId } }
    },
  },
  codes: [
    ...(['context', 'manifest'] as const).map((what) => {
      const code = what === 'context' ? 'run.context_not_stored' : 'run.manifest_not_pinned'
      return on(`runs.${what}`, `404 ${code}`, async (stage) => {
        const runId = await stage.queuedRun()
        // As a run of before it was kept.
        await stage.server.database.root('run_details').where({ run_id: runId }).delete()
        return stage.server.call(`/runs/${runId}/${what}`)
      })
    }),
    on('runs.changeSet', '404 source_unknown', async (stage) =>
      stage.server.call(`/runs/${await stage.queuedRun()}/change-set`),
    ),
    ...(['source_unknown', 'repo_unavailable', 'too_large', 'diff_unavailable'] as const).map((code) => {
      const status = { source_unknown: 404, repo_unavailable: 409, too_large: 413, diff_unavailable: 502 }[code]
      return on('runs.changeSet', `${status} ${code}`, async (stage) => {
        const before = stage.device.changeSetAnswer
        stage.device.changeSetAnswer = () => ({ ok: false, code, message: 'as the device says' })
        const reply = await stage.server.call(`/runs/${stage.live.runId}/change-set`)
        stage.device.changeSetAnswer = before
        return reply
      })
    }),
    on('runs.output', '403 run_output.not_this_run', ({ server, live }) =>
      server.call(`/runs/${live.runId}/output`, post({ data: 1 })),
    ),
    on('runs.output', '409 run_output.run_terminal', (stage) =>
      withWork(stage, (runId, { token }) =>
        halfRequest(stage.server, '/runs/current/output', {
          token,
          body: { data: 1 },
          between: () => stage.endRun(runId),
        }),
      ),
    ),
    on('runs.output', '422 run_output.invalid', ({ server, live }) =>
      server.call('/runs/current/output', post({ schema: 'Unheard', data: 1 }, live.token)),
    ),
  ],
  nothingToRead: {
    'runs.changeSet': 'no device has a run that waits',
    'runs.output.get': 'a run that waits has given no output',
  },
}
