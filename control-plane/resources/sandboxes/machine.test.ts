import { describe, expect, it } from 'vitest'
import { sandboxStates } from '../../../shared/runs/sandbox-states.ts'
import {
  nextAct,
  nextWarmAct,
  planPool,
  type Seen,
  type SeenPool,
  stateLimits,
  warmMakingMs,
  warmStates,
} from './machine.ts'

const seen = (changes: Partial<Seen> = {}): Seen => ({
  container: null,
  hasLinked: false,
  hasStarted: false,
  isRunOver: false,
  isBeingCreated: false,
  maySalvageAgain: false,
  isWarm: false,
  hasPlace: true,
  forMs: 0,
  ...changes,
})

describe('the life of a sandbox', () => {
  it('leads from the row over the container to its removal', () => {
    expect(nextAct('wanted', seen())).toEqual({ do: 'enter', state: 'creating' })
    expect(nextAct('creating', seen())).toEqual({ do: 'create' })
    expect(nextAct('creating', seen({ container: 'created' }))).toEqual({ do: 'start' })
    expect(nextAct('creating', seen({ container: 'running' }))).toEqual({ do: 'enter', state: 'starting' })
    expect(nextAct('starting', seen({ container: 'running' }))).toEqual({ do: 'wait' })
    expect(nextAct('starting', seen({ container: 'running', hasLinked: true }))).toEqual({
      do: 'enter',
      state: 'linked',
    })
    expect(nextAct('linked', seen({ container: 'running', hasLinked: true }))).toEqual({ do: 'wait' })
    expect(nextAct('linked', seen({ container: 'running', isRunOver: true }))).toEqual({ do: 'enter', state: 'ended' })
    expect(nextAct('ended', seen({ container: 'running', isRunOver: true }))).toEqual({ do: 'wait' })
    expect(nextAct('ended', seen({ container: 'exited', isRunOver: true }))).toEqual({ do: 'remove' })
  })

  it('is not created twice at once', () => {
    expect(nextAct('creating', seen({ isBeingCreated: true }))).toEqual({ do: 'wait' })
  })

  it('ends with its run in each state, also when no container was made', () => {
    for (const state of sandboxStates)
      expect(nextAct(state, seen({ isRunOver: true }))).toEqual(
        state === 'ended' ? { do: 'remove' } : { do: 'enter', state: 'ended' },
      )
  })

  it('is stopped when it does not leave by itself', () => {
    const late = stateLimits.ended! + 1
    expect(nextAct('ended', seen({ container: 'running', isRunOver: true, forMs: late }))).toEqual({ do: 'stop' })
  })

  it('takes the run along when its container is gone or came to nothing', () => {
    for (const container of ['exited', 'created', null] as const) {
      expect(nextAct('linked', seen({ container, hasLinked: true }))).toMatchObject({ exitReason: 'sandbox_lost' })
      expect(nextAct('salvaging', seen({ container }))).toMatchObject({ exitReason: 'sandbox_lost' })
      expect(nextAct('starting', seen({ container }))).toMatchObject({ exitReason: 'dispatch_error' })
    }
  })

  it('has a second container tell what a run left that was under way', () => {
    const lost = seen({ container: 'exited', hasLinked: true, hasStarted: true })
    expect(nextAct('linked', lost)).toEqual({ do: 'note loss' })
    expect(nextAct('lost', lost)).toEqual({ do: 'salvage' })
    // The server was killed between the start of it and the note of that.
    expect(nextAct('lost', { ...lost, container: 'running' })).toEqual({ do: 'enter', state: 'salvaging' })
    expect(nextAct('salvaging', { ...lost, container: 'running' })).toEqual({ do: 'wait' })
    for (const state of ['lost', 'salvaging'] as const) {
      const late = { ...lost, container: 'running' as const, forMs: stateLimits[state]! + 1 }
      expect(nextAct(state, late)).toMatchObject({ do: 'give up', exitReason: 'sandbox_lost' })
    }
  })

  it('has another one tell it when that died, within the same time', () => {
    const died = { hasLinked: true, hasStarted: true, maySalvageAgain: true }
    for (const container of ['exited', 'created', null] as const)
      expect(nextAct('salvaging', seen({ ...died, container }))).toEqual({ do: 'salvage' })
    expect(nextAct('salvaging', seen({ ...died, container: 'running' }))).toEqual({ do: 'wait' })
    expect(nextAct('salvaging', seen({ ...died, isRunOver: true }))).toEqual({ do: 'enter', state: 'ended' })
    const late = seen({ ...died, forMs: stateLimits.salvaging! + 1 })
    expect(nextAct('salvaging', late)).toMatchObject({ do: 'give up', exitReason: 'sandbox_lost' })
  })

  it('waits for a container that was started and does not run yet', () => {
    const waiting = seen({ container: 'waiting', hasStarted: true })
    expect(nextAct('creating', waiting)).toEqual({ do: 'wait' })
    expect(nextAct('lost', waiting)).toEqual({ do: 'enter', state: 'salvaging' })
    expect(nextAct('salvaging', waiting)).toEqual({ do: 'wait' })
    for (const state of ['creating', 'salvaging'] as const) {
      const late = { ...waiting, forMs: stateLimits[state]! + 1 }
      expect(nextAct(state, late)).toMatchObject({ do: 'give up' })
    }
    expect(nextAct('ended', { ...waiting, isRunOver: true })).toEqual({ do: 'remove' })
  })

  it('gives up what takes too long before the runner is connected, and nothing after', () => {
    for (const state of ['wanted', 'creating', 'starting'] as const) {
      const late = seen({ container: 'running', forMs: stateLimits[state]! + 1 })
      expect(nextAct(state, late)).toMatchObject({ do: 'give up', exitReason: 'dispatch_error' })
    }
    expect(nextAct('linked', seen({ container: 'running', hasLinked: true, forMs: 86_400_000 }))).toEqual({
      do: 'wait',
    })
  })
})

