import { slugOf } from '../agents/rules.ts'

// Decisions about workspaces.

/** The name of the job that removes what a workspace leaves behind. */
export const removalJob = 'remove_workspace'

const longestSlug = 63

/** The slug of a name, or null when the name has no usable letter. */
export function slugFromName(name: string): string | null {
  const slug = slugOf(name)
    .replace(/^[^a-z]+/, '')
    .slice(0, longestSlug)
    .replace(/-+$/, '')
  return slug.length < 2 ? null : slug
}

/** Yields `slug`, `slug-2`, `slug-3`, ..., to try when a slug made from a name is taken. */
export function* slugCandidates(slug: string): Generator<string> {
  yield slug
  for (let number = 2; number < 1_000; number++) {
    const suffix = `-${number}`
    yield slug.slice(0, longestSlug - suffix.length).replace(/-+$/, '') + suffix
  }
}

/** The first three letters of a slug, as capitals. */
export const issuePrefixOf = (slug: string): string =>
  slug
    .replaceAll(/[^a-z]/g, '')
    .slice(0, 3)
    .toUpperCase()

interface Halting {
  agentsPaused: boolean
  status: 'active' | 'archived'
  isBillingLocked: boolean
}

/** Returns why no run may start in the workspace; null: runs may. */
export const haltOf = (workspace: Halting): 'billing_locked' | 'company_paused' | null => {
  if (workspace.isBillingLocked) return 'billing_locked'
  return workspace.agentsPaused || workspace.status === 'archived' ? 'company_paused' : null
}

export const isHalted = (workspace: Halting): boolean => haltOf(workspace) !== null
