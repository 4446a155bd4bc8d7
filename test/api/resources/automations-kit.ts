import { TestServer, type ServerOptions } from '../../kit/server.ts'

// Shares what tests of automations do over and over.

export interface WakingAgent {
  id: string
  handle: string
}

export async function startWithAgent(options: ServerOptions = {}): Promise<{ server: TestServer; agent: WakingAgent }> {
  const server = await TestServer.start(options)
  return { server, agent: await server.createAgent() }
}

/** By a webhook, unless another trigger is given. */
export const createAutomation = (server: TestServer, agentId: string, changes: Record<string, unknown> = {}) =>
  server.ok('/automations', {
    body: { name: 'a', trigger: { type: 'webhook' }, agentId, prompt: 'Look.', ...changes },
  })

export const runsOf = async (server: TestServer, id: string) => (await server.ok(`/automations/${id}/runs`)).data

/** Why fires were skipped, newest first. */
export const skipsOf = async (server: TestServer, id: string): Promise<string[]> =>
  (await server.ok(`/automations/${id}/skips`)).data.map(({ reason }: { reason: string }) => reason)

export const triggered = (runId: unknown) => ({ object: 'automation_fire', kind: 'triggered', runId })
export const skipped = (reason: string) => ({ object: 'automation_fire', kind: 'skipped', reason, runId: null })
