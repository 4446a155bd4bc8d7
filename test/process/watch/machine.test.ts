import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Device } from '../../../shared/api/devices.ts'
import type { Folder } from '../../../shared/api/folders.ts'
import type { ControlValue } from '../../../shared/device/control.ts'
import { waitFor } from '../../kit/programs.ts'
import { TestSystem } from '../../kit/system.ts'

// A person changes something on the machine of a device, and sees it in the API within two seconds.

const seenMs = 2_000
/** On a machine that is busy with all tests at once; nobody would look by the clock before a minute is over. */
const busyMs = 20_000
/** The times that the changes took to be seen. */
const took: number[] = []

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start()
})
afterAll(() => system.stop())

const at = (...names: string[]) => join(system.root, ...names)
const git = (folder: string, ...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.com', ...args], { cwd: folder })

function repository(name: string): string {
  mkdirSync(at(name), { recursive: true })
  git(at(name), 'init', '-q', '-b', 'main')
  git(at(name), 'commit', '-q', '--allow-empty', '-m', 'x')
  return at(name)
}

const serve = (rootPath: string) =>
  system.api.call<Folder>('POST', '/folders', {
    displayName: 'folder',
    rootPath,
    deviceId: system.device.identity.publicId,
  })

async function folderNow({ shortId }: Pick<Folder, 'shortId'>): Promise<Pick<Folder, 'state' | 'branch'>> {
  const { sources } = await system.api.call<{ sources: Folder[] }>('GET', '/folders')
  const { state, branch } = sources.find((folder) => folder.shortId === shortId)!
  return { state, branch }
}

async function seen(isSeen: () => Promise<boolean>, what: string): Promise<void> {
  const begun = performance.now()
  // Asked more often, the server would take from the processor what the device needs to see it.
  await waitFor(isSeen, what, { ms: busyMs, everyMs: 100, about: () => system.device.log })
  took.push(performance.now() - begun)
}

async function sees(folder: Pick<Folder, 'shortId'>, expected: Partial<Folder>): Promise<void> {
  const isSeen = async () => {
    const found = await folderNow(folder)
    return Object.entries(expected).every(([name, value]) => found[name as 'state'] === value)
  }
  await seen(isSeen, `the folder is ${JSON.stringify(expected)}`)
}

test('a folder that is added, moved away and brought back', async () => {
  const root = repository('site')
  const folder = await serve(root)
  const otherwise = await serve(`${root}/.//`)
  await sees(folder, { state: 'ok', branch: 'main' })
  for (let round = 0; round < 2; round++) {
    renameSync(root, at('away'))
    await sees(folder, { state: 'missing', branch: null })
    await sees(otherwise, { state: 'missing', branch: null })
    renameSync(at('away'), root)
    await sees(folder, { state: 'ok', branch: 'main' })
  }
  rmSync(root, { recursive: true })
  await sees(folder, { state: 'missing' })
  writeFileSync(root, '')
  await sees(folder, { state: 'not_a_directory' })
})

test('a branch that is switched, also in a linked worktree and in a folder of a repository', async () => {
  const root = repository('code')
  mkdirSync(join(root, 'docs'))
  git(root, 'worktree', 'add', '-q', at('tree'), '-b', 'side')
  const folders = [await serve(root), await serve(join(root, 'docs')), await serve(at('tree'))] as const
  for (const [index, branch] of ['main', 'main', 'side'].entries()) await sees(folders[index]!, { branch })
  git(root, 'switch', '-q', '-c', 'topic/one')
  await sees(folders[0], { branch: 'topic/one' })
  await sees(folders[1], { branch: 'topic/one' })
  git(at('tree'), 'switch', '-q', '-c', 'other')
  await sees(folders[2], { branch: 'other' })
  git(root, 'switch', '-q', '--detach')
  await sees(folders[0], { state: 'ok', branch: null })
  git(root, 'switch', '-q', 'main')
  await sees(folders[0], { branch: 'main' })
  renameSync(join(root, 'docs'), join(root, 'papers'))
  await sees(folders[1], { state: 'missing' })
  await sees(folders[0], { state: 'ok' })
})

test('a folder that becomes a repository, and one in a folder that does not exist yet', async () => {
  mkdirSync(at('plain'))
  const plain = await serve(at('plain'))
  const later = await serve(at('later', 'deep', 'site'))
  await sees(plain, { state: 'ok', branch: null })
  await sees(later, { state: 'missing' })
  git(at('plain'), 'init', '-q', '-b', 'first')
  await sees(plain, { branch: 'first' })
  repository('later/deep/site')
  await sees(later, { state: 'ok', branch: 'main' })
})

test('a path of another system, and one that goes through a file', async () => {
  writeFileSync(at('file'), '')
  await sees(await serve('C:\\code'), { state: 'missing' })
  await sees(await serve(at('file', 'below')), { state: 'missing' })
})

test('a symlink that is led elsewhere', async () => {
  const one = repository('one')
  const two = repository('two')
  git(two, 'switch', '-q', '-c', 'second')
  symlinkSync(one, at('link'))
  const folder = await serve(at('link'))
  await sees(folder, { branch: 'main' })
  symlinkSync(two, at('next'))
  renameSync(at('next'), at('link'))
  await sees(folder, { branch: 'second' })
  renameSync(two, at('gone'))
  await sees(folder, { state: 'missing' })
})

test('a branch that is switched a thousand times is right at the end', async () => {
  const root = repository('busy')
  const folder = await serve(root)
  await sees(folder, { branch: 'main' })
  for (let count = 0; count < 1_000; count++) {
    writeFileSync(join(root, '.git', 'HEAD.lock'), `ref: refs/heads/b${count}\n`)
    renameSync(join(root, '.git', 'HEAD.lock'), join(root, '.git', 'HEAD'))
  }
  await sees(folder, { branch: 'b999' })
})

/** A `claude` that is signed in while its credentials are there, and counts how often it was asked. */
function installClaude(): void {
  const { homeDir } = system.device
  mkdirSync(join(homeDir, 'bin'))
  const program = `#!/bin/sh
if [ "$1" = --version ]; then echo '2.1.329 (Claude Code)'; exit; fi
if [ -f "$HOME/.claude/.credentials.json" ]; then echo '{"loggedIn":true}'; else echo '{"loggedIn":false}'; fi
`
  writeFileSync(join(homeDir, 'bin', 'claude'), program)
  chmodSync(join(homeDir, 'bin', 'claude'), 0o755)
  writeFileSync(join(homeDir, '.profile'), `PATH=${join(homeDir, 'bin')}:$PATH\n`)
}

async function signedIn(): Promise<boolean | null | undefined> {
  const { devices } = await system.api.call<{ devices: Device[] }>('GET', '/devices')
  const { providerReadiness } = devices.find(({ publicId }) => publicId === system.device.identity.publicId)!
  return 'harnesses' in providerReadiness ? providerReadiness.harnesses['claude']?.signedIn : undefined
}

test('refresh answers what is true now, of a program that the profile came to name a moment ago', async () => {
  const before = (await system.device.control({ op: 'refresh' })) as ControlValue<'refresh'>
  expect(before.readiness.harnesses['claude']).toMatchObject({ installed: false })
  installClaude()
  const after = (await system.device.control({ op: 'refresh' })) as ControlValue<'refresh'>
  expect(after.readiness.harnesses['claude']).toMatchObject({ installed: true, signedIn: false })
  expect(await signedIn()).toBe(false)
})

test('a harness that is signed in and out', async () => {
  const folder = join(system.device.homeDir, '.claude')
  const file = join(folder, '.credentials.json')
  const is = (expected: boolean) => seen(async () => (await signedIn()) === expected, `signed in: ${expected}`)
  mkdirSync(folder)
  writeFileSync(file, '{}')
  await is(true)
  rmSync(file)
  await is(false)
  writeFileSync(`${file}.new`, '{}')
  renameSync(`${file}.new`, file)
  await is(true)
  rmSync(folder, { recursive: true })
  await is(false)
})

test('what is watched is little', async () => {
  const { pid } = system.device.program
  const count = execFileSync('sh', ['-c', `cat /proc/${pid}/fdinfo/* 2>/dev/null | grep -c ^inotify || true`])
  expect(Number(count)).toBeGreaterThan(0)
  expect(Number(count)).toBeLessThan(40)
})

test('changes are seen within two seconds', () => {
  const half = took.toSorted((a, b) => a - b)[Math.floor(took.length / 2)]
  expect(half).toBeLessThan(seenMs)
})
