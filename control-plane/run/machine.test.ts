import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { idFrom, type DeviceRef } from '../../shared/lib/ids.ts'
import { repeats } from '../../test/kit/forms.ts'
import { devices, drawEvent, givenRun, randomFrom } from '../../test/kit/run-events.ts'
import { phaseOf, type RunEvent, type RunLife, type RunRefusal } from './life.ts'
import { step } from './machine.ts'

const [device] = devices
const made: RunEvent = { type: 'made', offer: null, as: givenRun }
const offered: RunEvent = { type: 'offered', device, at: 5, expiresAt: 10 }
const claimed: RunEvent = { type: 'claimed', fence: 1, device, at: 2 }
const ending = { exitReason: 'completed', errorMessage: null, endedAt: 9 } as const

/** Plays the events, each of which must be taken, and returns what comes of them. */
function play(...events: RunEvent[]): { life: RunLife; effects: string[] } {
  let life: RunLife | null = null
  const effects: string[] = []
  for (const event of events) {
    const outcome = step(life, event)
    if ('refused' in outcome) throw new Error(`${event.type} was refused: ${outcome.refused}`)
    life = outcome.life
    effects.push(...outcome.effects)
  }
  return { life: life!, effects }
}

const refusalOf = (life: RunLife, event: RunEvent): RunRefusal | null => {
  const outcome = step(life, event)
  return 'refused' in outcome ? outcome.refused : null
}

describe('the life of a run', () => {
  it('goes from its wake to the ending that its device reports', () => {
    const { life, effects } = play(made, offered, claimed, { type: 'ended_by_device', fence: 1, ...ending })
    expect(effects).toEqual(['find_place', 'push_offer', 'start', 'end'])
    expect(life).toMatchObject({ status: 'succeeded', leaseState: 'none', fence: 1, device, startedAt: 2, endedAt: 9 })
  })

  it('is offered from its beginning where a device takes it at once', () => {
    const { life, effects } = play({ ...made, offer: { device, at: 5, expiresAt: 10 } }, claimed)
    expect(effects).toEqual(['push_offer', 'start'])
    expect(life).toMatchObject({ status: 'running', fence: 1, offerExpiresAt: null })
  })

  it('keeps since when nothing holds it over an offer, and loses that with its claim', () => {
    const open = play(made, { type: 'gate_opened', at: 5 }, offered)
    expect(open.life.ungatedSince).toBe(5)
    expect(step(open.life, claimed)).toMatchObject({ life: { ungatedSince: null } })
  })

  it('names why it refuses an event', () => {
    const waiting = play(made).life
    const back = play(made, offered, { type: 'offer_withdrawn', fence: 1 }, { ...offered, device: devices[1] }).life
    const running = play(made, offered, claimed).life
    const ended = play(made, { type: 'cancelled', ...ending }).life
    expect(refusalOf(waiting, made)).toBe('exists')
    expect(refusalOf(waiting, claimed)).toBe('not_offered')
    expect(refusalOf(back, claimed)).toBe('stale_fence')
    expect(refusalOf(back, { ...claimed, fence: 2 })).toBe('other_device')
    expect(
      refusalOf({ ...back, taskId: idFrom('tsk_1') }, { ...claimed, fence: 2, device: devices[1], isLone: true }),
    ).toBe('works_on_task')
    expect(refusalOf(running, offered)).toBe('not_waiting')
    expect(refusalOf(running, { type: 'gate_opened', at: 3 })).toBe('not_queued')
    expect(refusalOf(running, { type: 'followed', successorRunId: idFrom('run_2') })).toBe('has_not_ended')
    expect(refusalOf(running, { type: 'events_stored', fence: 1, fromSeq: 4, toSeq: 5, bytes: 1 })).toBe(
      'log_has_moved',
    )
    expect(refusalOf(ended, offered)).toBe('has_ended')
    expect(refusalOf(ended, { type: 'cancelled', ...ending })).toBe('has_ended')
    expect(step(null, claimed)).toEqual({ refused: 'unknown' })
  })

  it('tells a device to end what it has, and nobody where no device has anything', () => {
    const cancelled: RunEvent = { type: 'cancelled', ...ending }
    expect(step(play(made).life, cancelled)).toMatchObject({ effects: ['end'] })
    expect(step(play(made, offered).life, cancelled)).toMatchObject({ effects: ['end', 'tell_device'] })
  })

  it('goes on its fallback harness once, and says more behind what it said', () => {
    const fallback: RunEvent = { type: 'fallback_taken', reasoningEffort: 'low' }
    const { life } = play(made, fallback)
    expect(life).toMatchObject({ harness: 'codex', providerKeyId: 'sec_1', modelId: 'f', fallbackHarness: null })
    expect(refusalOf(life, fallback)).toBe('has_no_fallback')
    const more: RunEvent[] = ['One.', 'Two.'].map((sentence) => ({ type: 'message_added', sentence }))
    expect(play(made, { type: 'declined', ...ending }, ...more).life.errorMessage).toBe('One. Two.')
  })
})

