import { idFrom } from '../../../shared/lib/ids.ts'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { checkFolder } from '../../../device-manager/folders/check.ts'
import { defaultLimits } from '../../../device-manager/change-set/limits.ts'
import { takeBase } from '../../../device-manager/change-set/snapshot.ts'
import { realWorld as world } from '../../../shared/lib/world.ts'
import { isLong } from '../../kit/forms.ts'
import { baseOf, changesOf, gitIn, storeOf, tempDir, tempRepo, type Repo } from './repo.ts'

// Links in a git folder, made behind the wall, lead git and svc, which are outside of it, to files that are hidden from the run.

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
  const taken = await takeBase({ folder: repo.dir, runId: idFrom('run_test'), storeDir: storeOf(repo.dir), world })
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
  // The key of the vault has this length.
  { format: 'sha256', key: '0123456789abcdef'.repeat(4) },
  ...(isLong ? [{ format: 'sha1', key: '0123456789abcdef'.repeat(3).slice(0, 40) }] : []),
]

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
      'ref beside a table of refs that is none',
      (repo) => {
        linkIn(repo, 'refs/heads/main', secret)
        mkdirSync(join(repo.dir, '.git', 'reftable'))
        writeFileSync(join(repo.dir, '.git', 'reftable', 'tables.list'), '')
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

const nestings = formats.flatMap(({ format, key }) => [
  { format, key, isTracked: false },
  { format, key, isTracked: true },
])

test.each(nestings)(
  'a key in a file is not told as the commit of a repository within, $format, tracked: $isTracked',
  async ({ format, key, isTracked }) => {
    const secret = secretFile(`${key}\n`)
    const repo = tempRepo(['--object-format', format])
    const inner = join(repo.dir, 'inner')
    gitIn(repo.dir, ['clone', '-q', '.', 'inner'])
    if (isTracked) {
      repo.git('-c', 'advice.addEmbeddedRepo=false', 'add', 'inner')
      repo.commit()
    }
    const before = await baseOf(repo.dir)
    gitIn(inner, ['commit', '-q', '--allow-empty', '-m', 'within'])
    const commit = gitIn(inner, ['rev-parse', 'HEAD']).trim()
    expect((await changesOf(before)).diff).toContain(`+Subproject commit ${commit}`)
    for (const name of ['HEAD', 'refs/heads/main']) {
      rmSync(join(inner, '.git', name))
      symlinkSync(secret, join(inner, '.git', name))
      const told = JSON.stringify(await changesOf(before))
      expect({ name, told }).toEqual({ name, told: expect.not.stringContaining(key) })
      rmSync(join(inner, '.git', name))
      writeFileSync(join(inner, '.git', name), name === 'HEAD' ? 'ref: refs/heads/main\n' : `${commit}\n`)
    }
    expect((await changesOf(before)).diff).toContain(`+Subproject commit ${commit}`)
    rmSync(join(inner, '.git', 'refs', 'heads', 'main'))
    symlinkSync(secret, join(inner, '.git', 'refs', 'heads', 'main'))
    const misled = await baseOf(repo.dir, 'run_misled')
    rmSync(join(inner, '.git', 'refs', 'heads', 'main'))
    writeFileSync(join(inner, '.git', 'refs', 'heads', 'main'), `${commit}\n`)
    expect(JSON.stringify(await changesOf(misled))).not.toContain(key)
  },
)

test('an object that is a pipe holds nobody up', async () => {
  const repo = tempRepo()
  const commit = repo.git('rev-parse', 'HEAD').trim()
  const object = join(repo.dir, '.git', 'objects', commit.slice(0, 2), commit.slice(2))
  rmSync(object)
  execFileSync('mkfifo', [object])
  const limits = { ...defaultLimits, gitMs: 1_000 }
  const taken = await takeBase({
    folder: repo.dir,
    runId: idFrom('run_test'),
    storeDir: storeOf(repo.dir),
    world,
    limits,
  })
  expect(taken).toMatchObject({ ok: false })
})

test("a repository whose git folder is one of svc's own is not looked at", async () => {
  const repo = tempRepo()
  repo.write('src/a.ts', 'dirty\n')
  const { storeDir } = await baseOf(repo.dir)
  const other = tempRepo()
  for (const act of [
    () => writeFileSync(join(other.dir, '.git'), `gitdir: ${storeDir}\n`),
    () => symlinkSync(storeDir, join(other.dir, '.git')),
    () => {
      renameSync(join(other.dir, 'old.git'), join(other.dir, '.git'))
      writeFileSync(join(other.dir, '.git', 'commondir'), `${storeDir}\n`)
      writeFileSync(join(other.dir, '.git', 'HEAD'), `${repo.git('rev-parse', 'HEAD').trim()}\n`)
    },
  ]) {
    if (existsSync(join(other.dir, 'old.git'))) rmSync(join(other.dir, '.git'))
    else renameSync(join(other.dir, '.git'), join(other.dir, 'old.git'))
    act()
    const before = readdirSync(storeDir, { recursive: true }).length
    const next = join(dirname(dirname(storeDir)), 'run_next', 'change-set')
    const taken = await takeBase({ folder: other.dir, runId: idFrom('run_next'), storeDir: next, world })
    expect(taken).toMatchObject({ ok: false, code: 'repo_unavailable' })
    expect(readdirSync(storeDir, { recursive: true })).toHaveLength(before)
  }
})
