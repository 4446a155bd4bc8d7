import { z } from 'zod'

/**
 * The author of something at GitHub, as far as it matters whether anybody could have written it: everyone may write to a public repository.
 */
export const author = {
  author_association: z.string().default('NONE'),
  user: z.object({ login: z.string(), type: z.string().default('User') }).nullish(),
}

const team = new Set(['OWNER', 'MEMBER', 'COLLABORATOR'])

/** The author belongs to the repository's owner, or was invited to it. */
export const isOfTeam = ({ author_association: association }: { author_association: string }): boolean =>
  team.has(association)

/** Returns whether a review is of the team; an app that is installed in the repository may write one as well. */
export const isReviewerOfTeam = (review: z.output<z.ZodObject<typeof author>>): boolean =>
  isOfTeam(review) || review.user?.type === 'Bot'

/** A side of a pull request. `repo`: null where the repository was deleted. */
export const side = z.object({ ref: z.string(), repo: z.object({ id: z.number() }).nullish() })

/**
 * Anybody can have opened it: it comes from another repository, and its author is not of the team. Branches of the repository
 * itself are made by who may push to it.
 */
export function isFromOutside(pull: {
  head: z.output<typeof side>
  base: z.output<typeof side>
  author_association: string
}): boolean {
  const { head, base } = pull
  const isOwnBranch = base.repo != null && head.repo?.id === base.repo.id
  return !isOwnBranch && !isOfTeam(pull)
}
