import { statusOfExitReason } from '../../shared/runs/exit-reasons.ts'
import { phaseOf, type Effect, type RunEnding, type Made, type Phase, type RunRefusal } from './life.ts'
import type { RunEvent, RunEventType, RunLife } from './life.ts'

/**
 * The life of a run on the server, as a pure function: `step(life, event)` answers the next life with the effects that it calls
 * for, or names why the event is refused. `change-store.ts` makes its statements of the same rules, and is the only file that
 * writes rows of `runs`. Each line below is an arrow of the machine; a test compares the lines with the rules, and a random
 * walk finds that each arrow is walked and no other one is.
 *
 *     nothing --made--> waiting | offered
 *     waiting --offered--> offered
 *     offered --offer_withdrawn--> waiting
 *     offered --claimed--> running
 *     running --cancel_asked--> stopping
 *     running | stopping --ended_by_device--> ended
 *     running | stopping --missing_on_device--> ended
 *     running | stopping --device_removed--> ended
 *     running | stopping --ended_by_time--> ended
 *     waiting --waited_too_long--> ended
 *     waiting --declined--> ended
 *     waiting | offered | running | stopping --cancelled--> ended
 *     waiting | offered | running | stopping --sandbox_lost--> ended
 *     waiting | offered | running | stopping --workspace_removed--> ended
 *     ended --removed--> nothing
 *
 * These events change something of the row and leave the run where it is:
 *
 *     waiting | offered: gate_opened, gate_closed, fallback_taken
 *     running | stopping: events_stored, progress_told
 *     offered | running | stopping | ended: harness_started
 *     running | stopping | ended: session_forgotten
 *     ended: followed, message_added
 *
 * `waiting`: somebody looks for a place, and no device was offered the run. `offered`: one device has until `offerExpiresAt` to
 * take it. `running`: the device has claimed it. `stopping`: that device was told to end it, and its report will. `ended`: the run
 * never starts again; what goes on with its work is another run (`followed`). The gate is a mark of a run that is queued:
 * `ungatedSince` says since when nothing has held it. An offer does not clear it, so a device that never answers offers cannot
 * hold a run for ever; the claim does.
 *
 * May interleave, each as a compare-and-set in which one writer finds nothing to change: two replicas that offer one run, a claim
 * and the withdrawal of its offer, an ending that its device reports and one by cancel, sweep or removal. The fence grows with each
 * offer, so whatever comes late from an earlier offer is refused. Frames carry the number after which they stand.
 */
export function step(life: RunLife | null, event: RunEvent): RunOutcome {
  if (event.type === 'made')
    return life === null ? { life: born(event), effects: effectsOfMaking(event) } : refuse('exists')
  if (life === null) return refuse('unknown')
  const refused = refusalOf(life, event)
  if (refused !== null) return refuse(refused)
  const effects = effectsOf(event.type, phaseOf(life))
  return { life: event.type === 'removed' ? null : changed(life, changesBy(event)), effects }
}

export type RunOutcome = { life: RunLife | null; effects: readonly Effect[] } | { refused: RunRefusal }

const refuse = (refused: RunRefusal) => ({ refused })

/** Groups of phases, each by what is true of its rows alone. */
export type Stage = 'waiting' | 'offered' | 'queued' | 'claimed' | 'live' | 'ended' | 'any'

export interface Conditions {
  /** Columns that have these values; null is a value like any other. */
  is: Partial<RunLife>
  /** Columns that are not null. */
  set?: readonly (keyof RunLife)[]
}

export const stages: Readonly<Record<Stage, Conditions>> = {
  waiting: { is: { status: 'queued', leaseState: 'none', endedAt: null } },
  offered: { is: { status: 'queued', leaseState: 'offered', endedAt: null } },
  queued: { is: { status: 'queued', endedAt: null } },
  claimed: { is: { status: 'running', leaseState: 'claimed', endedAt: null } },
  live: { is: { endedAt: null } },
  ended: { is: {}, set: ['endedAt'] },
  any: { is: {} },
}

/** A column whose value is undefined, or that is not named, stays. */
export interface Changes {
  sets?: { [Column in keyof RunLife]?: RunLife[Column] | undefined }
  /** Numbers that grow by so much. */
  raises?: { fence?: number; eventBytes?: number }
  /** Columns that get what another one had before. */
  copies?: { [Column in keyof RunLife]?: keyof RunLife }
  /** A sentence behind those that are there. */
  appends?: string
}

export interface Rule<Event extends RunEvent> {
  from: Stage
  /** The phase after the event; null: the run stays in its phase. */
  to: Phase | 'nothing' | null
  /** Further conditions on the row. */
  holds?: (event: Event) => Conditions
  changes: (event: Event) => Changes
  effects?: readonly Effect[]
}

type OfType<Type extends RunEventType> = Extract<RunEvent, { type: Type }>
type AfterMaking = Exclude<RunEventType, 'made'>

