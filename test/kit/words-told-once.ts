import { expect } from 'vitest'
import type { RunEventBody } from '../../shared/runs/events.ts'
import type { DrivenRun } from './real-harness.ts'
import type { StubStep } from './stub-llm.ts'

/** Drives a real harness twice: to the end of its words, and killed in the middle of them. */
export async function expectWordsOnce(
  drive: () => DrivenRun,
  script: (...steps: StubStep[]) => Promise<unknown>,
): Promise<void> {
  const text = 'One letter after the other, and no word of it twice.'
  await script({ thinking: 'Slowly, then.', text, chunkDelayMs: 30 })
  const whole = drive()
  await whole.done
  expect(saidOf(whole.events).join('')).toBe(text)
  expect(saidOf(whole.events).length).toBeGreaterThan(2)
  expect(resultsOf(whole.events)).toEqual([{ text, isError: false }])
  await script({ text: text.repeat(20), chunkDelayMs: 60 })
  const killed = drive()
  await killed.event(({ kind }) => kind === 'text' && saidOf(killed.events).length > 2)
  killed.signal('SIGKILL')
  await killed.done
  const said = saidOf(killed.events).join('')
  expect(text.repeat(20).startsWith(said)).toBe(true)
  expect(said.length).toBeGreaterThan(10)
  expect(resultsOf(killed.events)).toEqual([])
}

const saidOf = (events: readonly RunEventBody[]) =>
  events.flatMap((event) => (event.kind === 'text' ? [event.data.text] : []))
const resultsOf = (events: readonly RunEventBody[]) =>
  events.flatMap((event) => (event.kind === 'result' ? [event.data] : []))
