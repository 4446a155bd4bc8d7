import { expect, test } from 'vitest'
import { refusal, startApi } from './api-server.ts'
import { makeHome } from './run-svc.ts'

/** Commands that agents and people call all day load no schema library and no yargs: these cost more than the call. */

/** Says at the end which of the large packages were loaded. */
const watch = `data:text/javascript,${encodeURIComponent(`
import { registerHooks } from 'node:module'
const large = new Set()
registerHooks({ resolve(name, context, next) {
  const found = next(name, context)
  const match = /node_modules\\/(zod|yargs)\\//.exec(found.url)
  if (match) large.add(match[1])
  return found
} })
process.on('exit', () => process.stderr.write('loaded: ' + [...large].join(' ') + '\\n'))
`)}`

test.each([
  ['device', 'status'],
  ['agent', 'get', 'me'],
  ['run', 'list', '--status', 'running'],
  ['run', 'output', '--data', '1'],
  ['agent', 'config', 'set', '--help'],
])('svc %s %s', async (...line) => {
  const home = makeHome()
  const api = await startApi(() => refusal(404, 'resource_not_found'))
  const env = { SVC_TOKEN: 'the.run.token', SVC_API_URL: api.url, SVC_RUN_ID: 'run_3nB7cW1yHsD5jK9q' }
  const end = await home.svc(line, { env, nodeFlags: ['--import', watch] })
  await api.close()
  home.remove()
  expect(end.stderr.split('\n')).toContain('loaded: ')
})
