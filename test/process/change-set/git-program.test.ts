import { execFile, execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, expect, test } from 'vitest'
import { findGit } from '../../../device-manager/change-set/git.ts'
import { releaseBase } from '../../../device-manager/change-set/diff.ts'
import { replaceableGit } from '../../../device-manager/isolation/trial.ts'
import { becomeUser } from '../../kit/nobody.ts'
import { baseOf, changesOf, summary, tempDir, tempRepo } from './repo.ts'

const path = process.env['PATH']
afterEach(() => {
  process.env['PATH'] = path
})

/** A folder with a program `git`, which leaves a file when it is run. */
function folderWithGit() {
  const folder = tempDir()
  writeFileSync(join(folder, 'git'), `#!/bin/sh\ntouch '${folder}/was-run'\nexec /usr/bin/git "$@"\n`)
  chmodSync(join(folder, 'git'), 0o755)
  return { folder, hasRun: () => existsSync(join(folder, 'was-run')) }
}

test('a git that a run put first on the PATH is not run', async () => {
  const repo = tempRepo()
  const planted = folderWithGit()
  process.env['PATH'] = `${planted.folder}:${path}`
  const base = await baseOf(repo.dir)
  writeFileSync(join(repo.dir, 'new.txt'), 'new')
  expect(summary((await changesOf(base)).files)).toEqual(['added new.txt'])
  await releaseBase(base)
  expect(planted.hasRun()).toBe(false)
  execFileSync('git', ['--version'])
  expect(planted.hasRun()).toBe(true)
})

/** As an ordinary user, on a machine whose system folders have no git. */
async function foundWithout(systemGit: string, search: string): Promise<ReturnType<typeof findGit>> {
  const script = `
    import { findGit } from '${join(import.meta.dirname, '../../../device-manager/change-set/git.ts')}'
    ${becomeUser(1234)}
    process.stdout.write(JSON.stringify(findGit('${search}')))`
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '-e']
  const hide = `mount --bind /dev/null '${systemGit}' && exec "$@"`
  const all = ['--mount', '/bin/sh', '-c', hide, 'sh', ...node, script]
  return JSON.parse((await promisify(execFile)('unshare', all)).stdout) as ReturnType<typeof findGit>
}

test('where the system has none, one that this user cannot replace comes before one that he can', async ({ skip }) => {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    skip('needs root, to own what an ordinary user may not change')
  const system = findGit('')!.file
  const [firm, loose] = [folderWithGit().folder, folderWithGit().folder]
  for (const folder of [firm, loose]) chmodSync(folder, 0o755)
  chmodSync(loose, 0o777)
  mkdirSync(join(firm, 'empty'))
  expect(await foundWithout(system, `${loose}:${firm}`)).toEqual({ file: `${firm}/git`, isReplaceable: false })
  expect(await foundWithout(system, `relative:${loose}:${firm}/empty`)).toEqual({
    file: `${loose}/git`,
    isReplaceable: true,
  })
  expect(await foundWithout(system, `${firm}/empty`)).toBe(null)
})

test('a git that can be replaced is told', () => {
  const told = 'A run may put another program in the place of /opt/homebrew/bin/git'
  expect(replaceableGit({ file: '/opt/homebrew/bin/git', isReplaceable: true })).toContain(told)
  for (const git of [null, { file: '/usr/bin/git', isReplaceable: false }]) expect(replaceableGit(git)).toBe(null)
})
