import { expect, test } from 'vitest'
import { readConfig } from './config.ts'

test('an empty port is no port, and not any free one', () => {
  expect(() => readConfig({ SVC_PORT: '' }, {})).toThrow('SVC_PORT')
  expect(() => readConfig({ SVC_PORT: ' ' }, {})).toThrow('SVC_PORT')
  expect(readConfig({ SVC_PORT: '0' }, {}).port).toBe(0)
  expect(readConfig({ SVC_PORT: '4401' }, { port: 0 }).port).toBe(0)
  expect(readConfig({}, {}).port).toBe(4400)
})

test.each([
  ['http://127.0.0.1:9000', true],
  ['http://127.1.2.3:9000', true],
  ['http://[::1]:9000', true],
  ['http://localhost:9000', true],
  ['http://127.example.com', false],
  ['http://127.0.0.1.example.com', false],
])('%s is on this machine: %s', (url, isHere) => {
  const read = () => readConfig({ SVC_GITHUB_API_URL: url }, {})
  if (isHere) expect(read().github.apiUrl).toBe(url)
  else expect(read).toThrow('begins with https://')
})

test('only where another replica can be, a server that ends tells of it for a while, unless it is told how long', () => {
  const drainMs = (env: Record<string, string>) => readConfig(env, {}).drainMs
  const shared = { SVC_DATABASE_URL: 'postgres://svc@db.example.com/svc' }
  expect(drainMs({})).toBe(0)
  expect(drainMs(shared)).toBe(5_000)
  expect(drainMs({ ...shared, SVC_DRAIN_MS: '0' })).toBe(0)
  expect(drainMs({ SVC_DRAIN_MS: '2000' })).toBe(2_000)
})
