import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeServedHome, type ServedHome } from './served-home.ts'
import { svcProgram } from './run-svc.ts'

// svc in a folder that was removed under it, as by an agent that removes the tree in which it worked.

let home: ServedHome
let env: Record<string, string>
beforeAll(async () => {
  home = makeServedHome()
  env = await home.inRun(() => ({ body: { object: 'list', data: [] } }))
  writeFileSync(join(home.dir, 'text'), 'some text')
})
afterAll(() => home.close())

function svcWithoutFolder(line: readonly string[]) {
  const gone = join(home.dir, 'gone')
  mkdirSync(gone)
  const script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
  const args = [
    '-c',
    script,
    'sh',
    gone,
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    svcProgram,
    ...line,
  ]
  return new Promise<{ status: unknown; stdout: string; stderr: string }>((resolve) => {
    execFile('/bin/sh', args, { env: { ...home.env, ...env } }, (error, stdout, stderr) =>
      resolve({ status: error === null ? 0 : error.code, stdout, stderr }),
    )
  })
}

test.each([
  ['version'],
  ['help exit-codes'],
  ['task list'],
  ['task list --help'],
  ['task list --nope'],
  ['run list --status=running --limit 3'],
  ['whoami'],
  ['api GET /runs --field status=running'],
  ['complete-words -- run get --ex'],
  ['completion bash'],
])('svc %s works', async (line) => {
  const { status, stderr } = await svcWithoutFolder(line.split(' '))
  expect(stderr).not.toContain('cli.bug')
  expect(stderr).not.toContain('folder_gone')
  expect(status).toBe(line.includes('--nope') ? 2 : 0)
})

test('a file that is named from the root on is read', async () => {
  const before = home.api.received.length
  const { status } = await svcWithoutFolder(['api', 'POST', '/tasks', '--input', join(home.dir, 'text')])
  expect(status).not.toBe(70)
  expect(home.api.received.slice(before).map(({ body }) => JSON.stringify(body))).toEqual([
    expect.stringContaining('some text'),
  ])
})

test.each([
  ['file upload notes.txt', 'notes.txt'],
  ['wiki ingest notes', 'notes'],
  ['api POST /tasks --input ./key', './key'],
])('svc %s says that the folder is gone', async (line, named) => {
  const { status, stderr } = await svcWithoutFolder(line.split(' '))
  expect(status).toBe(2)
  expect(stderr).toContain('cli.folder_gone')
  expect(stderr).toContain(`${named} cannot be found`)
})
