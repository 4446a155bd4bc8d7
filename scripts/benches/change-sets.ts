import { idFrom } from '../../shared/lib/ids.ts'
import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { computeChangeSet, releaseBase } from '../../device-manager/change-set/diff.ts'
import { takeBase } from '../../device-manager/change-set/snapshot.ts'
import { realWorld } from '../../shared/lib/world.ts'
import type { Bench, Context } from './context.ts'
import { atMost, compare, type Result } from './measure.ts'
import { isShort } from './sizes.ts'

const run = promisify(execFile)
const changed = 100

/** Half of the changes are edits, half are new files. */
export const changeSets: Bench = {
  name: 'change-sets',
  about: 'base and change-set of a repository with 100 changes, against the bare git commands that find the same',
  async run(context) {
    const results: Result[] = []
    for (const files of isShort ? [1_000] : [1_000, 10_000, ...(context.large ? [100_000] : [])])
      results.push(...(await measure(context, files)))
    if (!context.large) context.say('not measured without --large: 100,000 files')
    return results
  },
}

async function measure(context: Context, files: number): Promise<Result[]> {
  const folder = makeRepository(join(context.scratch, `repo-${files}`), files)
  const runId = `run_${String(files).padStart(16, '0')}`
  // A repository that lies in the state folder of the device is refused.
  const storeDir = join(context.scratch, `state-${files}`, 'runs', runId, 'change-set')
  const common = { unit: 'ms', rounds: context.rounds }
  const takeOne = async () => {
    const result = await takeBase({ folder, runId: idFrom(runId), storeDir, world: realWorld })
    if (!result.ok) throw new Error(result.message)
    return result.base
  }
  const base = await compare({
    ...common,
    goal: 14,
    target: atMost(1.15),
    name: `base of a clean tree, ${files} files`,
    peerIs: 'git diff HEAD beside ls-files -o',
    ours: () => timed(async () => void (await takeOne())),
    peer: () => timed(() => bareDiff(folder)),
  })
  const snapshot = await takeOne()
  change(folder, files)
  const diff = await compare({
    ...common,
    goal: 14,
    target: atMost(1.15),
    name: `change-set, ${files} files, ${changed} changed`,
    peerIs: 'git diff HEAD beside ls-files -o',
    ours: () =>
      timed(async () => {
        const result = await computeChangeSet({ base: snapshot, folder, runId: idFrom(runId), world: realWorld })
        if (!result.ok) throw new Error(result.message)
        if (result.changeSet.files.length !== changed) throw new Error(`${result.changeSet.files.length} files`)
      }),
    peer: () => timed(() => bareDiff(folder)),
  })
  await releaseBase(snapshot)
  rmSync(folder, { recursive: true, force: true })
  return [base, diff]
}

async function timed(work: () => Promise<void>): Promise<number[]> {
  const samples: number[] = []
  for (let i = 0; i < 3; i++) {
    const start = performance.now()
    await work()
    samples.push(performance.now() - start)
  }
  return samples
}

/** Both at once; `--no-optional-locks`, so that git does not refresh the index for the next one. */
async function bareDiff(folder: string): Promise<void> {
  const options = { cwd: folder, maxBuffer: 64 * 1024 * 1024 }
  await Promise.all([
    run('git', ['--no-optional-locks', 'diff', '--patch', 'HEAD'], options),
    run('git', ['--no-optional-locks', 'ls-files', '--others', '--exclude-standard', '-z'], options),
  ])
}

const pathOf = (index: number) => `dir-${index % 100}/file-${index}.txt`

function makeRepository(folder: string, files: number): string {
  for (let dir = 0; dir < 100; dir++) mkdirSync(join(folder, `dir-${dir}`), { recursive: true })
  for (let index = 0; index < files; index++)
    writeFileSync(join(folder, pathOf(index)), `file ${index}\n${'line\n'.repeat(20)}`)
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=b', '-c', 'user.email=b@localhost', ...args], { cwd: folder, stdio: 'pipe' })
  git('init', '--quiet')
  git('add', '.')
  git('commit', '--quiet', '-m', 'Begin')
  // Files written in the second of the index are read again by git each time; a moment later they are not.
  execFileSync('sleep', ['1.1'])
  git('update-index', '--refresh')
  return folder
}

function change(folder: string, files: number): void {
  for (let index = 0; index < changed / 2; index++) {
    writeFileSync(join(folder, pathOf(index * Math.floor(files / changed))), `file ${index}\nchanged\n`)
    writeFileSync(join(folder, `dir-${index}/new-${index}.txt`), `new ${index}\n`)
  }
}
