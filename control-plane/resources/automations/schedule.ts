import { Cron } from 'croner'

/**
 * Instants of a cron schedule in a time zone. With daylight saving, a time of day that the clocks skip fires when they
 * move on, and one that they show twice fires the first time only. A schedule that fires every hour or every few
 * minutes (a `*` in the fields for minute or hour, or a wide range) keeps its pace through both. Cron has done this
 * since Vixie's version.
 */
export interface Schedule {
  cron: string
  timezone: string
}

/** A missed instant that is this old is not fired any more. */
export const missedMs = 3_600_000

/** The reason why a schedule cannot be used, by field; null when it can. */
export function scheduleFlaw(schedule: Schedule, now: number): { field: keyof Schedule; message: string } | null {
  if (!isTimeZone(schedule.timezone)) return { field: 'timezone', message: 'not an IANA time zone' }
  if (fieldsOf(schedule.cron).length !== 5) return { field: 'cron', message: 'five fields, separated by spaces' }
  try {
    if (nextInstant(schedule, now) === null) return { field: 'cron', message: 'never comes' }
  } catch (error) {
    return {
      field: 'cron',
      message: error instanceof Error ? error.message.replace(/^Cron\w+: /, '') : 'not a schedule',
    }
  }
  return null
}

function isTimeZone(name: string): boolean {
  // Intl also knows offsets such as +01:00, but they are no zones: they have no daylight saving.
  if (!/^[A-Za-z][A-Za-z0-9_+/-]*$/.test(name)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name }).format(0)
    return true
  } catch {
    return false
  }
}

/** The first instant after `after`; null when there is none. */
export function nextInstant(schedule: Schedule, after: number): number | null {
  return instantsOf(schedule)(after)
}

/**
 * The due instant of a schedule whose next instant was `due` when the clock says `now`. Of several missed instants only
 * the last one fires, and only if it is less than an hour old; `next` is the first future one.
 */
export function dueInstant(
  schedule: Schedule,
  { due, now }: { due: number; now: number },
): { instant: number | null; next: number | null } {
  const after = instantsOf(schedule)
  const oldest = now - missedMs
  let instant: number | null = null
  let next = due > oldest ? due : after(oldest)
  while (next !== null && next <= now) {
    instant = next
    next = after(next)
  }
  return { instant, next }
}

function instantsOf({ cron, timezone }: Schedule): (after: number) => number | null {
  const times = timesOfDay(cron)
  const jobs: Cron[] = []
  return (after) => {
    // The library would start from the whole second before when the time had a fraction of a second.
    const from = new Date(Math.floor(after / 1000) * 1000)
    let first: number | null = null
    for (const [at, time] of times.entries()) {
      const job = (jobs[at] ??= new Cron(time, { timezone, mode: '5-part', paused: true }))
      const instant = job.nextRun(from)?.getTime()
      // All entries have the same days, and finding that none ever comes takes a search through centuries.
      if (instant === undefined) return null
      first = Math.min(first ?? instant, instant)
    }
    return first
  }
}

const fieldsOf = (cron: string) => cron.trim().split(/\s+/)

/** More times a day than this count as a pace, not as times. */
const maxTimes = 48

/** The library treats only a single hour and minute as a time of day, so a schedule with several is split. */
function timesOfDay(cron: string): string[] {
  const [minutes = '', hours = '', ...days] = fieldsOf(cron)
  const times = valuesOf(hours).flatMap((hour) => valuesOf(minutes).map((minute) => [minute, hour, ...days].join(' ')))
  return times.length === 0 || times.length > maxTimes ? [cron] : times
}

/** The numbers in a field of lists and ranges; empty for any other field and for an invalid one. */
function valuesOf(field: string): number[] {
  const values = new Set<number>()
  for (const part of field.split(',')) {
    const range = /^(\d{1,2})(?:-(\d{1,2})(?:\/([1-9]\d?))?)?$/.exec(part)
    if (range === null) return []
    const first = Number(range[1])
    const last = Number(range[2] ?? first)
    if (last < first) return []
    for (let value = first; value <= last; value += Number(range[3] ?? 1)) values.add(value)
  }
  return [...values]
}