/** `waiting --offered--> offered`: every arrow that stands in the comment of the machine. */
function arrowsOfDiagram(): Set<string> {
  const text = readFileSync(new URL('./machine.ts', import.meta.url), 'utf8')
  const lines = text.split('\n').flatMap((line) => (line.startsWith(' *     ') ? [line.slice(' *     '.length)] : []))
  const parts = (list: string, by: RegExp) => list.trim().split(by)
  const arrows = lines.flatMap((line) => {
    const [, from, type, to] = /^([a-z |]+) --([a-z_]+)--> ([a-z |]+)$/.exec(line) ?? []
    if (from === undefined) return []
    return parts(from, / \| /).flatMap((one) => parts(to!, / \| /).map((other) => `${one} --${type}--> ${other}`))
  })
  const loops = lines.flatMap((line) => {
    const [, from, types] = /^([a-z |]+): ([a-z_, ]+)$/.exec(line) ?? []
    if (from === undefined) return []
    return parts(from, / \| /).flatMap((one) => parts(types!, /, /).map((type) => `${one} --${type}--> ${one}`))
  })
  return new Set([...arrows, ...loops])
}

describe('a random walk', () => {
  const histories = repeats('RUN_HISTORIES', { short: 100_000, long: 1_000_000 })
  const seed = Number(process.env['RUN_SEED'] ?? 44)

  it(`of ${histories} histories with the seed ${seed} keeps what the diagram says`, () => {
    const random = randomFrom(seed)
    const walked = new Set<string>()
    for (let at = 0; at < histories; at++) walk(random, walked)
    expect([...walked].toSorted()).toEqual([...arrowsOfDiagram()].toSorted())
  })
})

/** Counts of one history. */
interface Tally {
  starts: number
  ends: number
  hasRun: boolean
  /** The device and the fence of the last offer. */
  offer: { device: DeviceRef | null; fence: number }
}

/** Two replicas act on one run, each by what it read last. */
function walk(random: () => number, walked: Set<string>): void {
  let life: RunLife | null = null
  const views: (RunLife | null)[] = [null, null]
  const tally: Tally = { starts: 0, ends: 0, hasRun: false, offer: { device: null, fence: 0 } }
  for (let events = 4 + Math.floor(random() * 16); events > 0; events--) {
    const replica = random() < 0.5 ? 0 : 1
    // Most acts are by a row just read, and the others by one that somebody else may have changed since.
    if (random() < 0.6) views[replica] = life
    const event = drawEvent(random, views[replica] ?? null)
    const before: RunLife | null = life
    const outcome = step(before, event)
    if ('refused' in outcome) continue
    life = outcome.life
    walked.add(
      `${before === null ? 'nothing' : phaseOf(before)} --${event.type}--> ${life === null ? 'nothing' : phaseOf(life)}`,
    )
    for (const effect of outcome.effects) {
      if (effect === 'start') tally.starts++
      if (effect === 'end') tally.ends++
    }
    const broken = brokenBy({ before, event, life }, tally)
    if (broken !== null) throw new Error(`${broken}: ${JSON.stringify({ before, event, life })}`)
    if (life === null) return
  }
}

/** The invariant that does not hold; null: all do. */
function brokenBy(
  { before, event, life }: { before: RunLife | null; event: RunEvent; life: RunLife | null },
  tally: Tally,
) {
  const phase = life === null ? null : phaseOf(life)
  const was = before === null ? null : phaseOf(before)
  if (before !== null && life !== null) {
    const grows = event.type === 'offered' ? 1 : 0
    if (life.fence !== before.fence + grows) return 'a fence grows by one with each offer, and never else'
    if (was === 'ended' && (phase !== 'ended' || life.status !== before.status || life.endedAt !== before.endedAt))
      return 'a run ends once'
  }
  if (was === 'ended' && event.type !== 'removed' && phase !== 'ended') return 'what has ended stays so'
  if (event.type === 'claimed') {
    if (event.fence !== tally.offer.fence || event.device !== tally.offer.device)
      return 'only the last offer is claimed'
    tally.hasRun = true
  }
  if (phase === 'offered' && was !== 'offered') tally.offer = { device: life!.device, fence: life!.fence }
  if (phase === 'waiting') tally.offer = { device: null, fence: life!.fence }
  if (tally.starts !== (tally.hasRun ? 1 : 0)) return 'the effects of a start happen once, with the claim'
  if (tally.ends !== (phase === 'ended' || phase === null ? 1 : 0))
    return 'the effects of an ending happen once, with it'
  if (life === null) return null
  const isHeld = phase === 'offered' || phase === 'running' || phase === 'stopping'
  if (isHeld !== (life.leaseState !== 'none') || (isHeld && life.device === null))
    return 'a device holds what has a lease'
  if ((phase === 'running' || phase === 'stopping') && life.ungatedSince !== null)
    return 'no gate on what is not queued'
  if (life.ungatedSince !== (before?.ungatedSince ?? null) && was !== 'waiting' && was !== 'offered')
    return 'a gate changes while a run is queued'
  if (life.successorRunId !== null && phase !== 'ended') return 'a run is followed once it has ended'
  if ((life.offerExpiresAt !== null) !== (phase === 'offered')) return 'only an offer has a time limit'
  return (life.startedAt !== null) === tally.hasRun ? null : 'what was claimed has a start'
}
