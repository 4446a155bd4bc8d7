import { thawMs } from '../resources/quotas/rules.ts'
import { listWorkspacesWithReset } from '../resources/quotas/store.ts'
import type { Sweep } from './sweeper.ts'

/** A round may come late. */
const graceMs = 30_000

/**
 * Offers the runs that wait for an account whose limit is over. They are placed as all others are, which opens the account
 * step by step; so each round looks again until it is open.
 */
export function quotasSweep(options: { everyMs: number; dispatch(workspaceId: string): void }): Sweep {
  return {
    name: 'quotas',
    everyMs: options.everyMs,
    async run({ root, now }) {
      for (const workspaceId of await listWorkspacesWithReset(root, now - thawMs - graceMs, now))
        options.dispatch(workspaceId)
    },
  }
}
