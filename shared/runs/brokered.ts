import { z } from 'zod'

// A run in a sandbox reaches the provider of its model by plain HTTP at a path of its broker, which adds the key outside. What the run has
// in place of the key is no secret.

export const modelProviders = ['anthropic', 'openai'] as const
export type ModelProvider = (typeof modelProviders)[number]

/** Part of a run's spec. */
export const brokeredModel = z.object({
  provider: z.enum(modelProviders),
  /** The variable in which its harness looks for a key. */
  variable: z.string().regex(/^[A-Z][A-Z0-9_]{0,99}$/),
})
export type BrokeredModel = z.infer<typeof brokeredModel>

/** Variables of keys that a broker can add, with the header in which the provider takes each. */
export const brokeredKeys: Readonly<Record<string, { provider: ModelProvider; header: 'bearer' | 'x-api-key' }>> = {
  ANTHROPIC_AUTH_TOKEN: { provider: 'anthropic', header: 'bearer' },
  ANTHROPIC_API_KEY: { provider: 'anthropic', header: 'x-api-key' },
  CLAUDE_CODE_OAUTH_TOKEN: { provider: 'anthropic', header: 'bearer' },
  CODEX_API_KEY: { provider: 'openai', header: 'bearer' },
  OPENAI_API_KEY: { provider: 'openai', header: 'bearer' },
}

/** The variable of a provider's key that each of its harnesses knows. */
export const usualKey: Readonly<Record<ModelProvider, string>> = {
  anthropic: 'ANTHROPIC_API_KEY',
  openai: 'OPENAI_API_KEY',
}

/** Variables of tokens with which a broker signs in to git hosts. Each other host has one that is made of its name. */
export const gitTokens = {
  'github.com': ['GITHUB_TOKEN', 'GH_TOKEN'],
  'gitlab.com': ['GITLAB_TOKEN'],
  'bitbucket.org': ['BITBUCKET_TOKEN'],
} as const satisfies Readonly<Record<string, readonly string[]>>
const usualGitTokens = new Set<string>(Object.values(gitTokens).flat())

/** Tells whether a broker knows what a variable is for: a provider of models, or a git host. */
export const isKnownToBroker = (name: string): boolean =>
  brokeredKeys[name] !== undefined || usualGitTokens.has(name) || /^REPO_[A-Z0-9_]+_TOKEN$/.test(name)

/** The path of a provider at the broker. */
export const modelPath = (provider: ModelProvider): string => `/model/${provider}`

/** The path of an MCP server of the run at the broker. */
export const mcpPath = (name: string): string => `/mcp/${name}`

/** The header of answers that the broker gives in place of an MCP server: their text says why, in words for the model. */
export const brokerRefusal = 'svc-broker-refusal'

/** The text that stands in place of a key. */
export const placeholderKey = 'the-broker-adds-the-key'
