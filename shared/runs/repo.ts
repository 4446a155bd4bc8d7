import { z } from 'zod'
import { idIn } from '../lib/id-schema.ts'
import type { RepoUuid } from '../lib/ids.ts'
import { sandboxPlaces } from './sandbox-places.ts'

/** The repository of a run in a sandbox, as part of its spec: what is cloned, and where the work goes. */
export const runRepo = z.object({
  id: idIn<RepoUuid>(z.string().max(64)),
  /** The address, as the clone names its origin; null: the workspace has no such repository any more. */
  address: z.string().max(2_100).nullable(),
  /** The branch from which the work begins; null: the one that the git host calls the repository's own. */
  baseBranch: z.string().max(255).nullable(),
  /** The one branch to which the run may push. It goes on where the branch is, if there is one. */
  branch: z.string().max(255),
  /** Takes what could not be pushed. */
  rescueBranch: z.string().max(255),
})
export type RunRepo = z.infer<typeof runRepo>

/** The folder of the clone in a sandbox: on its volume. */
export const cloneFolder = `${sandboxPlaces.work}/repo`

/** The path below which the broker has repositories. */
export const repoPaths = '/git/'

/** The path of a repository at the broker, in front of what git asks for. */
export const repoPath = (id: RepoUuid): string => `${repoPaths}${id}`

/** Tells whether git takes it for the name of a branch (git-check-ref-format(1)). */
export const isBranchName = (name: string): boolean =>
  !/[\s\p{Cc}\p{Cs}~^:?*[\\]|\.\.|@\{|[/.]$|^@$|^HEAD$/u.test(name) &&
  name.split('/').every((part) => part !== '' && !/^[.-]|\.lock$/.test(part))
