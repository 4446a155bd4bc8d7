import type { UsedLimit } from '../../../shared/device/used-limits.ts'
import type { Db } from '../../db/open.ts'
import { findDeviceByPublicId } from '../../resources/devices/store.ts'
import { accountOf, accountsOf, believedUse, knownUse } from '../../resources/quotas/rules.ts'
import { findQuotaUse, replaceQuotaUse } from '../../resources/quotas/store.ts'
import type { RunRow } from '../../resources/runs/store.ts'

/** Records how much of its limits the account has used with which a run worked. For display alone: no run waits for it. */
export async function recordLimitsUsed(
  db: Db,
  run: RunRow,
  { told, at }: { told: readonly UsedLimit[]; at: number },
): Promise<void> {
  const use = believedUse(told, at)
  if (use === null || run.device === null) return
  const device = await findDeviceByPublicId(db, run.device)
  // A device that was removed meanwhile, or a sandbox, whose account is no person's.
  if (device === null || device.personUuid === null) return
  const holder = { ...device, accounts: accountsOf(device.providerReadiness) }
  const of = { workspaceId: run.workspaceId, account: accountOf(holder, run.harness, run.providerKeyId) }
  const { used, ...times } = knownUse(await findQuotaUse(db, of), use)
  await replaceQuotaUse(db, { ...of, used: [...used], ...times })
}
