import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { waitFor } from '../kit/programs.ts'
import { onTerminal } from './on-terminal.ts'
import { makeServedHome, runId, type ServedHome } from './served-home.ts'

let home: ServedHome

beforeEach(() => {
  home = makeServedHome()
})
afterEach(() => home.close())

const successor = 'run_9xY2mK4pRtB6wQ1s'

test('a run whose retry is at work is retried once more with --force alone', async () => {
  let status = 'running'
  const env = await home.inRun(({ method, path }) => {
    if (method === 'POST') return { body: { runId: 'run_2aB4cD6eF8gH0jK1' } }
    return { body: path.endsWith(successor) ? { id: successor, status } : { id: runId, successorRunId: successor } }
  })
  const refused = await home.svc(['run', 'retry', 'current'], { env })
  expect([refused.status, refused.stdout]).toEqual([1, ''])
  const { error } = JSON.parse(refused.stderr)
  expect(error).toMatchObject({ code: 'cli.run_retried_already', details: { runId, successorRunId: successor } })
  expect(error.message).toBe(`${runId} has been retried already: ${successor} is running.`)
  expect(error.remediation).toContain('--force')
  expect(home.api.received.some(({ method }) => method === 'POST')).toBe(false)
  expect((await home.svc(['run', 'retry', 'current', '--force'], { env })).status).toBe(0)
  status = 'failed'
  const again = await home.svc(['run', 'retry', 'current', '--reason', 'once more'], { env })
  expect([again.status, home.api.received.at(-1)!.body]).toEqual([0, { reason: 'once more' }])
})

test.each([
  ['y\r', 0, 1],
  ['\r', 1, 0],
  ['\x03', 1, 0],
])('on a terminal a second retry is asked about: %j', async (typed, status, posts) => {
  const { url, received } = await home.serve(({ method, path }) => {
    if (method === 'POST') return { body: { runId: 'run_2aB4cD6eF8gH0jK1' } }
    return {
      body: path.endsWith(successor) ? { id: successor, status: 'queued' } : { id: runId, successorRunId: successor },
    }
  })
  mkdirSync(join(home.dir, 'config'))
  writeFileSync(join(home.dir, 'config/login.json'), JSON.stringify({ server: url, token: 'svc_pat_x' }))
  const terminal = onTerminal(home, ['run', 'retry', runId])
  const asked = `${runId} has been retried already: ${successor} is queued. Retry it once more? [y/N]`
  try {
    await waitFor(() => terminal.shown.text.includes(asked), 'it asks', { about: () => terminal.shown.text })
    terminal.type(typed)
    expect(await terminal.ended, terminal.shown.text).toBe(status)
  } finally {
    terminal.kill()
  }
  expect(received.filter(({ method }) => method === 'POST')).toHaveLength(posts)
})
