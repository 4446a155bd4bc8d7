import { afterEach, beforeEach, expect, test } from 'vitest'
import { startApi, type ApiServer } from './api-server.ts'
import { makeHome, type Home } from './run-svc.ts'

let home: Home
let api: ApiServer
beforeEach(async () => {
  home = makeHome()
  api = await startApi(() => ({ body: {} }))
})
afterEach(async () => {
  await api.close()
  home.remove()
})

test('the commands of history reach their routes; a revert may leave the agent to the entry', async () => {
  const env = { SVC_TOKEN: 't', SVC_API_URL: api.url, SVC_RUN_ID: 'run_3nB7cW1yHsD5jK9q' }
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
  expect(api.received.map(({ method, path }) => `${method} ${path.replace('/api/v1/agents', '')}`)).toEqual([
    `POST /me/history/${id}/revert`,
    `POST /agt_8fK2mQ0xPzL4tR7v/history/${id}/revert`,
    'GET /me/history',
    `POST /builder/revisions/${id}/rollback`,
    'GET /me/audit',
    'POST /builder/sessions/reset',
    'PUT /me/config',
  ])
  expect(api.received[2]!.query.getAll('kind')).toEqual(['config', 'sessions'])
  expect(api.received[6]!.body).toEqual({ config: { runtime: { monthlyBudgetCents: 500 } } })
})