export const rules: { readonly [Type in AfterMaking]: Rule<OfType<Type>> } = {
  offered: {
    from: 'waiting',
    to: 'offered',
    changes: ({ device, at, expiresAt }) => ({
      raises: { fence: 1 },
      sets: { leaseState: 'offered', device, offeredAt: at, offerExpiresAt: expiresAt, eventSeq: 0 },
    }),
    effects: ['push_offer'],
  },
  fallback_taken: {
    from: 'queued',
    to: null,
    holds: () => ({ is: {}, set: ['fallbackHarness'] }),
    changes: ({ reasoningEffort }) => ({
      copies: { harness: 'fallbackHarness', providerKeyId: 'fallbackKeyId', modelId: 'fallbackModel' },
      sets: { reasoningEffort, fallbackHarness: null, fallbackKeyId: null, fallbackModel: null },
    }),
  },
  offer_withdrawn: {
    from: 'offered',
    to: 'waiting',
    holds: ({ fence, device }) => ({ is: { fence, ...(device !== undefined && { device }) } }),
    changes: () => ({ sets: { leaseState: 'none', device: null, offeredAt: null, offerExpiresAt: null } }),
    effects: ['find_place'],
  },
  claimed: {
    from: 'offered',
    to: 'running',
    holds: ({ fence, device, isLone }) => ({ is: { fence, device, ...(isLone === true && { taskId: null }) } }),
    changes: ({ at }) => ({
      sets: { status: 'running', leaseState: 'claimed', startedAt: at, offerExpiresAt: null, ungatedSince: null },
    }),
    effects: ['start'],
  },
  harness_started: {
    from: 'any',
    to: null,
    holds: ({ fence, device }) => ({ is: { fence, device, harnessStartedAt: null } }),
    changes: ({ at }) => ({ sets: { harnessStartedAt: at } }),
  },
  gate_opened: {
    from: 'queued',
    to: null,
    holds: () => ({ is: { ungatedSince: null } }),
    changes: ({ at }) => ({ sets: { ungatedSince: at } }),
  },
  gate_closed: {
    from: 'queued',
    to: null,
    holds: () => ({ is: {}, set: ['ungatedSince'] }),
    changes: () => ({ sets: { ungatedSince: null } }),
  },
  cancel_asked: {
    from: 'claimed',
    to: 'stopping',
    holds: () => ({ is: { cancelRequestedAt: null } }),
    changes: ({ exitReason, reason, at }) => ({
      sets: { cancelExitReason: exitReason, cancelReason: reason, cancelRequestedAt: at },
    }),
    effects: ['tell_device'],
  },
  events_stored: {
    from: 'claimed',
    to: null,
    holds: ({ fence, fromSeq }) => ({ is: { fence, eventSeq: fromSeq } }),
    changes: ({ toSeq, bytes }) => ({ sets: { eventSeq: toSeq }, raises: { eventBytes: bytes } }),
  },
  progress_told: {
    from: 'claimed',
    to: null,
    changes: ({ usage, sessionId }) => ({
      sets: {
        ...(usage && { usage, costUsd: usage.costUsd ?? null }),
        ...(sessionId !== '' && { sessionId }),
      },
    }),
  },
  ended_by_device: ending<OfType<'ended_by_device'>>('claimed', { holds: fenced, effects: ['end'] }),
  missing_on_device: ending<OfType<'missing_on_device'>>('claimed', { holds: fenced, effects: ['end'] }),
  device_removed: ending('claimed', { effects: ['end', 'tell_device'] }),
  ended_by_time: ending('claimed', { effects: ['end', 'tell_device'] }),
  waited_too_long: ending('waiting', { effects: ['end'] }),
  declined: ending('waiting', { effects: ['end'] }),
  cancelled: ending('live', { effects: ['end', 'tell_device'] }),
  sandbox_lost: ending('live', { effects: ['end', 'tell_device'] }),
  workspace_removed: ending('live', { effects: ['end'] }),
  followed: { from: 'ended', to: null, changes: ({ successorRunId }) => ({ sets: { successorRunId } }) },
  message_added: { from: 'ended', to: null, changes: ({ sentence }) => ({ appends: sentence }) },
  session_forgotten: {
    from: 'any',
    to: null,
    holds: ({ sessionId }) => ({ is: { sessionId } }),
    changes: () => ({ sets: { sessionId: null } }),
  },
  removed: { from: 'ended', to: 'nothing', changes: () => ({}) },
}

function fenced({ fence }: { fence: number }): Conditions {
  return { is: { fence } }
}

function ending<Event extends RunEvent & RunEnding>(
  from: Stage,
  { holds, effects }: Pick<Rule<Event>, 'holds' | 'effects'>,
): Rule<Event> {
  return { from, to: 'ended', ...(holds && { holds }), changes: ofEnding, ...(effects && { effects }) }
}

