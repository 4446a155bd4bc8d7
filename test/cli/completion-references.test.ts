import { execFile } from 'node:child_process'
import { chmodSync, lstatSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { referenceCandidates, referenceSources } from '../../cli/flows/complete-references.ts'
import { readEnvironment } from '../../cli/machine/environment.ts'
import { createValidator } from '../../control-plane/http/validate.ts'
import { contract } from '../../shared/api/index.ts'
import { fieldNamesOf, replyShapeOf } from '../../shared/api/reply-shape.ts'
import { realWorld } from '../../shared/lib/world.ts'
import type { Answer } from './api-server.ts'
import { svcProgram } from './run-svc.ts'
import { makeServedHome, type ServedHome } from './served-home.ts'

// Handles, keys and names of the server, as a shell completes them.

let home: ServedHome
beforeEach(() => {
  home = makeServedHome()
})
afterEach(() => home.close())

const agents = (...handles: readonly string[]): Answer => ({
  body: { object: 'list', data: handles.map((handle) => ({ handle, name: 'The \u001b[2Jbuilder', status: 'idle' })) },
})
const folder = () => join(home.dir, '.cache/svc/completion')

/** Without the short time that a shell waits, which a busy machine may not keep. */
async function wordsWithin(withinMs: number, env: Record<string, string>, kind: 'agent' | 'run' = 'agent') {
  const variables = { ...home.env, ...env }
  const context = { env: readEnvironment(variables), world: realWorld }
  const found = await referenceCandidates(context, { kind, workspaceId: null }, { variables, withinMs })
  return found.map(({ word }) => word)
}
const patient = 20_000

test('words are asked for once, and kept for this caller alone in a folder that nobody else reads', async () => {
  const env = await home.inRun(() => agents('builder', '@reviewer'))
  expect(await wordsWithin(patient, env)).toEqual(['@builder', '@reviewer'])
  expect(await wordsWithin(patient, env)).toEqual(['@builder', '@reviewer'])
  expect(home.api.received).toHaveLength(1)
  expect(lstatSync(folder()).mode & 0o777).toBe(0o700)
  for (const name of readdirSync(folder())) expect(lstatSync(join(folder(), name)).mode & 0o777).toBe(0o600)
  await wordsWithin(patient, { ...env, SVC_TOKEN: 'another' })
  expect(home.api.received).toHaveLength(2)
})

test('each kind of reference has a list, which takes what it is asked, and whose records have the word', () => {
  for (const [kind, { path, key, word }] of Object.entries(referenceSources)) {
    const [at, search] = path.split('?') as [string, string | undefined]
    const route = contract.find((one) => one.method === 'GET' && one.path === `/${at}`)
    expect([kind, route?.id]).toEqual([kind, expect.any(String)])
    createValidator(route!).query(search ?? '')
    const shape = replyShapeOf(route!)
    expect([kind, shape?.list]).toEqual([kind, key ?? 'data'])
    expect([kind, fieldNamesOf(shape!.record)]).toEqual([kind, expect.arrayContaining([word[0]])])
  }
})

test('two at once leave one whole file', async () => {
  const env = await home.inRun(() => agents('builder'))
  await Promise.all([wordsWithin(patient, env), wordsWithin(patient, env)])
  expect(readdirSync(folder())).toHaveLength(1)
  expect(await wordsWithin(1, env)).toEqual(['@builder'])
})

test('words whose file is a moment younger than the clock are fresh', async () => {
  const env = await home.inRun(() => agents('builder'))
  await wordsWithin(patient, env)
  const later = (Date.now() + 900) / 1_000
  for (const name of readdirSync(folder())) utimesSync(join(folder(), name), later, later)
  expect(await wordsWithin(1, env)).toEqual(['@builder'])
})

test('what could steer a terminal or be a flag is no word', async () => {
  const env = await home.inRun(() => agents('ok', 'a\u001b[2J', 'b\nc', 'd\te', '-rf', 'f\u202eg', '', 'x'.repeat(300)))
  expect(await wordsWithin(patient, env)).toEqual(['@ok'])
})

test.each<[string, Answer]>([
  ['hangs', () => undefined],
  ['fails', { status: 500, body: {} }],
  ['sends too much', { body: { object: 'list', data: [{ handle: 'x', pad: 'x'.repeat(10_000_000) }] } }],
  ['is something else', (response) => response.end('<html>')],
  ['sends odd rows', { body: { data: [null, 1, [], { handle: 3 }, { handle: { a: 1 } }] } }],
  ['breaks off', (response) => response.destroy()],
])('a server that %s leaves no words, and says nothing', async (_, answer) => {
  const env = await home.inRun(() => answer)
  expect(await wordsWithin(300, env)).toEqual([])
  const end = await home.svc(['complete-words', '--', 'agent', 'get', '@'], { env, isOwnProcess: true })
  expect(end).toEqual({ status: 0, stdout: '', stderr: '' })
})

test('nobody is asked, and nothing said, where nobody is signed in', async () => {
  const end = await home.svc(['complete-words', '--', 'agent', 'get', '@'], { isOwnProcess: true })
  expect(end).toEqual({ status: 0, stdout: '', stderr: '' })
})

test('a folder that is a link, open to others, or a file is not used', async () => {
  const env = await home.inRun(() => agents('builder'))
  mkdirSync(join(home.dir, '.cache/svc'), { recursive: true })
  const elsewhere = join(home.dir, 'elsewhere')
  mkdirSync(elsewhere, { mode: 0o700 })
  symlinkSync(elsewhere, folder())
  expect(await wordsWithin(patient, env)).toEqual(['@builder'])
  expect(readdirSync(elsewhere)).toEqual([])
  const open = { ...env, XDG_CACHE_HOME: join(home.dir, 'open') }
  mkdirSync(join(home.dir, 'open/svc/completion'), { recursive: true })
  chmodSync(join(home.dir, 'open/svc/completion'), 0o777)
  expect(await wordsWithin(patient, open)).toEqual(['@builder'])
  expect(readdirSync(join(home.dir, 'open/svc/completion'))).toEqual([])
  writeFileSync(join(home.dir, 'file'), '')
  expect(await wordsWithin(patient, { ...env, XDG_CACHE_HOME: join(home.dir, 'file') })).toEqual(['@builder'])
})

test('a real bash completes a handle behind its @, and writes what a name holds for the shell so that it stays a name', async () => {
  const launcher = `#!/bin/sh\nexec '${process.execPath}' --disable-warning=ExperimentalWarning '${svcProgram}' "$@"\n`
  writeFileSync(join(home.dir, 'svc'), launcher)
  chmodSync(join(home.dir, 'svc'), 0o755)
  const env = await home.inRun(() => agents('builder', 'bad;touch${IFS}owned', '$(touch owned)', 'b*'))
  // The shell reads what was found a moment ago.
  await wordsWithin(patient, env)
  writeFileSync(join(home.dir, 'completion.bash'), (await home.svc(['completion', 'bash'])).stdout)
  const inBash = (words: string, line: string, at: number) =>
    new Promise<string>((resolve, reject) => {
      const ask = `. ./completion.bash; COMP_WORDS=(${words}); COMP_CWORD=${at}; COMP_LINE='${line}'; COMP_POINT=\${#COMP_LINE}; _svc; printf '%s\\n' "\${COMPREPLY[@]}"`
      const own = { ...home.env, ...env, PATH: `${home.dir}:${home.env['PATH']}` }
      execFile('bash', ['--norc', '-c', ask], { env: own, cwd: home.dir }, (error, stdout) =>
        error === null ? resolve(stdout) : reject(error),
      )
    })
  expect(await inBash('svc agent get @ bui', 'svc agent get @bui', 4)).toBe('builder\n')
  expect(await inBash('svc agent get @', 'svc agent get @', 3)).toBe(
    'builder\nbad\\;touch\\$\\{IFS\\}owned\n\\$\\(touch\\ owned\\)\nb\\*\n',
  )
  expect(await inBash('svc run events --sort = d', 'svc run events --sort=d', 5)).toBe('desc\n')
  expect(await inBash("svc agent get ''", 'svc agent get ', 3)).toContain('@builder\n')
  expect(readdirSync(home.dir)).not.toContain('owned')
})
