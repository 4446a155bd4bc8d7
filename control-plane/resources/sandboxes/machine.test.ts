import { describe, expect, it } from 'vitest'
import { sandboxStates } from '../../../shared/runs/sandbox-states.ts'
import { nextAct, stateLimits, type Seen } from './machine.ts'

const seen = (changes: Partial<Seen> = {}): Seen => ({
  container: null,
  hasLinked: false,
  hasStarted: false,
  isRunOver: false,
  isBeingCreated: false,
  maySalvageAgain: false,
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
