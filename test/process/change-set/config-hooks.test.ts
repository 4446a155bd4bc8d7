import { execFile } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeEach, expect, test } from 'vitest'
import { findGit } from '../../../device-manager/change-set/git.ts'
import { compileCache } from '../../kit/compile-cache.ts'
import { gitIn, repoAt, tempDir, tempRepo, type Repo } from './repo.ts'

// A git as it is from 2.54 on: the config names programs that run when refs or the index change, and no setting switches
// them off. It stands in the place of the system's git, in a mount namespace of the test, and writes down how it was called.

beforeEach(({ skip }) => {
  if (process.platform !== 'linux') skip('namespaces are of Linux')
})

const moduleAt = (path: string) => join(import.meta.dirname, '../../..', path)
const questions = ['rev-parse', 'symbolic-ref', 'config']

/** Runs the script, which takes a base of `folder` and more, under such a git. */
async function underNewGit(folder: string, script: string) {
  const dir = tempDir()
  const at = (name: string) => join(dir, name)
  const git = realpathSync(findGit(process.env['PATH'] ?? '')!.file)
  copyFileSync(git, at('real-git'))
  const hook = `touch '${at('marker')}'`
  mkdirSync(at('home'))
  const config = `[hook "x"]\n\tevent = reference-transaction\n\tcommand = ${hook}\n`
  for (const file of [at('home/.gitconfig'), join(gitIn(folder, ['rev-parse', '--git-common-dir']).trim(), 'config')])
    writeFileSync(join(file.startsWith('/') ? '' : folder, file), config, { flag: 'a' })
  writeFileSync(
    at('git'),
    `#!/bin/sh
    command=
    skip=
    for word do
      if [ -n "$skip" ]; then skip=; elif [ "$word" = -c ]; then skip=1; else command=$word; break; fi
    done
    hook=$('${at('real-git')}' config --get hook.x.command)
    echo "$command \${hook:+under its config}" >>'${at('log')}'
    case $command in ${questions.join('|')}) ;; *) [ -z "$hook" ] || sh -c "$hook" ;; esac
    exec '${at('real-git')}' "$@"\n`,
  )
  chmodSync(at('git'), 0o755)
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '-e']
  const program = `
    import { takeBase } from '${moduleAt('device-manager/change-set/snapshot.ts')}'
    import { computeChangeSet, releaseBase } from '${moduleAt('device-manager/change-set/diff.ts')}'
    import { checkFolder } from '${moduleAt('device-manager/folders/check.ts')}'
    import { realWorld as world } from '${moduleAt('shared/lib/world.ts')}'
    import { execFileSync } from 'node:child_process'
    import { writeFileSync } from 'node:fs'
    const folder = '${folder}'
    const real = (...args) => execFileSync('${at('real-git')}', args, { cwd: folder, encoding: 'utf8' })
    const storeDir = '${at('state/runs/run_test/change-set')}'
    const said = []
    const taken = await takeBase({ folder, runId: 'run_test', storeDir, world })
    if (!taken.ok) throw new Error(taken.message)
    said.push(real('for-each-ref', '--format=%(objectname)', 'refs/svc').trim() === taken.base.commit)
    ${script}
    await checkFolder(folder)
    const changes = await computeChangeSet({ base: taken.base, folder, runId: 'run_test', world })
    said.push(changes.ok && changes.changeSet.files.length)
    await releaseBase(taken.base)
    said.push(real('for-each-ref', 'refs/svc'))
    process.stdout.write(JSON.stringify(said))`
  const setUp = `mount --bind '${at('git')}' '${git}' && exec "$@"`
  const inside = ['--user', '--map-root-user', '--mount', '/bin/sh', '-c', setUp, 'sh', ...node, program]
  const env = { PATH: process.env['PATH'], HOME: at('home'), GIT_CONFIG_NOSYSTEM: '1', ...compileCache }
  const { stdout } = await promisify(execFile)('unshare', inside, { env })
  const calls = readFileSync(at('log'), 'utf8').trim().split('\n')
  return { said: JSON.parse(stdout) as unknown, calls, hasRun: existsSync(at('marker')) }
}

const write = `writeFileSync(folder + '/new.txt', 'new')`
const cases: Record<string, { repo?: (repo: Repo) => string; script: string }> = {
  'a plain repository': { script: write },
  'refs that were packed during the run': { script: `${write}; real('pack-refs', '--all')` },
  'a config that only git reads': {
    repo: (repo) => (repo.git('config', 'include.path', '/nonexistent'), repo.dir),
    script: write,
  },
  'a repository of SHA-256': { repo: () => tempRepo(['--object-format=sha256']).dir, script: write },
  'a linked worktree': {
    repo: (repo) => {
      const linked = join(tempDir(), 'linked')
      repo.git('worktree', 'add', '-q', linked)
      return linked
    },
    script: `${write}; real('pack-refs', '--all')`,
  },
}

test.each(Object.entries(cases))('no program of the config is run: %s', async (_, { repo, script }) => {
  const own = tempRepo()
  const folder = repo?.(own) ?? own.dir
  const { said, calls, hasRun } = await underNewGit(folder, script)
  expect(said).toEqual([true, 1, ''])
  const underTheirs = calls.filter((call) => call.endsWith('under its config')).map((call) => call.split(' ')[0])
  expect(underTheirs.filter((command) => !questions.includes(command!))).toEqual([])
  expect(underTheirs.length).toBeGreaterThan(0)
  expect(hasRun).toBe(false)
})

test('the hooks of that git are live', async () => {
  const { dir } = tempRepo()
  const { hasRun } = await underNewGit(
    dir,
    `${write}; execFileSync('git', ['update-ref', 'refs/x', 'HEAD'], { cwd: folder })`,
  )
  expect(hasRun).toBe(true)
  expect(repoAt(dir).git('rev-parse', 'refs/x').trim()).toHaveLength(40)
})
