import type { z } from 'zod'
import type { UsedLimit } from '../../../shared/device/used-limits.ts'
import type { rateLimitLine } from './wire.ts'

type LimitInfo = z.infer<typeof rateLimitLine>['rate_limit_info']

const hour = 60
const day = 24 * hour
/** claude's names of the windows of an account. */
const windows: Readonly<Record<string, Pick<UsedLimit, 'windowMinutes' | 'models'>>> = {
  five_hour: { windowMinutes: 5 * hour, models: null },
  seven_day: { windowMinutes: 7 * day, models: null },
  seven_day_opus: { windowMinutes: 7 * day, models: 'opus' },
  seven_day_sonnet: { windowMinutes: 7 * day, models: 'sonnet' },
}

/** Returns, by claude's names, how much is used of each window that a line tells of. */
export function limitsUsedIn({ rateLimitType, utilization, resetsAt, unifiedWindows }: LimitInfo) {
  const told: Record<string, { utilization: number; resetsAt: number } | null | undefined> = {
    ...(rateLimitType != null &&
      utilization != null &&
      resetsAt != null && { [rateLimitType]: { utilization, resetsAt } }),
    ...unifiedWindows,
  }
  const found: Record<string, UsedLimit> = {}
  for (const [name, window] of Object.entries(windows)) {
    const use = Object.hasOwn(told, name) ? told[name] : null
    if (use != null) found[name] = { ...window, usedPercent: Math.floor(use.utilization * 100), resetsAt: use.resetsAt }
  }
  return found
}
