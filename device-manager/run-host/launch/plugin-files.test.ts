import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { McpServer, McpServers } from '../../../shared/runs/mcp-servers.ts'
import { mostPluginFiles, pluginBundlesOf, pluginFolder } from '../../../shared/runs/plugin-files.ts'
import { keepBundleIn } from '../../../test/kit/kept-bundle.ts'
import { withPluginFiles } from './plugin-files.ts'

let root = ''
beforeEach(() => (root = mkdtempSync(join(tmpdir(), 'svc-plugins-'))))
afterEach(() => rmSync(root, { recursive: true, force: true }))

const place = () => ({ brought: { bundles: join(root, 'skills'), missed: [] }, folder: join(root, 'run', 'plugins') })
const keep = (contents: Record<string, string>) => keepBundleIn(join(root, 'skills'), contents).bundleHash
const program = (hash: string): McpServer => ({
  type: 'stdio',
  command: `${pluginFolder(hash)}/bin/server.sh`,
  args: [`--in=${pluginFolder(hash)}/a`, '${TOKEN}'],
  env: { PLUGIN_ROOT: pluginFolder(hash) },
})
const other: McpServer = { type: 'http', url: 'https://a.example' }
const lacks = (name: string) => ({ name, why: 'the files of its plugin could not be brought to this device' })

test('a program finds the files of its plugin in a folder of the run alone', async () => {
  const hash = keep({ 'plugin.json': '{}', 'bin/server.sh': 'echo', a: 'x' })
  const served = await withPluginFiles({ one: program(hash), two: program(hash), other }, place())
  const folder = join(root, 'run', 'plugins', hash.slice(0, 16))
  const filled = {
    type: 'stdio',
    command: `${folder}/bin/server.sh`,
    args: [`--in=${folder}/a`, '${TOKEN}'],
    env: { PLUGIN_ROOT: folder },
  }
  expect(served).toEqual({ servers: { one: filled, two: filled, other }, leftOut: [] })
  const modes = ['.', 'bin', 'bin/server.sh', 'a'].map((path) => statSync(join(folder, path)).mode & 0o777)
  expect(modes).toEqual([0o700, 0o700, 0o700, 0o600])
  // A run changes its copy and nobody else's.
  writeFileSync(join(folder, 'bin/server.sh'), 'rm')
  await withPluginFiles({ one: program(hash) }, place())
  expect(readFileSync(join(folder, 'bin/server.sh'), 'utf8')).toBe('echo')
})

test('a server whose files are not there, or are others, is left out, and the next run has them brought anew', async () => {
  const [kept, changed] = [keep({ 'plugin.json': '{}' }), keep({ 'plugin.json': '{ }', 'bin/server.sh': 'echo' })]
  writeFileSync(join(root, 'skills', changed, 'files', 'bin/server.sh'), 'evil')
  const missing = 'f'.repeat(64)
  const servers = { kept: program(kept), changed: program(changed), missing: program(missing), other }
  const served = await withPluginFiles(servers, place())
  expect([Object.keys(served.servers), served.leftOut]).toEqual([
    ['kept', 'other'],
    [lacks('changed'), lacks('missing')],
  ])
  expect(existsSync(join(root, 'skills', changed))).toBe(false)
  expect(existsSync(join(root, 'run', 'plugins', changed.slice(0, 16)))).toBe(false)
  const nothing = await withPluginFiles(servers, null)
  expect([Object.keys(nothing.servers), nothing.leftOut.length]).toEqual([['other'], 3])
})

test('addresses name no folder, and only so many are brought', () => {
  const remote: McpServer = { type: 'http', url: `https://a.example/${pluginFolder('a'.repeat(64))}` }
  expect(pluginBundlesOf({ remote })).toEqual([])
  const args = Array.from({ length: 100 }, (_, at) => pluginFolder(String(at).padStart(64, '0')))
  const servers: McpServers = { many: { type: 'stdio', command: 'x', args } }
  expect(pluginBundlesOf(servers)).toHaveLength(mostPluginFiles)
})
