import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { pluginFiles, treeOf } from '../api/facts/kit/plugins.ts'
import { startGitServer, type GitServer } from '../kit/git-server.ts'
import { useRealServer } from './real-server.ts'

// The commands of plugins, by the real `svc` against a real server.

let git: GitServer
beforeAll(async () => void (git = await startGitServer()))
afterAll(() => git.close())
const real = useRealServer({ SVC_ALLOW_HOSTS: '127.0.0.1' })
const call = (line: readonly string[]) => real.svc(['plugin', ...line])

function folderOf(name: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'plugin-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  for (const [path, text] of Object.entries(pluginFiles({ name, servers: { docs: { command: 'docs-mcp' } } }))) {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), text)
  }
  return dir
}

test('all commands of docs/plugins.md work in their order', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/plugins.md'), 'utf8')
  const lines = page.split('\n').filter((line) => line.startsWith('svc plugin '))
  expect(lines.length).toBe(9)
  git.repo('tools.git').commit({ plugins: { harbour: treeOf(pluginFiles({ name: 'harbour' })) } })
  const values: Record<string, string> = { REPOSITORY: `${git.url}/tools.git`, FOLDER: folderOf('pier') }
  for (const line of lines) {
    const end = await call(
      line
        .split(' ')
        .slice(2)
        .map((word) => values[word] ?? word),
    )
    expect([line, end.status, end.stderr]).toEqual([line, 0, ''])
  }
  expect((await real.server.ok('/plugins')).data).toMatchObject([{ name: 'pier' }])
})

test('a plugin is named one way or the other, and what is none is said', async () => {
  const dir = folderOf('wharf')
  for (const line of [[], ['acme/x', '--dir', dir]]) {
    const { status, stderr } = await call(['install', ...line])
    expect([line, status, stderr.includes('--dir')]).toEqual([line, 2, true])
  }
  for (const [line, code] of [
    [['ext::sh -c true'], 'invalid_plugin_source'],
    [[`${git.url}/none.git`], 'plugin_source_unreadable'],
    [['--dir', join(dir, 'skills')], 'invalid_plugin'],
  ] as const) {
    const { status, stderr } = await call(['install', ...line])
    expect([line, status, stderr]).toEqual([line, 1, expect.stringContaining(code)])
  }
  symlinkSync('/etc/passwd', join(dir, 'link'))
  const linked = await call(['install', '--dir', dir])
  expect([linked.status, linked.stderr]).toEqual([1, expect.stringContaining('link')])
})
