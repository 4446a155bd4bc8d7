import type { Stage } from '../contract/stage.ts'
import { anAgentWith } from './kit/agents.ts'
import { keylessCodes } from './kit/cloud.ts'
import { on } from './kit/recipe.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

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
    ...keylessCodes('agents.runs.start'),
  ],
  places: [
    [
      'agents.runs.start',
      'POST',
      async (stage, ids) => ({ path: `/agents/${await stage.agent()}/runs`, body: { taskId: ids['taskId'] } }),
    ],
  ],
}
