import { expect, test } from 'vitest'
import { refusal, stream } from './api-server.ts'
import { makeServedHome } from './served-home.ts'

// Commands that agents and people call all day load no schema library and no yargs: these cost more than the call. The parser of streams
// is loaded by what follows one.

/** Says at the end which of the large packages were loaded: what is bundled stands under a line that names its file. */
const watch = `data:text/javascript,${encodeURIComponent(`
import { registerHooks } from 'node:module'
const large = new Set()
registerHooks({ load(url, context, next) {
  const loaded = next(url, context)
  for (const [, name] of (loaded.source ?? '').toString().matchAll(/^\\/\\/ node_modules\\/(zod|yargs|eventsource-parser|string-width|jq-wasm)\\//gm)) large.add(name)
  return loaded
} })
process.on('exit', () => process.stderr.write('loaded: ' + [...large].join(' ') + '\\n'))
`)}`

test.each([
  ['device', 'status'],
  ['agent', 'get', 'me'],
  ['run', 'list', '--status', 'running'],
  ['run', 'output', '--data', '1'],
  ['agent', 'config', 'set', '--help'],
  ['run', 'list', '--json', 'id,status', '--all'],
  ['run', 'events', 'current'],
  ['run', 'create', '--agent', '@b', '--prompt', 'x'],
])('svc %s %s', async (...line) => {
  expect(await packagesOf(line)).toBe('')
})

test('it would be seen', async () => {
  expect(await packagesOf(['run', 'list', '--no-such-flag'])).toContain('yargs')
  const run = { body: { object: 'run', id: 'run_1', status: 'queued' } }
  expect(await packagesOf(['run', 'get', 'current', '-o', 'table'], run)).toContain('string-width')
  expect(await packagesOf(['run', 'get', 'current', '--jq', '.id'], run)).toBe('jq-wasm')
  const ended = stream([{ id: null, event: 'ended', data: '{}' }], 'end')
  expect(await packagesOf(['run', 'events', 'current', '--follow'], ended)).toBe('eventsource-parser')
})

async function packagesOf(line: readonly string[], answer = refusal(404, 'resource_not_found')): Promise<string> {
  const home = makeServedHome()
  const env = await home.inRun(() => answer)
  const end = await home.svc(line, { env, nodeFlags: ['--import', watch] })
  await home.close()
  const said = end.stderr.split('\n').find((each) => each.startsWith('loaded: '))
  if (said === undefined) throw new Error(end.stderr)
  return said.slice('loaded: '.length)
}
