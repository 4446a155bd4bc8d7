import { becomeNobody } from '../../kit/nobody.ts'
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { checkFolder, inspectFolder } from '../../../device-manager/folders/check.ts'
import { folderCheck } from '../../../shared/device/folder-check.ts'
import { realWorld } from '../../../shared/lib/world.ts'

function tempDir(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'svc-folders-')))
  onTestFinished(() => {
    execFileSync('chmod', ['-R', 'u+rwx', dir])
    rmSync(dir, { recursive: true, force: true })
  })
  return dir
}

const git = (dir: string, ...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.com', ...args], {
    cwd: dir,
    encoding: 'utf8',
  }).trim()

test('a plain folder', async () => {
  const dir = tempDir()
  const check = await checkFolder(dir)
  const plain = {
    rootPath: dir,
    state: 'ok',
    realPath: dir,
    isSymlink: false,
    writable: true,
    git: null,
    message: null,
  }
  expect(check).toEqual(plain)
  expect(folderCheck.parse(check)).toEqual(check)
})

test('a repository with its branch, commit and remotes without credentials', async () => {
  const dir = tempDir()
  git(dir, 'init', '-q', '-b', 'main')
  git(dir, 'commit', '-q', '--allow-empty', '-m', 'x')
  git(dir, 'remote', 'add', 'origin', 'https://person:s3cret@example.com/a.git')
  git(dir, 'remote', 'add', 'odd.name', 'git@example.com:a.git')
  mkdirSync(join(dir, 'sub'))
  const check = await checkFolder(join(dir, 'sub'))
  expect(check.git).toEqual({
    topLevel: dir,
    branch: 'main',
    commit: git(dir, 'rev-parse', 'HEAD'),
    remotes: [
      { name: 'origin', url: 'https://example.com/a.git' },
      { name: 'odd.name', url: 'git@example.com:a.git' },
    ],
  })
  expect(JSON.stringify(check)).not.toContain('s3cret')
})

test('an unborn branch, and a bare repository', async () => {
  const dir = tempDir()
  git(dir, 'init', '-q', '-b', 'trunk', 'new')
  git(dir, 'init', '-q', '--bare', 'bare')
  expect((await checkFolder(join(dir, 'new'))).git).toMatchObject({ branch: 'trunk', commit: null, remotes: [] })
  expect(await checkFolder(join(dir, 'bare'))).toMatchObject({
    state: 'ok',
    git: null,
    message: expect.stringContaining('bare'),
  })
})

test('a symlink is shown as one, with where it leads; a dangling or looping one is missing', async () => {
  const dir = tempDir()
  mkdirSync(join(dir, 'real'))
  symlinkSync(join(dir, 'real'), join(dir, 'link'))
  symlinkSync(join(dir, 'nowhere'), join(dir, 'dangling'))
  symlinkSync('loop', join(dir, 'loop'))
  expect(await checkFolder(join(dir, 'link'))).toMatchObject({
    state: 'ok',
    isSymlink: true,
    realPath: join(dir, 'real'),
  })
  expect(await checkFolder(join(dir, 'dangling'))).toMatchObject({ state: 'missing', isSymlink: true, realPath: null })
  expect(await checkFolder(join(dir, 'loop'))).toMatchObject({ state: 'missing', isSymlink: true })
})

test('a file, a path below a file, a missing folder, a relative path and one with NUL', async () => {
  const dir = tempDir()
  writeFileSync(join(dir, 'file'), '')
  expect(await checkFolder(join(dir, 'file'))).toMatchObject({ state: 'not_a_directory' })
  expect(await checkFolder(join(dir, 'file', 'below'))).toMatchObject({ state: 'missing' })
  expect(await checkFolder(join(dir, 'gone'))).toMatchObject({ state: 'missing', realPath: null })
  expect(await checkFolder('relative/path')).toMatchObject({
    state: 'missing',
    message: expect.stringContaining('absolute'),
  })
  expect(await checkFolder(`${dir}\0x`)).toMatchObject({ state: 'missing' })
})

test('permissions of a person who is not root', () => {
  const dir = tempDir()
  for (const [name, mode] of [
    ['closed', 0o000],
    ['read-only', 0o555],
  ] as const) {
    mkdirSync(join(dir, name))
    chmodSync(join(dir, name), mode)
  }
  chmodSync(dir, 0o755)
  // Root may do everything, so the check runs in a process of another user where there is the right to become one.
  const module = new URL('../../../device-manager/folders/check.ts', import.meta.url).pathname
  const program = `import(process.argv[1]).then(async ({ checkFolder }) => {
    ${becomeNobody}
    const checks = []
    for (const path of process.argv.slice(2)) checks.push(await checkFolder(path))
    console.log(JSON.stringify(checks))
  })`
  const args = [
    '--input-type=module',
    '-e',
    program,
    module,
    join(dir, 'closed'),
    join(dir, 'closed', 'x'),
    join(dir, 'read-only'),
  ]
  const checks: unknown = JSON.parse(execFileSync(process.execPath, args, { cwd: '/', encoding: 'utf8' }))
  expect(checks).toMatchObject([
    { state: 'not_permitted', writable: false },
    { state: 'not_permitted', realPath: null },
    { state: 'ok', writable: false },
  ])
})

test('a repository whose config is far too long is looked at without its remotes', async () => {
  const dir = tempDir()
  git(dir, 'init', '-q', '-b', 'main')
  const remotes = Array.from({ length: 20_000 }, (_, at) => `[remote "r${at}"]\n\turl = ${'x'.repeat(300)}\n`)
  appendFileSync(join(dir, '.git', 'config'), remotes.join(''))
  expect((await checkFolder(dir)).git).toMatchObject({ branch: 'main', remotes: [] })
  expect(await inspectFolder(dir)).toEqual({
    facts: { state: 'ok', branch: 'main' },
    gitDir: join(dir, '.git'),
    isUnsure: false,
  })
})

test('a folder that does not answer is reported when the time is over', async () => {
  const world = { ...realWorld, sleep: async () => undefined }
  expect(await checkFolder(tempDir(), world)).toMatchObject({
    state: 'not_permitted',
    message: expect.stringContaining('5 s'),
  })
})
