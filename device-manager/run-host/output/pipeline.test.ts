import { expect, it } from 'vitest'
import type { HarnessDialogue } from '../../harness/adapter.ts'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import { Pipeline } from './pipeline.ts'
import { streamRedactor, wholeValues } from './redaction.ts'
import { Redactor } from '../../../shared/lib/redact.ts'

const text = (said: string): { events: RunEventBody[] } => ({ events: [{ kind: 'text', data: { text: said } }] })

/** A pipeline of lines whose clock goes by the test. */
function pipelineOf(dialogue: Partial<HarnessDialogue>) {
  const timers = new Set<{ ms: number; fn: () => void }>()
  const told: unknown[] = []
  let now = 0
  const world = {
    // No two pieces come close to each other.
    monotonic: () => (now += 1_000),
    after(ms: number, fn: () => void) {
      const timer = { ms, fn }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
  }
  const nothing = () => undefined
  const pipeline = new Pipeline({
    world,
    dialogue: { push: () => text('said'), end: () => text('end'), ...dialogue } as HarnessDialogue,
    redactor: streamRedactor(new Redactor([])),
    redact: wholeValues(new Redactor([])),
    isTranscript: false,
    lookUp: () => Promise.reject(new Error('nothing is asked')),
    decide: () => {
      throw new Error('nothing is asked')
    },
    emit: (bodies) => told.push(...bodies.map(({ data }) => ('text' in data ? data.text : null))),
    write: nothing,
    closeInput: nothing,
    onFinished: nothing,
    onEndNow: nothing,
  })
  return { pipeline, timers, told }
}

it('what a dialogue holds back is shown one second after the last bytes, and not after the end', () => {
  const { pipeline, timers, told } = pipelineOf({ silent: () => text('held') })
  pipeline.output(Buffer.from('a'))
  pipeline.output(Buffer.from('b'))
  expect([...timers].map(({ ms }) => ms)).toEqual([1_000])
  for (const { fn } of timers) fn()
  expect(told).toEqual(['said', 'said', 'held'])
  pipeline.output(Buffer.from('c'))
  pipeline.end({ exitCode: 0, signal: null, stoppedFor: null })
  expect(told).toEqual(['said', 'said', 'held', 'said', 'end'])
  expect(timers.size).toBe(0)
})

it('no timer runs for a dialogue that holds nothing back', () => {
  const { pipeline, timers } = pipelineOf({})
  pipeline.output(Buffer.from('a'))
  expect(timers.size).toBe(0)
})
