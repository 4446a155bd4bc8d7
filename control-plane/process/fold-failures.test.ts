import { expect, test } from 'vitest'
import { foldFailures } from './fold-failures.ts'
import type { Log } from './log.ts'

function folding() {
  const lines: { message: string; times?: number; run?: number }[] = []
  const timers: (() => void)[] = []
  const write = (fields: object, message: string) => void lines.push({ message, ...fields })
  const inner: Log = { debug: write, info: write, warn: write, error: write, child: () => inner }
  const log = foldFailures(inner, {
    world: { after: (_, fn) => (timers.push(fn), () => undefined) },
    kindOf: (error) => (error === 'gone' || error === 'full' ? error : null),
  })
  const minute = () => {
    for (const fn of timers.splice(0)) fn()
  }
  const told = () =>
    lines.splice(0).map(({ message, times }) => (times === undefined ? message : `${message} x${times}`))
  return { log, minute, told }
}

test('the same failure is a line at once, and then one a minute with how many there were', () => {
  const { log, minute, told } = folding()
  for (let run = 0; run < 1000; run++) log.error({ err: 'gone', run }, 'a request failed')
  for (let run = 0; run < 5; run++) log.child({ a: 1 }).warn({ err: 'gone' }, 'a sweep failed')
  log.error({ err: 'full' }, 'a request failed')
  expect(told()).toEqual(['a request failed', 'a sweep failed', 'a request failed'])
  minute()
  expect(told()).toEqual(['a request failed x999', 'a sweep failed x4'])
  log.error({ err: 'gone' }, 'a request failed')
  minute()
  expect(told()).toEqual(['a request failed x1'])
  minute()
  log.error({ err: 'gone' }, 'a request failed')
  expect(told()).toEqual(['a request failed'])
})

test('what is no failure of that kind is written each time', () => {
  const { log, told } = folding()
  for (let time = 0; time < 2; time++) {
    log.error({ err: new Error('a bug') }, 'a request failed')
    log.warn({}, 'a warning')
    log.info({ err: 'gone' }, 'for information')
    log.debug({}, 'a detail')
  }
  expect(told()).toHaveLength(8)
})
