import { revisedConfig, type HistoryKind, type RevisedConfig } from '../../../../shared/api/agent-history.ts'
import { hashAgentMd } from '../agent-md.ts'
import { withConfig } from '../rules.ts'
import type { AgentRow } from '../store.ts'

// Decisions about returning to earlier settings.

/** Earlier values are kept of settings and AGENT.md alone. */
export const isRevertible = (kind: HistoryKind): boolean => kind !== 'sessions'

/** The kind of a change of these dotted keys. */
export function kindOfChange(keys: readonly string[]): HistoryKind {
  if (keys.every((key) => ruleKeys.includes(key))) return 'rule'
  return keys.every((key) => key === 'runtime.skillFolders') ? 'skill' : 'config'
}
const ruleKeys = (['allow', 'ask', 'deny'] as const).map((list) => `permissions.tools.${list}`)

/** The settings that a revision kept: all of them, or only those of these dotted keys. */
export function keptConfig(kept: Record<string, unknown>, keys?: readonly string[]): RevisedConfig {
  if (keys === undefined) return revisedConfig.parse(kept)
  const picked: Record<string, unknown> = {}
  for (const key of keys) {
    const path = key.split('.')
    const last = path.pop() ?? ''
    let [from, to]: [unknown, Record<string, unknown>] = [kept, picked]
    for (const part of path) {
      from = (from as Record<string, unknown> | undefined)?.[part]
      to = (to[part] ??= {}) as Record<string, unknown>
    }
    to[last] = (from as Record<string, unknown> | undefined)?.[last]
  }
  return revisedConfig.parse(picked)
}

/** The agent with the given settings, and with AGENT.md if it is given; everything else stays. */
export function withRevised(agent: AgentRow, { agentMd, ...config }: RevisedConfig): AgentRow {
  const configured = withConfig(agent, config)
  return agentMd === undefined ? configured : { ...configured, agentMd, agentMdHash: hashAgentMd(agentMd) }
}
