import { expect, test } from 'vitest'
import { failingDaysMs, outcomeOf, waitAfter, wantsEvent } from './rules.ts'

const facts = { attempts: 1, failingSince: null, now: 1_000_000_000, random: 0.5 }
const hourMs = 3_600_000

test('ten attempts lie within about a day, and those that failed together drift apart', () => {
  const waits = (random: number) => Array.from({ length: 9 }, (_, at) => waitAfter(at + 1, random)!)
  const sum = (all: readonly number[]) => all.reduce((one, other) => one + other, 0)
  expect(waits(0.5)).toEqual(waits(0.5).toSorted((a, b) => a - b))
  expect(sum(waits(0)) / hourMs).toBeGreaterThan(18)
  expect(sum(waits(0.999)) / hourMs).toBeLessThan(30)
  expect(waits(0)[0]).toBe(8_000)
  expect(waits(0.999)[0]).toBeGreaterThan(11_900)
  expect(waitAfter(10, 0.5)).toBeNull()
  expect(waitAfter(11, 0.5)).toBeNull()
})

test.each([200, 202, 204, 299])('%i takes the delivery', (status) => {
  expect(outcomeOf({ status }, facts)).toEqual({ isSuccess: true, error: null, nextMs: null, disables: null })
})

test.each([0, 199, 300, 302, 400, 404, 429, 500, 599])('%i is tried again', (status) => {
  expect(outcomeOf({ status }, facts)).toMatchObject({ isSuccess: false, nextMs: 10_000, disables: null })
})

test('410 is the end of the webhook, whenever it comes', () => {
  expect(outcomeOf({ status: 410 }, facts)).toMatchObject({ isSuccess: false, nextMs: null, disables: 'gone' })
})

test('a webhook is disabled by a delivery that is given up after days without one that was taken', () => {
  const last = { ...facts, attempts: 10 }
  const since = (ms: number) => ({ failingSince: facts.now - ms })
  const trouble = { trouble: 'No answer came within 10 s.' }
  expect(outcomeOf(trouble, { ...last, ...since(failingDaysMs) }).disables).toBe('failing')
  expect(outcomeOf(trouble, { ...last, ...since(failingDaysMs - 1) }).disables).toBeNull()
  expect(outcomeOf(trouble, last).disables).toBeNull()
  expect(outcomeOf(trouble, { ...facts, ...since(failingDaysMs) }).disables).toBeNull()
})

test('an event is wanted by name, or with all others', () => {
  expect(wantsEvent({ events: ['run.failed'] }, 'run.failed')).toBe(true)
  expect(wantsEvent({ events: ['run.failed'] }, 'run.succeeded')).toBe(false)
  expect(wantsEvent({ events: ['*'] }, 'of.later')).toBe(true)
})
