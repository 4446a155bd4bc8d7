import { brokerPort } from '../../../shared/device/sandbox.ts'
import { mcpPath, modelPath, placeholderKey, type ModelProvider } from '../../../shared/runs/brokered.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'

// The ways from a sandbox to the model of its run and to MCP servers: through the broker, which adds what they sign in with.

const broker = `http://127.0.0.1:${brokerPort}`

/** The address as the variables of the providers' own libraries have it. */
const baseOf: Readonly<Record<ModelProvider, readonly [variable: string, address: string]>> = {
  anthropic: ['ANTHROPIC_BASE_URL', `${broker}${modelPath('anthropic')}`],
  openai: ['OPENAI_BASE_URL', `${broker}${modelPath('openai')}/v1`],
}

/** The address of a provider with the version of its API. */
export const versionedBase = (provider: ModelProvider): string => `${broker}${modelPath(provider)}/v1`

/** Whether it is the address of an MCP server at the broker, as the spec of a run in a sandbox has it. */
export const leadsToBroker = (url: string): boolean => url.startsWith(`${broker}${mcpPath('')}`)

/** Variables of a run; none of them is a secret. */
export function brokerVariables({ brokeredModel }: Pick<RunSpec, 'brokeredModel'>): Record<string, string> {
  if (brokeredModel == null) return {}
  const [variable, address] = baseOf[brokeredModel.provider]
  return { [variable]: address, [brokeredModel.variable]: placeholderKey }
}

/** Variables of all that runs in a sandbox: hosts of the outside are reached through the broker, or not at all. */
export const proxyVariables: Readonly<Record<string, string>> = {
  ...Object.fromEntries(['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'].map((name) => [name, broker])),
  ...Object.fromEntries(['NO_PROXY', 'no_proxy'].map((name) => [name, '127.0.0.1,localhost,::1'])),
  // Without it `fetch` of Node knows of no proxy.
  NODE_USE_ENV_PROXY: '1',
}
