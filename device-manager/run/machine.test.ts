import { idFrom, type RunId } from '../../shared/lib/ids.ts'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runSpecFixture } from '../../test/kit/run-spec.ts'
import { expectedRows, helloState, holdsPlace, step, stopWanted } from './machine.ts'
import type { RunEffect, RunEvent, RunState } from './machine.ts'

const spec = runSpecFixture(idFrom('run_0123456789abcdef'))
const offered: RunEvent = { type: 'offered', spec, fence: 1, at: 0 }
const stop = { exitReason: 'interrupted', message: null } as const

function play(...events: RunEvent[]): { state: RunState | null; effects: RunEffect['type'][] } {
  let state: RunState | null = null
  const effects: RunEffect['type'][] = []
  for (const event of events) {
    const [next, wanted] = step(state, event)
    state = next
    effects.push(...wanted.map((effect) => effect.type))
  }
  return { state, effects }
}

describe('the life of a run', () => {
  it('goes from the offer to its forgetting', () => {
    const { state, effects } = play(
      offered,
      { type: 'host_taken', hostId: 'h1' },
      { type: 'start_received' },
      { type: 'host_started' },
      { type: 'host_ended' },
      { type: 'closed' },
    )
    expect(state).toBeNull()
    expect(effects).toEqual(['accept', 'prepare', 'start_host', 'report_started', 'forward', 'forget'])
  })

  it('is forgotten when its ending was answered before the host said that it ended', () => {
    const started: RunEvent[] = [offered, { type: 'host_taken', hostId: 'h1' }, { type: 'start_received' }]
    const said = play(...started, { type: 'host_started' }, { type: 'closed' }, { type: 'host_ended' })
    const lost = play(...started, { type: 'closed' }, { type: 'host_returned' }, { type: 'host_lost' })
    for (const { state, effects } of [said, lost]) {
      expect(state).toBeNull()
      expect(effects.at(-1)).toBe('forget')
      expect(effects).not.toContain('forward')
    }
  })

  it('answers a repeated offer and prepares once', () => {
    expect(play(offered, offered, offered).effects).toEqual(['accept', 'prepare', 'accept', 'accept'])
  })

  it('ends a cancelled run without launching it', () => {
    const { effects } = play(offered, { type: 'cancel_received', stop }, { type: 'start_received' })
    expect(effects).not.toContain('start_host')
    expect(effects).toContain('stop_host')
  })

  it('keeps in mind what a run was told to end as, and that its host hung, for whoever writes the ending', () => {
    const live: RunEvent[] = [
      offered,
      { type: 'host_taken', hostId: 'h1' },
      { type: 'start_received' },
      { type: 'host_started' },
    ]
    const hung = play(...live, { type: 'cancel_received', stop }, { type: 'host_lost', isHung: true })
    expect(hung).toMatchObject({ state: { hostHung: true }, effects: expect.arrayContaining(['end_crashed']) })
    expect(stopWanted(hung.state!)).toEqual(stop)
    const died = play(...live, { type: 'host_lost' })
    expect(died.state).toMatchObject({ hostHung: false })
    expect(stopWanted(died.state!)).toBeNull()
    expect(stopWanted(play(...live, { type: 'given_up' }).state!)).toMatchObject({ exitReason: 'runner_lost' })
  })

  it('tells what a spool must hold of a run: nothing before its start, and then as much as is known', () => {
    const began: RunEvent[] = [offered, { type: 'host_taken', hostId: 'h1' }, { type: 'start_received' }]
    const rowsOf = (...events: RunEvent[]) => expectedRows([play(...events).state!])
    expect(rowsOf(...began)).toEqual([])
    const run = { runId: spec.runId, fence: 1 }
    const none = { ...run, ackedSeq: 0, lastSeq: 0, bytes: 0, isExact: false }
    expect(rowsOf(...began, { type: 'host_started' })).toEqual([none])
    expect(rowsOf(...began, { type: 'host_started' }, { type: 'host_ended', written: null })).toEqual([none])
    const written = { lastSeq: 9, ackedSeq: 4, bytes: 500 }
    const exact = { ...run, ackedSeq: 4, lastSeq: 8, bytes: 500, isExact: true }
    expect(rowsOf(...began, { type: 'host_started' }, { type: 'host_ended', written })).toEqual([exact])
  })

  it('takes another host when one dies before the start, and gives up after three', () => {
    const lost: RunEvent = { type: 'host_lost' }
    const twice = play(offered, lost, lost)
    expect(twice.effects.filter((effect) => effect === 'prepare')).toHaveLength(3)
    const thrice = play(offered, lost, lost, lost)
    expect(thrice.effects.at(-1)).toBe('end_without_host')
    expect(thrice.state?.phase).toBe('ended')
  })

  it('never hands a run that may have been launched to another host', () => {
    const taken: RunEvent = { type: 'host_taken', hostId: 'h1' }
    const { effects } = play(
      offered,
      taken,
      { type: 'start_received' },
      { type: 'host_lost' },
      { type: 'start_received' },
    )
    expect(effects).toEqual(['accept', 'prepare', 'start_host', 'end_crashed', 'start_host'])
  })

  it('takes a host for a run whose start came before one was taken', () => {
    const { effects, state } = play(offered, { type: 'start_received' }, { type: 'found_without_host' })
    expect(effects).toEqual(['accept', 'prepare', 'start_host', 'prepare', 'start_host'])
    expect(state?.phase).toBe('starting')
  })

  it('takes another host when the one that was to start it left in order, and ends a live run whose host did', () => {
    const started: RunEvent[] = [offered, { type: 'host_taken', hostId: 'h1' }, { type: 'start_received' }]
    const { effects, state } = play(...started, { type: 'host_left' })
    expect(effects).toEqual(['accept', 'prepare', 'start_host', 'prepare', 'start_host'])
    expect(state).toMatchObject({ phase: 'starting', hostId: null })
    expect(play(...started, { type: 'host_started' }, { type: 'host_left' }).effects.at(-1)).toBe('end_crashed')
  })

  it('takes another host when the one it took was never given the run', () => {
    const returned: RunEvent[] = [{ type: 'host_returned' }, { type: 'found_without_host' }]
    const { effects } = play(offered, { type: 'host_taken', hostId: 'h1' }, { type: 'start_received' }, ...returned)
    expect(effects).toEqual(['accept', 'prepare', 'start_host', 'prepare', 'start_host'])
    const live = play(offered, { type: 'host_taken', hostId: 'h1' }, { type: 'host_started' }, ...returned)
    expect(live.effects.at(-1)).toBe('end_crashed')
  })

  it('forgets a withdrawn run that was not started, and ends one that was', () => {
    expect(play(offered, { type: 'withdrawn' }).state).toBeNull()
    const started = play(offered, { type: 'start_received' }, { type: 'host_started' }, { type: 'given_up' })
    expect(started.effects.at(-1)).toBe('stop_host')
    expect(started.state?.givenUp).toBe(true)
  })

  it.each(['given_up', 'closed'] as const)('ends a run that is %s once, whatever comes after it', (type) => {
    const live: RunEvent[] = [offered, { type: 'start_received' }, { type: 'host_started' }, { type }]
    const { effects, state } = play(...live, { type: 'cancel_received', stop })
    expect(effects.filter((effect) => effect === 'stop_host')).toHaveLength(1)
    expect(state?.cancel).toBeNull()
  })

  it('says why it ended a run that nobody launched: by the cancel, the lost lease or the hosts that did not stay', () => {
    const endings = (...events: RunEvent[]): unknown[] => {
      let state: RunState | null = null
      const stops: unknown[] = []
      for (const event of events) {
        const [next, effects] = step(state, event)
        state = next
        for (const effect of effects) if (effect.type === 'end_without_host') stops.push(effect.stop)
      }
      return stops
    }
    const lost: RunEvent = { type: 'host_lost' }
    const started: RunEvent[] = [offered, { type: 'start_received' }]
    expect(endings(offered, { type: 'cancel_received', stop }, lost)).toEqual([stop])
    expect(endings(...started, { type: 'cancel_received', stop }, { type: 'given_up' }, lost)).toMatchObject([
      { exitReason: 'runner_lost' },
    ])
    const failed = [{ exitReason: 'dispatch_error' }]
    expect(endings(offered, lost, lost, lost)).toMatchObject(failed)
    expect(endings(offered, lost, lost)).toEqual([])
    for (const gone of [lost, { type: 'host_left' }] as const) {
      expect(endings(...started, gone, gone)).toEqual([])
      expect(endings(...started, gone, gone, gone)).toMatchObject(failed)
    }
    // A host that was not taken by anybody is no host that was lost.
    const found: RunEvent = { type: 'found_without_host' }
    expect(endings(...started, found, found, found, found)).toEqual([])
  })

  it('forgets a run that was closed when its host cannot be prepared', () => {
    const failed: RunEvent = { type: 'prepare_failed', stop }
    const { state, effects } = play(offered, { type: 'start_received' }, { type: 'closed' }, failed)
    expect(state).toBeNull()
    expect(effects.slice(-2)).toEqual(['discard_host', 'forget'])
    expect(play(offered, { type: 'start_received' }, failed).effects.at(-1)).toBe('end_without_host')
  })

  it('sends what it has of an ended run again when the lease is lost after it', () => {
    const { state, effects } = play(offered, { type: 'host_ended' }, { type: 'given_up' })
    expect(effects.slice(-2)).toEqual(['forward', 'forward'])
    expect(state).toMatchObject({ phase: 'ended', givenUp: true })
  })

  it('keeps the names of the secrets that a start brought', () => {
    const names = (event: RunEvent) => play(offered, event).state?.secretNames
    expect(names({ type: 'start_received', secretNames: ['TOKEN'] })).toEqual(['TOKEN'])
    expect(names({ type: 'start_received' })).toEqual([])
  })

  it('says of a start that may not have reached the host that the run is only accepted', () => {
    const { state } = play(offered, { type: 'start_received' })
    expect(state && helloState(state)).toBe('accepted')
  })
})

