import { anAgent } from './kit/agents.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

export const agentUpkeepFacts: ResourceFacts = {
  requests: { 'agents.audit': anAgent, 'agents.sessions.reset': anAgent },
}