describe('a sandbox whose container was made ahead', () => {
  const warm = (changes: Partial<Seen> = {}) => seen({ isWarm: true, container: 'running', ...changes })

  it('is told who it is, and then as any other', () => {
    expect(nextAct('wanted', warm({ hasPlace: false }))).toEqual({ do: 'admit' })
    expect(nextAct('starting', warm())).toEqual({ do: 'wait' })
    expect(nextAct('starting', warm({ hasLinked: true }))).toEqual({ do: 'enter', state: 'linked' })
    expect(nextAct('wanted', warm({ isRunOver: true }))).toEqual({ do: 'enter', state: 'ended' })
  })

  it('gets another one when that has died, as long as nothing of the run was in it', () => {
    for (const container of ['exited', 'created', null] as const) {
      expect(nextAct('wanted', warm({ container }))).toEqual({ do: 'replace' })
      expect(nextAct('starting', warm({ container }))).toEqual({ do: 'replace' })
      expect(nextAct('starting', warm({ container, hasStarted: true }))).toMatchObject({ do: 'give up' })
      expect(nextAct('linked', warm({ container, hasLinked: true }))).toMatchObject({ exitReason: 'sandbox_lost' })
    }
  })

  it('has those that are made for their run wait for a place', () => {
    expect(nextAct('wanted', seen({ hasPlace: false }))).toEqual({ do: 'wait' })
    expect(nextAct('creating', seen({ hasPlace: false }))).toEqual({ do: 'create' })
  })
})

describe('a container that is made ahead', () => {
  const seenWarm = { container: null, isWanted: true, forMs: 0 } as const

  it('is made, and waits', () => {
    expect(nextWarmAct('making', seenWarm)).toEqual({ do: 'create' })
    expect(nextWarmAct('making', { ...seenWarm, container: 'created' })).toEqual({ do: 'start' })
    expect(nextWarmAct('making', { ...seenWarm, container: 'waiting' })).toEqual({ do: 'wait' })
    expect(nextWarmAct('making', { ...seenWarm, container: 'running' })).toEqual({ do: 'enter', state: 'ready' })
    expect(nextWarmAct('ready', { ...seenWarm, container: 'running', forMs: 1e9 })).toEqual({ do: 'wait' })
  })

  it('goes when it has died, takes too long, or is not wanted', () => {
    for (const container of ['exited', 'created', null] as const)
      expect(nextWarmAct('ready', { ...seenWarm, container })).toEqual({ do: 'retire', hasDied: true })
    expect(nextWarmAct('making', { ...seenWarm, container: 'exited' })).toEqual({ do: 'retire', hasDied: true })
    expect(nextWarmAct('making', { ...seenWarm, forMs: warmMakingMs + 1 })).toEqual({ do: 'retire', hasDied: true })
    for (const state of warmStates)
      for (const container of ['running', 'exited', null] as const)
        expect(nextWarmAct(state, { ...seenWarm, container, isWanted: false })).toEqual(
          state === 'retiring' ? { do: 'remove' } : { do: 'retire', hasDied: false },
        )
  })
})

describe('how many are made ahead', () => {
  const each = (id: string, changes: Partial<SeenPool['warm'][number]> = {}) =>
    ({ id, state: 'ready', madeOf: 'now', isKept: true, ...changes }) as const
  const plan = (changes: Partial<SeenPool>) => {
    const { unwanted, missing } = planPool({ warm: [], madeOf: 'now', wanted: 2, most: 4, sandboxes: 0, ...changes })
    return { unwanted: [...unwanted], missing }
  }

  it('is what was asked for, where the engine has room beside the runs', () => {
    expect(plan({})).toEqual({ unwanted: [], missing: 2 })
    expect(plan({ sandboxes: 3 })).toEqual({ unwanted: [], missing: 1 })
    expect(plan({ sandboxes: 4 })).toEqual({ unwanted: [], missing: 0 })
    expect(plan({ sandboxes: 9 })).toEqual({ unwanted: [], missing: 0 })
    expect(plan({ madeOf: null })).toEqual({ unwanted: [], missing: 0 })
    expect(plan({ warm: [each('a', { state: 'retiring' })], sandboxes: 2 })).toEqual({ unwanted: [], missing: 1 })
    expect(plan({ warm: [each('a'), each('b'), each('c')] })).toEqual({ unwanted: ['c'], missing: 0 })
  })

  it('gives way to runs, the youngest first', () => {
    const warm = [each('a'), each('b')]
    expect(plan({ warm, sandboxes: 2 })).toEqual({ unwanted: [], missing: 0 })
    expect(plan({ warm, sandboxes: 3 })).toEqual({ unwanted: ['b'], missing: 0 })
    expect(plan({ warm, sandboxes: 5 })).toEqual({ unwanted: ['b', 'a'], missing: 0 })
    const going = [each('a'), each('b', { state: 'retiring' })]
    expect(plan({ warm: going, sandboxes: 3 })).toEqual({ unwanted: [], missing: 0 })
  })

  it('counts none of another make, which go unless some server keeps them', () => {
    const warm = [each('a', { madeOf: 'before', isKept: false }), each('b', { madeOf: 'before' })]
    expect(plan({ warm })).toEqual({ unwanted: ['a'], missing: 2 })
    expect(plan({ warm, madeOf: null, wanted: 0 })).toEqual({ unwanted: ['a'], missing: 0 })
    expect(plan({ warm, sandboxes: 4 })).toEqual({ unwanted: ['a', 'b'], missing: 0 })
  })
})
