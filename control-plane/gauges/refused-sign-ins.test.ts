import { expect, test } from 'vitest'
import { refusedSignIn } from './refused-sign-ins.ts'

const request = (routeId: string | null, status: number, code: string | null) =>
  refusedSignIn({ requestId: 'req_1', method: 'POST', durationMs: 1, routeId, status, code })

test.each([
  ['agents.list', 401, 'auth_invalid', 'token'],
  ['agents.list', 401, 'auth_missing', 'token'],
  ['runs.get', 401, 'auth.agent_jwt_revoked', 'token'],
  [null, 401, 'auth_invalid', 'token'],
  ['sign_in.link', 410, 'page_refused', 'page'],
  ['sign_in.device', 429, 'rate_limit_exceeded', 'page'],
  ['auth.token', 400, 'invalid_grant', 'device_flow'],
  ['auth.token', 400, 'access_denied', 'device_flow'],
  ['github.webhook', 401, 'auth_invalid', 'webhook'],
])('%s, %i %s: refused by the way of %s', (routeId, status, code, way) => {
  expect(request(routeId, status, code)).toEqual({ way, reason: code })
})

test.each([
  ['somebody who is known may do less', 'agents.list', 403, 'not_permitted'],
  ['somebody who is known asks too much', 'agents.list', 429, 'rate_limit_exceeded'],
  ['a device waits for its code', 'auth.token', 400, 'authorization_pending'],
  ['a device asks too often', 'auth.token', 400, 'slow_down'],
  ['the server fails', 'sign_in.link', 503, 'page_refused'],
  ['all is well', 'agents.list', 200, null],
])('%s: no refused sign-in', (_, routeId, status, code) => {
  expect(request(routeId, status, code)).toBeNull()
})