describe('a folder that is shared', () => {
  const one: RunId = idFrom('run_1111111111111111')
  const two: RunId = idFrom('run_2222222222222222')
  const shared = (other: RunId): RunEvent => ({ type: 'folder_shared', other })
  const began: RunEvent[] = [offered, { type: 'host_taken', hostId: 'h1' }, { type: 'start_received' }]

  it('is told to the host once for each run, and anew to a host that begins', () => {
    const { state, effects } = play(...began, { type: 'host_started' }, shared(one), shared(two), shared(one))
    expect(state?.sharedWith).toEqual([one, two])
    expect(effects.slice(-3)).toEqual(['report_started', 'tell_shared', 'tell_shared'])
    const early = play(offered, shared(one), ...began.slice(1), { type: 'host_started' })
    expect(early.effects.slice(-2)).toEqual(['report_started', 'tell_shared'])
  })

  it('changes nothing of a run that has ended, and is kept for whoever writes the ending', () => {
    const ended = play(...began, shared(one), { type: 'host_ended' }, shared(two))
    expect([ended.state?.sharedWith, ended.effects.at(-1)]).toEqual([[one], 'forward'])
  })

  it('names so many runs and no more', () => {
    const many = Array.from({ length: 150 }, (_, at): RunEvent => ({
      type: 'folder_shared',
      other: idFrom(`run_${String(at).padStart(16, '0')}`),
    }))
    expect(play(offered, ...many).state?.sharedWith).toHaveLength(100)
  })
})

