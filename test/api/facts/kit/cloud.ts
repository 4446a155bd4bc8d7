import { startEngineless } from '../../../kit/engineless.ts'
import type { Reply } from '../../../kit/server.ts'
import type { Stage } from '../../contract/stage.ts'
import { on } from './recipe.ts'
import type { CodeRecipe } from './resource-facts.ts'

// Codes of runs in the cloud, on a server on which the operator pays for the models of Anthropic.

const agents = {
  credits_harness_unsupported: { harness: 'opencode', model: 'anthropic/claude-sonnet-4-5' },
  credential_unbrokerable: { harness: 'cursor' },
} as const

async function inCloud(stage: Stage, route: string, agent: Record<string, unknown>): Promise<Reply> {
  const server = await stage.other('with credits', () =>
    startEngineless({ SVC_SANDBOX_ANTHROPIC_KEY: 'sk-ant-operator' }),
  )
  const { id } = await server.createAgent(agent)
  const before = await server.ok(`/agents/${id}/runs`, { body: { prompt: 'Build' } })
  await server.ok(`/runs/${before.runPublicId}/cancel`, { body: {} })
  await server.ok(`/agents/${id}/config`, { method: 'PUT', body: { config: { runtime: { environment: 'cloud' } } } })
  return route === 'runs.retry'
    ? server.call(`/runs/${before.runPublicId}/retry`, { body: {} })
    : server.call(`/agents/${id}/runs`, { body: { prompt: 'Build' } })
}

/** `route`: that starts a run, or that retries one of an agent which has gone to the cloud since. */
export const keylessCodes = (route: 'agents.runs.start' | 'runs.retry'): CodeRecipe[] =>
  Object.entries(agents).map(([code, agent]) => on(route, `422 ${code}`, (stage) => inCloud(stage, route, agent)))
