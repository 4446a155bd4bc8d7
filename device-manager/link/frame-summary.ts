import { linkLimits } from '../../shared/device/limits.ts'
import type { EventsHeader } from '../../shared/device/protocol.ts'
import { askedCallLimits, type AskedCall } from '../../shared/runs/asked-call.ts'
import { askedCallOf, runEventSchemas, usageData } from '../../shared/runs/events.ts'
import type { SpoolRow } from '../spool/spool.ts'

export interface FrameSummary {
  /** The rows the frame holds: fewer than were given when more asked calls would not fit into its header. */
  rows: readonly SpoolRow[]
  /** Told by the header, for a receiver that does not parse the body. */
  told: Pick<EventsHeader, 'kinds' | 'usage' | 'sessionId' | 'approvals'>
}

/** Room for asked calls in a header; the rest of it is small. One call always fits. */
const approvalsBytes = linkLimits.headerBytes - 24 * 1024

/** Counts kinds, and lifts usage, session and asked calls out of the rows that hold them; the other rows are not parsed. */
export function summarize(rows: readonly SpoolRow[]): FrameSummary {
  const kinds: Record<string, number> = {}
  const told: FrameSummary['told'] = { kinds }
  const approvals: AskedCall[] = []
  let bytes = 0
  for (const [at, row] of rows.entries()) {
    const line = Buffer.from(row.line.buffer, row.line.byteOffset, row.line.byteLength)
    const kind = kindOf(line)
    const call = kind === 'permission' ? askedCallIn(dataOf(line)) : null
    if (call) {
      bytes += Buffer.byteLength(JSON.stringify(call))
      if (approvals.length > 0 && (bytes > approvalsBytes || approvals.length === askedCallLimits.calls))
        return { rows: rows.slice(0, at), told: { ...told, approvals } }
      approvals.push(call)
    }
    kinds[kind] = (kinds[kind] ?? 0) + 1
    if (kind === 'usage') {
      const usage = usageData.safeParse(dataOf(line))
      if (usage.success) told.usage = usage.data
    } else if (kind === 'session') {
      const data = dataOf(line) as { sessionId?: unknown } | null
      if (typeof data?.sessionId === 'string') told.sessionId = data.sessionId.slice(0, 200)
    }
  }
  return { rows, told: approvals.length > 0 ? { ...told, approvals } : told }
}

/** The call that a person is asked about with this `permission` event. */
function askedCallIn(data: unknown): AskedCall | null {
  const event = runEventSchemas.permission.safeParse(data)
  return event.success ? askedCallOf(event.data) : null
}

/** The `kind` of a line, which the run host writes as `{"seq":..,"at":..,"kind":"..`. */
function kindOf(line: Buffer): string {
  const match = /"kind":"([a-z_]{1,64})"/.exec(line.toString('latin1', 0, Math.min(line.length, 160)))
  return match?.[1] ?? 'raw'
}

function dataOf(line: Buffer): unknown {
  try {
    return (JSON.parse(line.toString('utf8')) as { data?: unknown }).data
  } catch {
    return null
  }
}
