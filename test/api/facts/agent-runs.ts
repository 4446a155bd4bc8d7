import type { Stage } from '../contract/stage.ts'
import { anAgentWith } from './kit/agents.ts'
import { on } from './kit/recipe.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

const noCloud = 'a cloud wake is declined as cloud_disabled'

/** Wakes an agent with choices for this run alone. */
const wake = async (stage: Stage, choices: object) =>
  stage.server.call(`/agents/${await stage.agent()}/runs`, { body: { prompt: 'Build', ...choices } })

export const agentRunFacts: ResourceFacts = {
  requests: { 'agents.runs.start': anAgentWith({ prompt: 'Build' }) },
  codes: [
    on('agents.runs.start', '400 model_not_found', (stage) => wake(stage, { model: 'no-such-model' })),
    on('agents.runs.start', '400 reasoning_effort_unsupported', (stage) =>
      wake(stage, { model: 'gpt-5', reasoningEffort: 'max' }),
    ),
    on('agents.runs.start', '422 harness_model_unsupported', (stage) =>
      wake(stage, { model: 'gpt-5', harness: 'claude' }),
    ),
  ],
  unprovoked: {
    credits_harness_unsupported: `there are no cloud runs paid by credits: ${noCloud}`,
    credential_unbrokerable: `there are no cloud runs with a key of their own: ${noCloud}`,
  },
  places: [
    [
      'agents.runs.start',
      'POST',
      async (stage, ids) => ({ path: `/agents/${await stage.agent()}/runs`, body: { taskId: ids['taskId'] } }),
    ],
  ],
}
