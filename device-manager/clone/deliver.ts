import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SimpleGit } from 'simple-git'
import { cloneStart, type Deliver, type Delivered } from './job.ts'
import { folderBeside, gitIn, makeOwnFolder, startFile } from './own-git.ts'
import { patiently } from './patience.ts'
import { takeAwayPipes } from './pipes.ts'
import { remoteRefs } from './remote-refs.ts'
import { gitMessageOf } from './trouble.ts'

/** Tips that are looked at: a run may make any number of branches. */
const mostTips = 200

interface Tip {
  /** `HEAD`, or the name of a branch. */
  name: string
  oid: string
}

/**
 * Pushes what a run committed to its branch, and what could not be pushed or is not committed to its rescue branch. Never throws. The clone
 * may be in any state, so nothing works in it: commits are read from its objects, and its files are added to an index of our own,
 * in a folder whose settings are ours.
 */
export async function deliver(job: Deliver): Promise<Delivered> {
  const nothing: Delivered = { pushed: null, rescued: null, lost: null }
  // It was never whole, so no harness has seen it.
  if (!existsSync(startFile(job.folder))) return nothing
  try {
    takeAwayPipes(job.folder)
    return await new Delivery(job).make()
  } catch (error) {
    return { ...nothing, lost: `What the run left in its clone could not be read: ${gitMessageOf(error)}` }
  }
}

class Delivery {
  private readonly job: Deliver
  private readonly store: string
  private readonly git: SimpleGit

  constructor(job: Deliver) {
    this.job = job
    makeOwnFolder(job.folder)
    this.store = join(folderBeside(job.folder), 'deliver.git')
    this.git = this.gitWith()
  }

  async make(): Promise<Delivered> {
    const { url, folder, branch } = this.job
    const { start, known } = cloneStart.parse(JSON.parse(readFileSync(startFile(folder), 'utf8')))
    this.makeStore(start?.length === 64)
    const tips = await this.tips()
    const own = tips.find(({ name }) => name === branch)?.oid ?? null
    const asked = await patiently(() => remoteRefs(this.git, url, [branch])).catch(gitMessageOf)
    const there = typeof asked === 'string' ? null : (asked.branches.get(branch) ?? null)
    const old = [...known, ...(start === null ? [] : [start]), ...(there === null ? [] : [there])]
    let trouble = typeof asked === 'string' ? asked : null
    let pushed: string | null = there === start ? null : there
    // A branch with nothing of the run is not made.
    if (trouble === null && own !== null && own !== there && (await this.isNew(own, old))) {
      trouble = await this.push(own, `refs/heads/${branch}`)
      if (trouble === null) {
        pushed = own
        old.push(own)
      }
    }
    return { pushed, ...(await this.rescue({ tips, old, trouble })) }
  }

  /** Names the commits that nobody else has, and the files that are in none. */
  private async rescue(of: {
    tips: readonly Tip[]
    old: readonly string[]
    trouble: string | null
  }): Promise<Pick<Delivered, 'rescued' | 'lost'>> {
    const { tips, old, trouble } = of
    const { branch, rescueBranch } = this.job
    const left: Tip[] = []
    for (const tip of tips)
      if (!left.some(({ oid }) => oid === tip.oid) && (await this.isNew(tip.oid, [...old, ...left.map((t) => t.oid)])))
        left.push(tip)
    const head = tips.find(({ name }) => name === 'HEAD')?.oid ?? null
    const tree = await this.treeOfFiles(head).catch((error: unknown) => ({ flaw: gitMessageOf(error) }))
    const flaw = tree !== null && typeof tree === 'object' ? `Files that were not committed: ${tree.flaw}` : null
    if (left.length === 0 && (tree === null || flaw !== null)) return { rescued: null, lost: flaw }
    const what = [
      ...(left.length === 0 ? [] : [`commits of ${left.map(({ name }) => name).join(', ')}`]),
      ...(typeof tree === 'string' ? ['files that were not committed'] : []),
    ].join(' and ')
    const oid = await this.commitOf({ tree: typeof tree === 'string' ? tree : null, head, left })
    // No other run has this branch: what an attempt before this one pushed may be replaced.
    const why = await this.push(oid, `refs/heads/${rescueBranch}`, '+')
    if (why !== null)
      return { rescued: null, lost: [`The ${what} could not be pushed: ${why}`, flaw].filter(Boolean).join(' ') }
    const told = trouble === null ? '' : ` ${branch} could not be pushed: ${trouble}`
    return { rescued: { oid, why: `The ${what} are at ${rescueBranch}.${told}`.slice(0, 4_000) }, lost: flaw }
  }

  /** null: the git host took it. Otherwise why not. */
  private async push(oid: string, ref: string, force: '' | '+' = ''): Promise<string | null> {
    const push = () => this.git.push(this.job.url, `${force}${oid}:${ref}`, ['--quiet', '--no-verify'])
    return patiently(push).then(() => null, gitMessageOf)
  }

