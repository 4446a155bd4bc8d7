import { deleteInBatches } from '../db/dialect.ts'
import { pruneReplies } from '../db/device-replies.ts'
import { pruneOutbox } from '../db/outbox.ts'
import { removeOldSkips } from '../resources/automations/fire-store.ts'
import { removeCircuitsBefore, removeQuotasBefore, removeQuotaUsesBefore } from '../resources/quotas/store.ts'
import { removeOldWakes } from '../run/wakes/wake-store.ts'
import { removeOldGrants } from '../sign-in/device-flow/store.ts'
import { removeOldAttempts } from '../sign-in/oidc/store.ts'
import { removeOldSignIns } from '../sign-in/store.ts'
import type { Sweep } from './sweeper.ts'
import { pruneKeys } from '../http/idempotency-store.ts'

const hour = 3_600_000

/** Removes old rows, some at a time: the outbox's history, answers that nobody fetched, idempotency keys, wake keys, sign-ins. */
export const oldRowsSweep: Sweep = {
  name: 'old_rows',
  everyMs: 5 * 60_000,
  async run({ root, now }) {
    await pruneOutbox(root, now - hour)
    await pruneReplies(root, now - 10 * 60_000)
    await pruneKeys(root, now)
    await deleteInBatches(root, 'wake_keys', root('wake_keys').where('expires_at', '<', now))
    await removeOldWakes(root, now - 24 * hour)
    await removeQuotasBefore(root, now - 24 * hour)
    await removeQuotaUsesBefore(root, now - 24 * hour)
    await removeCircuitsBefore(root, now - 24 * hour)
    await removeOldGrants(root, now - hour)
    await removeOldAttempts(root, now)
    await removeOldSignIns(root, now - hour)
  },
}

/** Removes skips that are 90 days old, because a paused automation records one at each of its instants. */
export const oldSkipsSweep: Sweep = {
  name: 'old_skips',
  everyMs: hour,
  run: async ({ root, now }) => void (await removeOldSkips(root, now - 90 * 24 * hour)),
}
