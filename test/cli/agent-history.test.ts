import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeServedHome, type ServedHome } from './served-home.ts'

let home: ServedHome
beforeEach(() => {
  home = makeServedHome()
})
afterEach(() => home.close())

test('the commands of history reach their routes; a revert may leave the agent to the entry', async () => {
  const env = await home.inRun(() => ({ body: {} }))
  const id = '5b0c7d0e-6a7e-4b52-9a8e-2f9d1c3e4a6b'
  const lines = [
    ['agent', 'revert', id],
    ['agent', 'revert', id, '--agent', 'agt_8fK2mQ0xPzL4tR7v'],
    ['agent', 'history', '--kind', 'config', '--kind', 'sessions'],
    ['agent', 'revision', 'rollback', 'builder', id],
    ['agent', 'doctor'],
    ['agent', 'sessions', 'reset', 'builder'],
    ['agent', 'config', 'set', '--monthly-budget-cents', '500'],
  ]
  for (const line of lines) expect((await home.svc(line, { env })).status).toBe(0)
  expect(home.api.received.map(({ method, path }) => `${method} ${path.replace('/api/v1/agents', '')}`)).toEqual([
    `POST /me/history/${id}/revert`,
    `POST /agt_8fK2mQ0xPzL4tR7v/history/${id}/revert`,
    'GET /me/history',
    `POST /builder/revisions/${id}/rollback`,
    'GET /me/audit',
    'POST /builder/sessions/reset',
    'PUT /me/config',
  ])
  expect(home.api.received[2]!.query.getAll('kind')).toEqual(['config', 'sessions'])
  expect(home.api.received[6]!.body).toEqual({ config: { runtime: { monthlyBudgetCents: 500 } } })
})
