import type { RunEffect } from '../../../run/effects.ts'
import { clearTold } from '../store.ts'

/** A run that never began told its agent nothing of the changes it had asked for: the next one does. */
export const forgetTold: RunEffect = async (db, run) => {
  if (run.startedAt === null) await clearTold(db, run.id)
}
