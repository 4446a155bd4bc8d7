import { skillLimits } from '../../../shared/api/skill-fields.ts'
import type { PluginRow } from './plugin-store.ts'
import type { ShareRow } from './own/share-store.ts'
import type { SkillRow } from './store.ts'

// Decisions about skills.

interface Enabling {
  /** The agent's own; undefined: it has none. */
  override: boolean | undefined
  plugin: Pick<PluginRow, 'enabled'> | null
}

/** Returns whether a run of the agent gets the skill. */
export function isEffective(
  { enabledByDefault }: Pick<SkillRow, 'enabledByDefault'>,
  { override, plugin }: Enabling,
): boolean {
  return (override ?? enabledByDefault) && (plugin === null || plugin.enabled)
}

export const isOfPlugin = ({ sourceType }: Pick<SkillRow, 'sourceType'>): boolean => sourceType === 'plugin'

/** Returns whether the skill's words are those of a plugin or of the server, which nobody changes in it. */
export const hasFixedWords = (skill: Pick<SkillRow, 'sourceType'>): boolean =>
  isOfPlugin(skill) || skill.sourceType === 'builtin'

export const isShareOver = ({ expiresAt, revokedAt, skillId }: ShareRow, now: number): boolean =>
  skillId === null || revokedAt !== null || (expiresAt !== null && expiresAt <= now)

/** The number of slugs that are tried for a copy; there are never so many copies. */
const mostCopies = 1_000

/** The slugs for a copy, in their order: `x`, `x-2`, `x-3`; cut so that each has at most 64 characters. */
export function* slugsForCopy(slug: string): Generator<string> {
  yield slug
  for (let number = 2; number <= mostCopies; number++) {
    const end = `-${number}`
    yield slug.slice(0, skillLimits.slug - end.length) + end
  }
}

/** A token has about four characters. */
export const tokensOf = (bytes: number): number => Math.ceil(bytes / 4)

/** The time for which a bundle that was replaced is kept, in ms: no run waits and works longer. */
export const retiredMs = 48 * 3_600_000