function ofEnding(ended: RunEnding): Changes {
  const { exitReason, errorMessage, endedAt, usage, toolCallCount, sessionId, gapBytes } = ended
  const { logVerified, limitResetsAt, providerFailed, harnessVersion, spans } = ended
  const status = statusOfExitReason(exitReason)
  return {
    sets: {
      status,
      exitReason,
      errorCode: status === 'failed' ? exitReason : null,
      errorMessage,
      endedAt,
      leaseState: 'none',
      offerExpiresAt: null,
      ...(usage !== undefined && { usage, costUsd: usage?.costUsd ?? null }),
      toolCallCount,
      sessionId,
      gapBytes,
      ...(logVerified != null && { logVerified }),
      ...(limitResetsAt != null && { limitResetsAt }),
      ...(providerFailed === true && { providerFailed }),
      ...(harnessVersion != null && { harnessVersion }),
      spans,
    },
  }
}

/** The rule of an event, whatever its type. */
const ruleOf = ({ type }: { type: AfterMaking }) => rules[type] as unknown as Rule<RunEvent>

export type ChangingEvent = OfType<AfterMaking>

/** Returns what must be true of the row for the event to change it. */
export function conditionsFor(event: ChangingEvent): Conditions {
  const { from, holds } = ruleOf(event)
  const [stage, besides] = [stages[from], holds?.(event)]
  return { is: { ...stage.is, ...besides?.is }, set: [...(stage.set ?? []), ...(besides?.set ?? [])] }
}

/** null: the event leaves the run in its phase. */
export const phaseAfter = (event: ChangingEvent): Phase | 'nothing' | null => ruleOf(event).to

export const changesBy = (event: ChangingEvent): Changes => ruleOf(event).changes(event)

/** Returns the effects of an event that has changed a run which was in this phase. A device that has nothing of the run is told nothing. */
export function effectsOf(type: AfterMaking, phase: Phase): readonly Effect[] {
  const { effects = [] } = ruleOf({ type })
  return phase === 'waiting' ? effects.filter((effect) => effect !== 'tell_device') : effects
}

const effectsOfMaking = ({ offer }: Pick<Made, 'offer'>): readonly Effect[] => [
  offer === null ? 'find_place' : 'push_offer',
]

/** The lease of a new row: fence 1 where it is offered from the beginning. */
export function madeWith(offer: Made['offer']) {
  return {
    status: 'queued',
    fence: offer === null ? 0 : 1,
    leaseState: offer === null ? 'none' : 'offered',
    device: offer?.device ?? null,
    offeredAt: offer?.at ?? null,
    offerExpiresAt: offer?.expiresAt ?? null,
  } as const
}

const born = ({ offer, as }: Made): RunLife => ({ ...unborn, ...as, ...madeWith(offer) })

function refusalOf(life: RunLife, event: ChangingEvent): RunRefusal | null {
  const { from, holds } = ruleOf(event)
  if (missing(life, stages[from]) !== null) return life.endedAt !== null ? 'has_ended' : outside[from]
  const column = holds === undefined ? null : missing(life, holds(event))
  return column === null ? null : (otherwise[column] ?? 'other_session')
}

/** The first column that is not as it must be. */
function missing(life: RunLife, { is, set = [] }: Conditions): keyof RunLife | null {
  const columns = Object.keys(is) as (keyof RunLife)[]
  return columns.find((column) => life[column] !== is[column]) ?? set.find((column) => life[column] === null) ?? null
}

/** The refusals of events for live runs that are in no phase of the stage. */
const outside: Readonly<Record<Stage, RunRefusal>> = {
  waiting: 'not_waiting',
  offered: 'not_offered',
  queued: 'not_queued',
  claimed: 'not_running',
  live: 'has_ended',
  ended: 'has_not_ended',
  any: 'unknown',
}

const otherwise: Readonly<Partial<Record<keyof RunLife, RunRefusal>>> = {
  fence: 'stale_fence',
  device: 'other_device',
  taskId: 'works_on_task',
  fallbackHarness: 'has_no_fallback',
  harnessStartedAt: 'harness_has_started',
  ungatedSince: 'gate_is_known',
  cancelRequestedAt: 'cancel_was_asked',
  eventSeq: 'log_has_moved',
  sessionId: 'other_session',
}

function changed(life: RunLife, { sets = {}, raises = {}, copies = {}, appends }: Changes): RunLife {
  const known = Object.entries(sets).filter(([, value]) => value !== undefined)
  const next: RunLife = { ...life, ...Object.fromEntries(known) }
  for (const [column, other] of Object.entries(copies)) Object.assign(next, { [column]: life[other] })
  next.fence += raises.fence ?? 0
  next.eventBytes += raises.eventBytes ?? 0
  if (appends !== undefined) next.errorMessage = [life.errorMessage, appends].filter((part) => part !== null).join(' ')
  return next
}

const unborn = {
  ungatedSince: null,
  startedAt: null,
  harnessStartedAt: null,
  cancelExitReason: null,
  cancelReason: null,
  cancelRequestedAt: null,
  eventSeq: 0,
  eventBytes: 0,
  gapBytes: 0,
  usage: null,
  costUsd: null,
  toolCallCount: null,
  sessionId: null,
  logVerified: null,
  exitReason: null,
  errorCode: null,
  errorMessage: null,
  limitResetsAt: null,
  providerFailed: null,
  harnessVersion: null,
  spans: null,
  endedAt: null,
  successorRunId: null,
} as const
