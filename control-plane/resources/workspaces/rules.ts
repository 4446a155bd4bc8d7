import { slugOf } from '../agents/rules.ts'

/** Decisions about workspaces (document 1, "Workspace"). */

const longestSlug = 63

/** The slug a name gives, or null when nothing of the name can be written in one. */
export function slugFromName(name: string): string | null {
  const slug = slugOf(name)
    .replace(/^[^a-z]+/, '')
    .slice(0, longestSlug)
    .replace(/-+$/, '')
  return slug.length < 2 ? null : slug
}

/** `slug`, `slug-2`, `slug-3`, ...: what to try when a slug made from a name is taken. */
export function* slugCandidates(slug: string): Generator<string> {
  yield slug
  for (let number = 2; number < 1_000; number++) {
    const suffix = `-${number}`
    yield slug.slice(0, longestSlug - suffix.length).replace(/-+$/, '') + suffix
  }
}

/** Its first three letters, as capitals. */
export const issuePrefixOf = (slug: string): string =>
  slug
    .replaceAll(/[^a-z]/g, '')
    .slice(0, 3)
    .toUpperCase()

/** Nothing starts a run in such a workspace. */
export const isHalted = (workspace: { agentsPaused: boolean; status: 'active' | 'archived' }): boolean =>
  workspace.agentsPaused || workspace.status === 'archived'
