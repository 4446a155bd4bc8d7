import { z } from 'zod'

/**
 * How a run in a sandbox reaches the provider of its model: by plain HTTP at a path of its broker, which adds the key outside. What the
 * run has in place of the key is no secret.
 */

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

/** The path of a provider at the broker. */
export const modelPath = (provider: ModelProvider): string => `/model/${provider}`

/** What stands in place of a key. */
export const placeholderKey = 'the-broker-adds-the-key'
