import { expect, it } from 'vitest'
import type { HarnessProbe } from '../adapter.ts'
import { detectOpencode, opencodeSignInFiles } from './detect.ts'

function probe(files: Record<string, string>, env: Record<string, string> = {}): HarnessProbe {
  return {
    env,
    homeDir: '/home/dev',
    which: async () => '/bin/opencode',
    run: async () => ({ exitCode: 0, stdout: '1.18.33\n', stderr: '', timedOut: false }),
    exists: async (path) => Object.hasOwn(files, path),
    readStart: async (path) => files[path] ?? null,
  }
}
const auth = '/home/dev/.local/share/opencode/auth.json'
const settings = '/home/dev/.config/opencode/opencode.json'

it.each([
  ['nothing', {}, {}, false],
  ['credentials', { [auth]: '' }, {}, true],
  ['a key in the environment', {}, { ANTHROPIC_API_KEY: 'k' }, true],
  ['an empty key', {}, { ANTHROPIC_API_KEY: '' }, false],
  ['settings without a provider', { [settings]: '{ "model": "a/b" }' }, {}, false],
  ['a provider of the person', { [settings]: '{ "provider": {} }' }, {}, null],
  ['a provider in the environment', {}, { OPENCODE_CONFIG_CONTENT: '{"provider":{}}' }, null],
])('with %s', async (_, files, env, signedIn) => {
  const found = await detectOpencode(probe(files, env))
  const message = signedIn === false ? expect.stringContaining('opencode auth login') : null
  expect(found).toEqual({ installed: true, version: '1.18.33', signedIn, message })
})

it('looks where the person has put its folders', () => {
  const env = { XDG_DATA_HOME: '/data', XDG_CONFIG_HOME: '/conf', OPENCODE_CONFIG: '/my.json' }
  const files = opencodeSignInFiles({ env, homeDir: '/home/dev' })
  expect(files).toEqual(
    expect.arrayContaining(['/data/opencode/auth.json', '/conf/opencode/opencode.json', '/my.json']),
  )
})