  /** Whether a commit is here that none of these has in it. Those that are not here have nothing to do with it. */
  private async isNew(oid: string, old: readonly string[]): Promise<boolean> {
    const here: string[] = []
    for (const each of new Set(old)) if (await this.hasCommit(each)) here.push(`^${each}`)
    return (await this.git.raw(['rev-list', '--max-count=1', oid, ...here])) !== ''
  }

  private hasCommit(oid: string): Promise<boolean> {
    return this.git.raw(['cat-file', '-e', `${oid}^{commit}`]).then(
      () => true,
      () => false,
    )
  }

  /** The files as they are, as a tree; null: the commit has them so. */
  private async treeOfFiles(head: string | null): Promise<string | null> {
    const { folder } = this.job
    const git = this.gitWith({ GIT_WORK_TREE: folder })
    const index = join(folder, '.git', 'index')
    // With it git need not read files that did not change.
    if (existsSync(index) && statSync(index).isFile()) copyFileSync(index, join(this.store, 'index'))
    const add = () => git.raw(['add', '--all', '--ignore-errors', '--', '.'])
    await add().catch(async () => {
      rmSync(join(this.store, 'index'), { force: true })
      await add()
    })
    const tree = await git.raw(['write-tree'])
    if (head === null) return (await git.raw(['ls-files'])) === '' ? null : tree
    return tree === (await this.git.revparse([`${head}^{tree}`])) ? null : tree
  }

  private async commitOf(of: { tree: string | null; head: string | null; left: readonly Tip[] }): Promise<string> {
    const { tree, head, left } = of
    if (tree === null && left.length === 1) return left[0]!.oid
    const parents = [...new Set([...(head === null ? [] : [head]), ...left.map(({ oid }) => oid)])]
    const files = tree ?? (await this.git.revparse([`${parents[0]}^{tree}`]))
    const message = `What run ${this.job.runId} left`
    return this.git.raw(['commit-tree', files, ...parents.flatMap((each) => ['-p', each]), '-m', message])
  }

  /** The clone's branches and its HEAD; one that names no commit is left out. */
  private async tips(): Promise<Tip[]> {
    const git = this.gitOfClone()
    const head = await git.revparse(['--verify', '--quiet', 'HEAD']).catch(() => '')
    const listed = await git.raw([
      'for-each-ref',
      `--count=${mostTips}`,
      '--format=%(objectname) %(refname)',
      'refs/heads',
    ])
    const branches = listed.split('\n').flatMap((line) => {
      const [, oid, name] = /^([0-9a-f]{40,64}) refs\/heads\/(.+)$/.exec(line) ?? []
      return oid === undefined || name === undefined ? [] : [{ oid, name }]
    })
    const all = [...(/^[0-9a-f]{40,64}$/.test(head) ? [{ oid: head, name: 'HEAD' }] : []), ...branches]
    // The run's own first: what it holds is named by it.
    all.sort((a, b) => Number(b.name === this.job.branch) - Number(a.name === this.job.branch))
    const found: Tip[] = []
    for (const tip of all) if (await this.hasCommit(tip.oid)) found.push(tip)
    return found
  }

  /** Under the clone's own settings: only for commands that read refs, and no object. */
  private gitOfClone(): SimpleGit {
    const { folder } = this.job
    return gitIn(folderBeside(folder), folder, { GIT_DIR: join(folder, '.git'), GIT_ALLOW_PROTOCOL: 'none' })
  }

  private gitWith(more: Readonly<Record<string, string>> = {}): SimpleGit {
    const { folder } = this.job
    const who = { NAME: 'svc', EMAIL: 'svc@localhost' }
    const people = Object.entries(who).flatMap(([what, value]) => [
      [`GIT_AUTHOR_${what}`, value],
      [`GIT_COMMITTER_${what}`, value],
    ])
    const own = { GIT_DIR: this.store, GIT_COMMON_DIR: this.store, ...Object.fromEntries(people) }
    return gitIn('GIT_WORK_TREE' in more ? folder : folderBeside(folder), folder, { ...own, ...more })
  }

  private makeStore(isSha256: boolean): void {
    const { store } = this
    rmSync(store, { recursive: true, force: true })
    for (const name of ['objects/info', 'refs', 'info']) mkdirSync(join(store, name), { recursive: true, mode: 0o700 })
    writeFileSync(join(store, 'HEAD'), 'ref: refs/heads/none\n')
    const format = isSha256 ? '[extensions]\n\tobjectFormat = sha256\n' : ''
    writeFileSync(
      join(store, 'config'),
      `[core]\n\trepositoryformatversion = ${isSha256 ? 1 : 0}\n\tbare = false\n${format}`,
    )
    writeFileSync(join(store, 'objects/info/alternates'), `${join(this.job.folder, '.git', 'objects')}\n`)
    // What the clone leaves out is left out here, too.
    const exclude = join(this.job.folder, '.git/info/exclude')
    if (existsSync(exclude) && statSync(exclude).isFile()) copyFileSync(exclude, join(store, 'info/exclude'))
  }
}
