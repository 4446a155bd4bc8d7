import { expect, test } from 'vitest'
import type { RunEvent } from '../../shared/api/run-events.ts'
import { printedLines } from '../../test/kit/system-scenario.ts'
import { Absences } from './absences.ts'
import { judge, whyUntrue, type RunFacts } from './judge.ts'
import { Account } from './promises.ts'

// Each promise is found broken by facts that break it: a proof that could not fail would prove nothing.

const events = (exitReason = 'completed', lines = 4): RunEvent[] =>
  [
    ...Array.from({ length: lines }, (_, index) => ({
      kind: 'text',
      data: { text: printedLines(1, { from: index + 1 }) },
    })),
    { kind: 'ended', data: { exitReason } },
  ].map((event, index) => ({ ...event, seq: index + 1 }) as unknown as RunEvent)

const facts = (changes: Partial<RunFacts> = {}): RunFacts => ({
  runId: 'run_1',
  exitReason: 'completed',
  events: events(changes.exitReason ?? 'completed'),
  starts: 1,
  isDone: true,
  printed: printedLines(4),
  compareChanges: () => undefined,
  excuses: { isKilled: false, hadFullDisk: false, isRestored: false },
  ...changes,
})
const numbered = (all: readonly RunEvent[]) => all.map((event, index) => ({ ...event, seq: index + 1 }))
const without = (at: number) => events().toSpliced(at, 1)
const brokenBy = (changes: Partial<RunFacts>) => [...new Set(judge(facts(changes)).map(({ promise }) => promise))]
const killed = { isKilled: true, hadFullDisk: false, isRestored: false }

test('a run of which all is true breaks no promise', () => {
  expect(judge(facts())).toEqual([])
  const cutOff = events('crashed', 2)
  expect(judge(facts({ exitReason: 'crashed', events: cutOff, isDone: false, excuses: killed }))).toEqual([])
})

test.each<[string, Partial<RunFacts>, string[]]>([
  ['a missing number', { events: without(1) }, ['events']],
  ['an event that is lost, with the numbers closed over it', { events: numbered(without(1)) }, ['events']],
  ['an event that is there twice', { events: numbered(events().toSpliced(1, 0, events()[1]!)) }, ['events']],
  ['the last line is lost', { events: numbered(without(3)) }, ['events']],
  ['a gap that is declared, of a disk that had room', { events: withGap() }, ['events']],
  ['two starts', { starts: 2 }, ['starts']],
  ['two starts of a run without an ending', { starts: 2, exitReason: null }, ['starts', 'truth']],
  ['complete without a start', { starts: 0 }, ['starts']],
  ['two endings', { events: numbered([...events(), events().at(-1)!]) }, ['ending']],
  ['an ending that is not the last event', { events: numbered([events().at(-1)!, ...without(4)]) }, ['ending']],
  ['an ending that is another one than its event', { events: events('error') }, ['ending']],
  ['no ending', { exitReason: null }, ['truth']],
  ['complete before its harness was', { isDone: false }, ['truth']],
  ['crashed without a reason', { exitReason: 'crashed' }, ['truth']],
  ['lost, though its host was only killed', { exitReason: 'runner_lost', excuses: killed }, ['truth']],
  ['a change-set that differs', { compareChanges: () => expect('made').toBe('now') }, ['changes']],
])('%s', (_, changes, promises) => {
  expect(brokenBy(changes)).toEqual(promises)
})

function withGap(): RunEvent[] {
  const bytes = Buffer.byteLength(printedLines(1, { from: 2 }))
  return events().with(1, { seq: 2, kind: 'gap', data: { bytes } } as unknown as RunEvent)
}

test('a gap that is declared is no loss where the disk was full, and one that is too small is', () => {
  const excuses = { isKilled: false, hadFullDisk: true, isRestored: false }
  expect(judge(facts({ events: withGap(), excuses }))).toEqual([])
  const small = withGap().with(1, { seq: 2, kind: 'gap', data: { bytes: 1 } } as unknown as RunEvent)
  expect(brokenBy({ events: small, excuses })).toEqual(['events'])
})

test('an ending by a moved clock is the harness’s own, unless a device was silent for an hour', () => {
  const endedAt = Date.UTC(2026, 0, 1)
  const told = (exitReason: 'completed' | 'error' | 'runner_lost', lateMs = 0) => ({
    exitReason,
    completedAt: new Date(endedAt + lateMs).toISOString(),
  })
  const own = { exitReason: 'completed', endedAt } as const
  const minutes = (count: number) => count * 60_000
  expect(whyUntrue(own, told('completed'), { isServerAway: false, silentMs: minutes(30) })).toBeNull()
  expect(whyUntrue(own, told('completed'), { isServerAway: true, silentMs: minutes(1_400) })).toBeNull()
  expect(whyUntrue(own, told('runner_lost'), { isServerAway: false, silentMs: minutes(120) })).toBeNull()
  expect(whyUntrue(own, null, { isServerAway: false, silentMs: 1 })).toContain('no ending')
  expect(whyUntrue(own, told('error'), { isServerAway: false, silentMs: 1 })).toContain('told as error')
  expect(whyUntrue(own, told('runner_lost'), { isServerAway: false, silentMs: minutes(30) })).toContain('runner_lost')
  expect(whyUntrue(own, told('runner_lost'), { isServerAway: true, silentMs: minutes(120) })).toContain('runner_lost')
  expect(whyUntrue(own, told('completed'), { isServerAway: false, silentMs: minutes(120) })).toContain(
    'told as completed',
  )
  expect(whyUntrue(own, told('completed', minutes(30)), { isServerAway: false, silentMs: minutes(30) })).toContain(
    '1800 s',
  )
})

test('an ending counts from the return of the last thing that was away between', () => {
  const absences = new Absences()
  const at = Date.now()
  const back = absences.begin('link', at - 9_000)
  expect(absences.returnMs({ from: at - 5_000, to: at + 1_000 })).toBe(0)
  back()
  const measured = absences.returnMs({ from: at - 5_000, to: at + 3_000 })
  expect(measured).toBeGreaterThan(2_000)
  expect(measured).toBeLessThanOrEqual(3_000)
  expect(absences.returnMs({ from: at + 60_000, to: at + 61_000 })).toBeNull()
  absences.begin('disk', at)()
  expect(absences.met('disk', { from: at - 1_000, to: at + 60_000 })).toBe(true)
  expect(absences.met('state', { from: at - 1_000, to: at + 60_000 })).toBe(false)
})

test('one promise broken, or more than a twentieth of the endings late, is no proof', () => {
  const account = new Account()
  for (let count = 0; count < 95; count++) account.returned(1_000)
  for (let count = 0; count < 5; count++) account.returned(60_000)
  expect(account.isKept()).toBe(true)
  account.returned(60_000)
  expect(account.isKept()).toBe(false)
  const other = new Account()
  other.tried('gates')
  expect(other.isKept()).toBe(true)
  other.add([{ promise: 'gates', runId: 'run_1', why: 'made' }])
  expect(other.isKept()).toBe(false)
  expect(other.rows().find(({ promise }) => promise === 'gates')).toMatchObject({ tried: 1, wrong: 1 })
})
