import type { ResourceFacts } from './kit/resource-facts.ts'

export const costFacts: ResourceFacts = {
  requests: {
    'costs.list': () => ({ query: { by: 'task' } }),
    'runs.cost': ({ live }) => ({ params: { runId: live.runId } }),
  },
  codes: [],
}