const anyEvent: fc.Arbitrary<RunEvent> = fc.oneof(
  fc.constant(offered),
  fc.constant<RunEvent>({ type: 'host_taken', hostId: 'h' }),
  fc.constantFrom<RunEvent>(
    { type: 'start_received' },
    { type: 'host_started' },
    { type: 'host_ended' },
    { type: 'host_lost' },
    { type: 'host_left' },
    { type: 'found_without_host' },
    { type: 'host_returned' },
    { type: 'withdrawn' },
    { type: 'given_up' },
    { type: 'closed' },
    { type: 'cancel_received', stop },
    { type: 'prepare_failed', stop },
    { type: 'folder_shared', other: idFrom('run_1111111111111111') },
  ),
)

describe('any history of events', () => {
  it('launches only between accepted and ended, and ends once', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), (events) => {
        let state: RunState | null = null
        let endings = 0
        for (const event of events) {
          const before: RunState | null = state
          const [after, effects] = step(before, event)
          for (const effect of effects) {
            if (effect.type === 'start_host' && event.type === 'start_received') {
              expect(after?.phase).toBe('starting')
              expect(before?.cancel ?? null).toBeNull()
            }
            // A run that may have been launched is never handed to a new host.
            if (effect.type === 'prepare' && before?.phase !== 'accepted' && event.type !== 'host_left')
              expect(before?.hostId ?? null).toBeNull()
            if (event.type === 'host_left' && before?.phase === 'live') expect(effect.type).toBe('end_crashed')
            if (effect.type === 'forget') expect(after).toBeNull()
          }
          if (before === null && after !== null) endings = 0
          if (before && before.phase !== 'ended' && after?.phase === 'ended') endings++
          expect(endings).toBeLessThanOrEqual(1)
          if (before?.phase === 'ended' && after) expect(after.phase).toBe('ended')
          if (after) expect(holdsPlace(after)).toBe(after.phase !== 'ended')
          state = after
        }
      }),
      { numRuns: 20_000 },
    )
  })

  it('answers the same event twice in a row alike where effects may be repeated', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 20 }), anyEvent, (events, event) => {
        let state: RunState | null = null
        for (const each of events) state = step(state, each)[0]
        const [after] = step(state, event)
        // A frozen copy: the machine does not write into what it was given.
        expect(step(structuredClone(state), event)[0]).toEqual(after)
      }),
      { numRuns: 2_000 },
    )
  })
})
