import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { checkFolder } from '../../../device-manager/folders/check.ts'
import { takeBase } from '../../../device-manager/change-set/snapshot.ts'
import { realWorld as world } from '../../../shared/lib/world.ts'
import { baseOf, changesOf, storeOf, tempDir, tempRepo, type Repo } from './repo.ts'

/** Links in a git folder, made behind the wall, lead git and svc, which are outside of it, to files that are hidden from the run. */

function secretFile(text: string): string {
  const file = join(tempDir(), 'secret')
  writeFileSync(file, text)
  return file
}

function linkIn(repo: Repo, path: string, target: string): void {
  const link = join(repo.dir, '.git', path)
  rmSync(link, { recursive: true, force: true })
  mkdirSync(dirname(link), { recursive: true })
  symlinkSync(target, link)
}

async function allTold(repo: Repo): Promise<string> {
  const taken = await takeBase({ folder: repo.dir, runId: 'run_test', storeDir: storeOf(repo.dir), world })
  return JSON.stringify([taken, await checkFolder(repo.dir)])
}

test('no line of a file that git stumbles over is told', async () => {
  const secret = secretFile('the first line\nthe second line\n')
  const harm: [string, (repo: Repo) => void][] = [
    [
      'packed-refs',
      (repo) => {
        rmSync(join(repo.dir, '.git', 'refs', 'heads', 'main'))
        linkIn(repo, 'packed-refs', secret)
      },
    ],
    [
      'alternates',
      (repo) => {
        repo.write('src/a.ts', 'staged\n')
        repo.git('add', '-A')
        rmSync(join(repo.dir, '.git', 'objects'), { recursive: true })
        mkdirSync(join(repo.dir, '.git', 'objects'))
        linkIn(repo, 'objects/info/alternates', secret)
      },
    ],
  ]
  for (const [name, act] of harm) {
    const repo = tempRepo()
    act(repo)
    const told = await allTold(repo)
    expect({ name, told }).toEqual({ name, told: expect.stringContaining('git failed') })
    expect({ name, told }).toEqual({ name, told: expect.not.stringMatching(/(?:first|second) line/) })
  }
})

const formats = [
  { format: 'sha1', key: '0123456789abcdef'.repeat(3).slice(0, 40) },
  { format: 'sha256', key: '0123456789abcdef'.repeat(4) },
] as const

test.each(formats)('a key in a file is not told as the commit of a branch, $format', async ({ format, key }) => {
  const secret = secretFile(`${key}\n`)
  const places: [string, (repo: Repo) => void][] = [
    ['head', (repo) => linkIn(repo, 'HEAD', secret)],
    ['ref', (repo) => linkIn(repo, 'refs/heads/main', secret)],
    [
      'folder of refs',
      (repo) => {
        linkIn(repo, 'refs/heads/keys', dirname(secret))
        writeFileSync(join(repo.dir, '.git', 'HEAD'), 'ref: refs/heads/keys/secret\n')
      },
    ],
    [
      'name with dots',
      (repo) => writeFileSync(join(repo.dir, '.git', 'HEAD'), `ref: refs/heads/../../../../${secret}\n`),
    ],
  ]
  for (const [place, act] of places) {
    const repo = tempRepo(['--object-format', format])
    const before = await baseOf(repo.dir)
    act(repo)
    const told = JSON.stringify(await changesOf(before)) + (await allTold(repo))
    expect({ place, told }).toEqual({ place, told: expect.not.stringContaining(key) })
  }
})

test('a head as git once linked it, a branch that names another one, and names in other alphabets are read', async () => {
  const repo = tempRepo()
  const commit = repo.git('rev-parse', 'HEAD').trim()
  for (const branch of ['früh/日本', 'fix#1+2@x']) {
    repo.git('checkout', '-q', '-b', branch)
    expect((await baseOf(repo.dir)).branch).toBe(branch)
  }
  repo.git('symbolic-ref', 'refs/heads/alias', 'refs/heads/main')
  repo.git('symbolic-ref', 'HEAD', 'refs/heads/alias')
  expect(await baseOf(repo.dir)).toMatchObject({ commit })
  const head = join(repo.dir, '.git', 'HEAD')
  renameSync(head, `${head}.old`)
  symlinkSync('refs/heads/main', head)
  expect(await baseOf(repo.dir)).toMatchObject({ commit, branch: 'main' })
})
