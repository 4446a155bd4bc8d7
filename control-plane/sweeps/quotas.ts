import { trialMs } from '../resources/quotas/circuit-rules.ts'
import { listWorkspacesWithTrial } from '../resources/quotas/circuit-store.ts'
import { thawMs } from '../resources/quotas/rules.ts'
import { listWorkspacesWithReset } from '../resources/quotas/store.ts'
import type { Sweep } from './sweeper.ts'

/** A round may come late. */
const graceMs = 30_000

/**
 * Offers the runs that wait for an account whose limit is over, or for a provider that is tried again. They are placed as all
 * others are, which opens both step by step; so each round looks again until they are open.
 */
export function quotasSweep(options: { everyMs: number; dispatch(workspaceId: string): void }): Sweep {
  return {
    name: 'quotas',
    everyMs: options.everyMs,
    async run({ root, now }) {
      const reset = await listWorkspacesWithReset(root, now - thawMs - graceMs, now)
      const tried = await listWorkspacesWithTrial(root, now - trialMs - graceMs, now)
      for (const workspaceId of new Set([...reset, ...tried])) options.dispatch(workspaceId)
    },
  }
}
