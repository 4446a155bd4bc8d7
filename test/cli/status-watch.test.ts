import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { waitFor } from '../kit/programs.ts'
import { refusal, type Answer, type Received } from './api-server.ts'
import { onTerminal, type OnTerminal } from './on-terminal.ts'
import { makeServedHome, type ServedHome } from './served-home.ts'

// `svc status --watch`: the same again and again, in one place of a terminal.

let home: ServedHome, watching: OnTerminal
beforeEach(() => {
  home = makeServedHome()
})
afterEach(async () => {
  watching.kill()
  await watching.ended
  await home.close()
})

const none = { body: { object: 'list', data: [], hasMore: false } }
const failedRun = (n: number) => ({
  id: `run_${String(n).padStart(16, '0')}`,
  status: 'failed',
  agent: { handle: '@builder' },
  completedAt: new Date().toISOString(),
})
const escape = String.fromCodePoint(27)
/** What stands on the terminal since it was last drawn anew. */
const screen = () => watching.shown.text.split(`${escape}[H`).at(-1)!.split(`${escape}[K`).join('')
const draws = () => watching.shown.text.split(`${escape}[H`).length - 1

const shows = (isSo: () => boolean) => waitFor(isSo, 'svc to show it', { about: () => watching.shown.text })

async function watch(answer: (request: Received, before: number) => Answer, ...more: string[]): Promise<void> {
  const { url } = await home.serve(answer)
  mkdirSync(join(home.dir, 'config'))
  writeFileSync(join(home.dir, 'config/login.json'), JSON.stringify({ server: url, token: 'svc_pat_x' }))
  watching = onTerminal(home, ['status', '--watch', ...more])
}

test('is drawn anew in its place, fits the screen, stays while the server is away, and ends with Ctrl-C', async () => {
  let state: 'quiet' | 'away' | 'many' = 'quiet'
  await watch(({ path, query }) => {
    if (state === 'away') return refusal(503, 'unavailable')
    const isFailed = path.endsWith('/runs') && query.toString().includes('failed')
    if (state === 'many' && isFailed)
      return { body: { ...none.body, data: Array.from({ length: 60 }, (_, n) => failedRun(n)) } }
    return none
  })
  await shows(() => screen().includes('nothing waits for you') && screen().includes('Ctrl-C ends it'))
  state = 'many'
  await shows(() => screen().includes('lines more'))
  const rows = screen().split('\r\n').length
  expect(rows).toBeLessThanOrEqual(40)
  expect(screen()).not.toContain('nothing waits for you')
  expect(draws()).toBeGreaterThan(1)
  state = 'away'
  await shows(() => screen().includes('does not answer') && screen().includes(failedRun(0).id))
  watching.type('\u0003')
  await watching.ended
})

test('is a line of JSON each time that it has changed, where JSON is asked for', async () => {
  let count = 0
  let isChanged = false
  await watch(({ path, query }) => {
    const isFailed = path.endsWith('/runs') && query.toString().includes('failed')
    if (isFailed) count++
    return isFailed && isChanged ? { body: { ...none.body, data: [failedRun(1)] } } : none
  }, '--json')
  await shows(() => count >= 2)
  isChanged = true
  await shows(() => watching.shown.text.includes(failedRun(1).id))
  expect(watching.shown.text.match(/"summary"/g)).toHaveLength(2)
})
