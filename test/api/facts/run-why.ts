import type { ResourceFacts } from './kit/resource-facts.ts'

export const runWhyFacts: ResourceFacts = {
  requests: { 'runs.why': ({ live }) => ({ params: { runId: live.runId } }) },
  codes: [],
}
