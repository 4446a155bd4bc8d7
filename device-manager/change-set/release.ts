import { olderStore, readBaseRecord, removeOlderStore, removeStore } from './base-store.ts'
import { defaultLimits } from './limits.ts'
import { removeRef, changeReftable, hasReftable } from './plain-ref.ts'
import type { BaseSnapshot } from './snapshot.ts'

/** Removes what was kept of a base: the private folder and the ref. May be called twice; never throws. */
export async function releaseBase(base: Pick<BaseSnapshot, 'storeDir' | 'refName' | 'commonDir'>): Promise<void> {
  const older = olderStore(base.storeDir)
  const commonDir = older?.commonDir ?? base.commonDir
  // The ref first: without its store a ref is not found again, but a store without its ref is.
  if (base.refName.startsWith('refs/svc/runs/')) await dropRef(commonDir, base).catch(() => undefined)
  const removing = older === null ? removeStore(base.storeDir) : removeOlderStore(base.storeDir)
  await removing.catch(() => undefined)
}

async function dropRef(
  commonDir: string,
  { storeDir, refName }: Pick<BaseSnapshot, 'storeDir' | 'refName'>,
): Promise<void> {
  if (!hasReftable(commonDir)) return removeRef(commonDir, refName)
  const { objectFormat } = await readBaseRecord(storeDir)
  const args = ['-d', refName]
  await changeReftable({ commonDir, objectFormat, scratchDir: storeDir, args, timeoutMs: defaultLimits.gitMs })
}
