import type {
  AutomationStatus,
  AutomationTrigger,
  ConcurrencyPolicy,
  TriggerType,
} from '../../../../shared/api/automation-fields.ts'
import type { TriggerBody } from '../../../../shared/api/automations.ts'
import type { FieldError } from '../../../../shared/api/errors.ts'
import { asStorable } from '../../../../shared/lib/storable.ts'
import { outsider, quoted } from '../../../trust/quote.ts'
import { scheduleFlaw } from '../schedule.ts'

// Decisions about automations.

const moves: Readonly<Record<'pause' | 'resume' | 'archive' | 'unarchive', Move>> = {
  pause: { to: 'paused', from: ['active'] },
  resume: { to: 'active', from: ['paused', 'archived'] },
  archive: { to: 'archived', from: ['active', 'paused'] },
  unarchive: { to: 'active', from: ['archived'] },
}
interface Move {
  to: AutomationStatus
  from: readonly AutomationStatus[]
}
export type MoveName = keyof typeof moves

/**
 * The status after the move; null when it is not allowed. Moving to the present status is allowed and changes nothing.
 */
export function statusAfter(move: MoveName, from: AutomationStatus): AutomationStatus | null {
  const { to, from: sources } = moves[move]
  return from === to || sources.includes(from) ? to : null
}

/** The statuses that some move reaches from here. */
export function reachable(from: AutomationStatus): AutomationStatus[] {
  const targets = Object.values(moves).flatMap((move) => (move.from.includes(from) ? [move.to] : []))
  return [...new Set(targets)]
}

export const defaultPolicy = (type: TriggerType): ConcurrencyPolicy =>
  type === 'schedule' ? 'skip_if_running' : 'allow_concurrent'

/** The keys of each type; a key of another type is an error. */
const keysOf: Readonly<Record<TriggerType, readonly (keyof TriggerBody)[]>> = {
  schedule: ['cron', 'timezone'],
  github: ['event', 'repo'],
  webhook: [],
}

/** Reads a trigger as it was sent; `type` follows from the other keys when it was left out. */
export function readTrigger(body: TriggerBody, now: number): { trigger: AutomationTrigger } | { flaw: FieldError } {
  const type = body.type ?? typeOf(body)
  if (type === null) return flaw('type', 'say which: schedule (cron), github (event, repo) or webhook')
  for (const key of ['cron', 'timezone', 'event', 'repo'] as const)
    if (body[key] !== undefined && !keysOf[type].includes(key)) return flaw(key, `not with a ${type} trigger`)
  if (type === 'webhook') return { trigger: { type } }
  if (type === 'github') {
    const { event, repo } = body
    if (event === undefined) return flaw('event', 'needed with a github trigger')
    return repo === undefined ? flaw('repo', 'needed with a github trigger') : { trigger: { type, event, repo } }
  }
  if (body.cron === undefined) return flaw('cron', 'needed with a schedule trigger')
  const schedule = { cron: body.cron, timezone: body.timezone ?? 'UTC' }
  const wrong = scheduleFlaw(schedule, now)
  return wrong === null ? { trigger: { type, ...schedule } } : flaw(wrong.field, wrong.message)
}

const flaw = (key: keyof TriggerBody, message: string) => ({ flaw: { path: `trigger.${key}`, message } })

function typeOf(body: TriggerBody): TriggerType | null {
  if (body.cron !== undefined) return 'schedule'
  return body.event !== undefined || body.repo !== undefined ? 'github' : null
}

/** The calls that one webhook takes in an hour. */
export const callsPerHour = 60
const windowMs = 3_600_000
/** Number of refused calls in an hour that are recorded as skips; further ones are only counted. */
const recordedRefusals = 1_000

export interface CallCount {
  since: number
  calls: number
}

/** Counts one more call. `waitMs`: the time until calls are accepted again; null when this one is accepted. */
export function countCall(
  before: { callsSince: number | null; calls: number },
  now: number,
): { count: CallCount; waitMs: number | null; isRecorded: boolean } {
  const { callsSince } = before
  // A window that begins in the future comes from a clock that was set back since.
  const isOver = callsSince === null || now - callsSince >= windowMs || callsSince > now
  const count = isOver ? { since: now, calls: 1 } : { since: callsSince, calls: before.calls + 1 }
  const waitMs = count.calls <= callsPerHour ? null : count.since + windowMs - now
  return { count, waitMs, isRecorded: count.calls <= callsPerHour + recordedRefusals }
}

/** The part of a webhook's body that the run sees. */
export const promptBytes = 32 * 1024

/** The prompt with the beginning of the body, read by the charset of its media type; invalid bytes are replaced. */
export function promptWithBody(prompt: string, body: Uint8Array, contentType: string | null): string {
  if (body.length === 0) return prompt
  const isCut = body.length > promptBytes
  const shown = readText(isCut ? body.subarray(0, promptBytes) : body, { isCut, charset: charsetOf(body, contentType) })
  const what = isCut ? `its first ${promptBytes} bytes of ${body.length}` : `${body.length} bytes`
  const told = quoted({ as: 'information', what: `the body of the call (${what})`, by: outsider, text: shown })
  return `${prompt}\n\nThis automation was fired by a call of its webhook.\n\n${told}`
}

/** Decodes the text and drops a character that was cut in two. */
function readText(bytes: Uint8Array, { isCut, charset }: { isCut: boolean; charset: string }): string {
  // The decoder holds back an incomplete character with `stream`.
  return asStorable(decoderOf(charset).decode(bytes, { stream: isCut }))
}

/** A charset that nobody knows is read as UTF-8. */
function decoderOf(charset: string) {
  try {
    return new TextDecoder(charset)
  } catch {
    return new TextDecoder()
  }
}

/** Finds the charset by the mark that the text begins with, which says more than its media type, as in the WHATWG Encoding Standard. */
function charsetOf(body: Uint8Array, contentType: string | null): string {
  if (body[0] === 0xff && body[1] === 0xfe) return 'utf-16le'
  if (body[0] === 0xfe && body[1] === 0xff) return 'utf-16be'
  if (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf) return 'utf-8'
  return /;[ \t]*charset=["']?([\w:.+-]{1,40})/i.exec(contentType ?? '')?.[1] ?? 'utf-8'
}
