import { anAgentWith } from './kit/agents.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

const noCloud = 'a cloud wake is declined as cloud_disabled'

export const agentRunFacts: ResourceFacts = {
  requests: { 'agents.runs.start': anAgentWith({ prompt: 'Build' }) },
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
