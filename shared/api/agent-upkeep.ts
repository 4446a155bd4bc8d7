import { z } from 'zod'
import { agentParams, agentPositional, agentWarning, ownAgentPositional, orApproval } from './agents.ts'
import { agentId, timestamp } from './ids.ts'
import { defineRoute } from './route.ts'

export const agentUpkeepRoutes = {
  audit: defineRoute({
    id: 'agents.audit',
    endpoint: 'GET /agents/{agentId}/audit',
    summary: "Check an agent's setup for what would keep its runs from working; changes nothing",
    params: agentParams,
    reply: z.object({ agentId, audit: z.array(agentWarning) }).meta({ id: 'AgentAudit' }),
    cli: { command: 'agent doctor', positionals: [ownAgentPositional], example: 'svc agent doctor @builder' },
  }),

  sessionsReset: defineRoute({
    id: 'agents.sessions.reset',
    endpoint: 'POST /agents/{agentId}/sessions/reset',
    summary: 'Make the next runs of an agent start a fresh harness session; tokens of its live runs stop working',
    ...orApproval,
    params: agentParams,
    reply: z.object({ agentId, sessionsResetAt: timestamp }).meta({ id: 'AgentSessionsReset' }),
    errors: ['platform_change_requires_run'],
    cli: {
      command: 'agent sessions reset',
      positionals: [agentPositional],
      example: 'svc agent sessions reset @builder',
    },
  }),
} as const
