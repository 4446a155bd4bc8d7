import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdirSync, openSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { ChangedFile, ChangeSetResult } from '../../../shared/device/change-set.ts'
import { baseOf, changesOf, gitIn, resultOf, summary, tempDir, tempRepo, type Repo } from './repo.ts'

/** What git waits for at the attributes of a folder, again and again: `step` happens while it waits. */
function pausing(folder: string): { next(step?: () => void): Promise<void>; stop(): Promise<void> } {
  const pipe = join(folder, '.gitattributes')
  execFileSync('mkfifo', [pipe])
  const over = new AbortController()
  let serving: Promise<void> = Promise.resolve()
  const next = async (step: () => void = () => {}) => {
    for (;;) {
      const file = openOrNull(pipe)
      if (file !== null) {
        step()
        closeSync(file)
        return
      }
      if (over.signal.aborted) return
      await sleep(2)
    }
  }
  return {
    async next(step) {
      await next(step)
      serving = (async () => {
        while (!over.signal.aborted) await next()
      })()
    },
    async stop() {
      over.abort()
      await serving
    },
  }
}

/** Null while nobody reads. */
function openOrNull(pipe: string): number | null {
  try {
    return openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return null
  }
}

/** A folder of svc's with a file in it that no run may see. */
function hiddenFolder(): string {
  const hidden = tempDir()
  writeFileSync(join(hidden, 'token'), 'secret of svc\n')
  return hidden
}

/** Exchanges the folder for a link while git waits at it, and puts it back while git waits at the later one. */
async function exchangeWhile<Result>(
  { dir }: Repo,
  hidden: string,
  work: () => Promise<Result>,
): Promise<{ result: Result; wasExchanged: boolean }> {
  const [place, later] = [join(dir, 'folder'), join(dir, 'later')]
  const [aside, link] = [join(dirname(dir), 'aside'), join(dirname(dir), 'link')]
  symlinkSync(hidden, link)
  const [first, second] = [pausing(place), pausing(later)]
  const working = work()
  let wasExchanged = false
  await first.next(() => {
    renameSync(place, aside)
    renameSync(link, place)
    wasExchanged = true
  })
  await second.next(() => {
    renameSync(place, link)
    renameSync(aside, place)
  })
  const result = await working
  await Promise.all([first.stop(), second.stop()])
  rmSync(join(place, '.gitattributes'))
  rmSync(join(later, '.gitattributes'))
  return { result, wasExchanged }
}

function repoOfTwoFolders(): Repo {
  const repo = tempRepo()
  repo.write('folder/token', 'before\n')
  repo.write('later/file', 'before\n')
  repo.commit()
  return repo
}

test('what git reads in a folder that is exchanged for a link meanwhile, and put back, is in no diff', async () => {
  const repo = repoOfTwoFolders()
  const base = await baseOf(repo.dir)
  repo.write('folder/token', 'after\n')
  repo.write('later/file', 'after\n')
  const { result, wasExchanged } = await exchangeWhile(repo, hiddenFolder(), () => resultOf(base))
  expect(wasExchanged).toBe(true)
  expect(result).toMatchObject({ ok: true })
  const { files, diff } = (result as Extract<ChangeSetResult, { ok: true }>).changeSet
  expect(summary(files).slice(0, 1)).toEqual(['modified folder/token'])
  expect(diff).not.toContain('secret of svc')
})

test('a linked worktree in whose place a link stands is not looked at', async () => {
  const repo = tempRepo()
  const tree = join(dirname(repo.dir), 'tree')
  repo.git('worktree', 'add', '-q', tree)
  const base = await baseOf(tree)
  rmSync(tree, { recursive: true })
  symlinkSync(hiddenFolder(), tree)
  expect(await resultOf(base)).toMatchObject({ ok: false, code: 'repo_unavailable' })
})

/** While the work goes on, files come and go in the folder. */
async function changingMeanwhile<Result>(repo: Repo, work: () => Promise<Result>): Promise<Result> {
  const over = new AbortController()
  const changing = (async () => {
    while (!over.signal.aborted) {
      repo.write('folder/new.log', '')
      repo.remove('folder/new.log')
      await sleep(1)
    }
  })()
  try {
    return await work()
  } finally {
    over.abort()
    await changing
  }
}

test('a file in a folder that goes on changing is told without its content', async () => {
  const repo = repoOfTwoFolders()
  const base = await baseOf(repo.dir)
  repo.write('folder/token', 'after\n')
  repo.write('later/file', 'after\n')
  const { files, diff } = await changingMeanwhile(repo, () => changesOf(base))
  expect(briefly(files)).toEqual([
    { path: 'folder/token', patchOmitted: true, additions: null },
    { path: 'later/file', patchOmitted: false, additions: 1 },
  ])
  expect(diff).not.toContain('folder/token')
})

test('the base knows a file in a folder that goes on changing by its size and time alone', async () => {
  const repo = repoOfTwoFolders()
  repo.write('folder/token', 'dirty\n')
  repo.write('later/file', 'dirty\n')
  const base = await changingMeanwhile(repo, () => baseOf(repo.dir))
  expect((await changesOf(base)).files).toEqual([])
  repo.write('folder/token', 'after\n')
  repo.write('later/file', 'after\n')
  const { files, diff } = await changesOf(base)
  expect(briefly(files)).toEqual([
    { path: 'folder/token', patchOmitted: true, additions: null },
    { path: 'later/file', patchOmitted: false, additions: 1 },
  ])
  expect(diff).toContain('-dirty')
})

const briefly = (files: readonly ChangedFile[]) =>
  files.map(({ path, patchOmitted, additions }) => ({ path, patchOmitted, additions }))

test('where a home is a repository, the folders of svc in it are part of no run', async () => {
  const repo = tempRepo()
  const own = join(repo.dir, '.config', 'svc')
  repo.write('.config/svc/tracked', 'before\n')
  repo.commit()
  const base = await baseOf(repo.dir, 'run_test', undefined, [own])
  repo.write('.config/svc/tracked', 'after\n')
  repo.write('.config/svc/login.json', 'secret of svc\n')
  repo.write('.config/other', 'after\n')
  const { files, diff } = await changesOf(base)
  expect(summary(files)).toEqual(['added .config/other'])
  expect(diff).not.toContain('svc')
})

test('a folder or a repository that came into the place of a linked working tree is not told as the work of the run', async () => {
  const repo = tempRepo()
  const dir = join(tempDir(), 'tree')
  repo.git('worktree', 'add', '-q', '-b', 'work', dir)
  const base = await baseOf(dir)
  writeFileSync(join(dir, 'made.txt'), 'made\n')
  expect(summary((await changesOf(base)).files)).toEqual(['added made.txt'])
  renameSync(dir, `${dir}-aside`)
  mkdirSync(dir)
  writeFileSync(join(dir, 'private.txt'), 'private\n')
  expect(await resultOf(base)).toMatchObject({ ok: false, code: 'repo_unavailable' })
  gitIn(dir, ['init', '-q'])
  expect(await resultOf(base)).toMatchObject({ ok: false, code: 'repo_unavailable' })
  rmSync(dir, { recursive: true })
  renameSync(`${dir}-aside`, dir)
  expect(summary((await changesOf(base)).files)).toEqual(['added made.txt'])
})
