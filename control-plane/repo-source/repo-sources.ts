import type { WorkspaceUuid } from '../../shared/lib/ids.ts'
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../process/log.ts'
import { makeFolder } from '../process/make-folder.ts'
import type { Destination } from '../outbound/destination.ts'
import type { Outbound } from '../outbound/outbound.ts'
import { OutboundError } from '../outbound/outbound-error.ts'
import { FetchPlaces, type PlaceLimits } from './fetch-places.ts'
import { runGit, type GitCall, type GitEnd, type GitProgramLimits } from './git-program.ts'
import type { RepoSource } from './source.ts'
import { SourceError } from './source-error.ts'
import { fetchFlaw, isRedirect, readObjects, readTree, type TreeEntry } from './tree.ts'

// Reads files of git repositories that people and agents name. One commit is fetched into a folder of its own, without history and
// without a checkout, and its files are read out of the pack. The folder is removed afterwards; those of a process that was
// killed, at the next start.
//
// The address is resolved and checked by the outbound client, and git is told to connect there.

export interface FetchedRepo {
  /** The id of the commit. Fails with SourceError when none was named. */
  sha(): Promise<string>
  /** Lists all files, or those below these paths. Fails with SourceError. */
  list(paths?: readonly string[]): Promise<TreeEntry[]>
  /** Reads files that `list` named, all at once. */
  read(entries: readonly TreeEntry[]): Promise<Buffer[]>
}

export interface SourceLimits extends PlaceLimits {
  /** Of a fetch, from its start to its end. */
  fetchMs: number
  /** Of the pack of a commit with all its files. */
  packBytes: number
  memoryBytes: number
  /** Of the list of files. */
  listBytes: number
}

export const sourceLimits: SourceLimits = {
  atOnce: 3,
  perWorkspace: 1,
  waiting: 10,
  fetchMs: 60_000,
  packBytes: 200 * 1024 * 1024,
  memoryBytes: 1024 * 1024 * 1024,
  listBytes: 8 * 1024 * 1024,
}

export interface SourceDependencies {
  /** Where the folders of fetches are made. */
  folder: string
  outbound: Outbound
  world: Pick<World, 'id'>
  log: Log
  limits?: SourceLimits
}

interface Using {
  workspaceId: WorkspaceUuid
  /** Ends the fetch. */
  signal: AbortSignal
}

/** The ref of ours that is fetched to. */
const fetched = 'refs/svc/fetched'

export class RepoSources {
  private readonly deps: SourceDependencies
  private readonly limits: SourceLimits
  private readonly places: FetchPlaces
  private gitFlaw: Promise<string | null> | null = null
  private cleared: Promise<void> | null = null

  constructor(deps: SourceDependencies) {
    this.deps = deps
    this.limits = deps.limits ?? sourceLimits
    this.places = new FetchPlaces(this.limits)
  }

  /** Removes what processes left behind that were killed; once, before anything is fetched. */
  clear(): Promise<void> {
    return (this.cleared ??= this.removeAll())
  }

  private async removeAll(): Promise<void> {
    const names = await readdir(this.deps.folder).catch(() => [])
    for (const name of names) {
      const folder = join(this.deps.folder, name)
      if (await isLeft(Number(/^(\d+)-/.exec(name)?.[1]), folder)) await this.remove(folder)
    }
  }

  /** Fetches the source and hands it to `use`. Fails with SourceError, or with the reason of the signal. */
  async with<T>(
    source: RepoSource,
    { workspaceId, signal }: Using,
    use: (repo: FetchedRepo) => Promise<T>,
  ): Promise<T> {
    return this.places.within(workspaceId, signal, async () => {
      await this.clear()
      const flaw = await (this.gitFlaw ??= this.findGitFlaw())
      if (flaw !== null) throw new SourceError('unreadable', flaw)
      const gitDir = join(this.deps.folder, this.deps.world.id(`${process.pid}-`))
      try {
        await makeBare(gitDir)
        const repo = await this.fetch(source, { gitDir, signal })
        try {
          return await use(repo)
        } finally {
          await repo.sha().catch(() => {})
        }
      } catch (error) {
        signal.throwIfAborted()
        throw error
      } finally {
        await this.remove(gitDir)
      }
    })
  }

  private async fetch(source: RepoSource, at: Pick<GitCall, 'gitDir' | 'signal'>): Promise<FetchedRepo> {
    const { signal } = at
    let end = await this.fetchFrom(source.url, source.ref, at)
    if (!end.ok && isRedirect(end.stderr)) {
      const moved = await this.placeAfter(source.url, signal)
      if (moved !== null) end = await this.fetchFrom(moved, source.ref, at)
    }
    if (!end.ok) throw this.failed(end, source)
    // Known while the files are listed: each start of git takes its time.
    const sha = this.shaOf(at)
    sha.catch(() => {})
    return {
      sha: () => sha,
      list: async (paths = []) => {
        const tree = `${fetched}^{commit}:${source.subdir ?? ''}`
        const args = ['ls-tree', '-r', '-l', '-z', '--full-tree', tree, '--', ...paths]
        const listed = await runGit({ ...at, args, limits: this.limitsFor(this.limits.listBytes) })
        if (listed.ok) return readTree(listed.stdout)
        signal.throwIfAborted()
        await sha
        if (/[Nn]ot a (?:valid object name|tree)/.test(listed.stderr))
          throw new SourceError('no_folder', 'The repository has no such folder.')
        throw this.failed(listed, source)
      },
      read: async (entries) => {
        if (entries.length === 0) return []
        const bytes = entries.reduce((sum, { sizeBytes }) => sum + sizeBytes + 100, 0)
        const input = entries.map(({ oid }) => `${oid}\n`).join('')
        const printed = await runGit({ ...at, args: ['cat-file', '--batch'], input, limits: this.limitsFor(bytes) })
        if (!printed.ok) throw this.failed(printed, source)
        const contents = readObjects(printed.stdout, entries.length)
        if (contents === null) throw new SourceError('unreadable', 'Files of the repository are missing.')
        return contents
      },
    }
  }

  private async shaOf(at: Pick<GitCall, 'gitDir' | 'signal'>): Promise<string> {
    const args = ['rev-parse', '--verify', '--quiet', `${fetched}^{commit}`]
    const named = await runGit({ ...at, args, limits: this.limitsFor(1024) })
    const sha = named.ok ? named.stdout.toString('latin1').trim() : ''
    if (!/^[0-9a-f]{40,64}$/.test(sha)) throw new SourceError('unreadable', 'This names no commit of the repository.')
    return sha
  }

  private async fetchFrom(url: URL, ref: string | null, at: Pick<GitCall, 'gitDir' | 'signal'>): Promise<GitEnd> {
    const { fetchMs } = this.limits
    const to = await this.destinationOf(url, at.signal)
    const options = ['--quiet', '--depth=1', '--no-tags', '--no-write-fetch-head', '--no-recurse-submodules']
    return runGit({
      ...at,
      args: ['fetch', ...options, '--end-of-options', hrefOf(to), `+${ref ?? 'HEAD'}:${fetched}`],
      settings: pinnedTo(to),
      protocol: to.url.protocol === 'http:' ? 'http' : 'https',
      limits: { ...this.limitsFor(64 * 1024), timeMs: fetchMs },
    })
  }

  private async destinationOf(url: URL, signal: AbortSignal): Promise<Destination> {
    try {
      return await this.deps.outbound.resolve(url, { signal })
    } catch (error) {
      throw ofOutbound(error)
    }
  }

  /** Hosts send a repository that moved, or whose address lacks its end, elsewhere; git is not to follow that by itself. */
  private async placeAfter(url: URL, signal: AbortSignal): Promise<URL | null> {
    const service = '/info/refs?service=git-upload-pack'
    try {
      const answer = await this.deps.outbound.fetch(url.href.replace(/\/+$/, '') + service, { signal })
      await answer.body?.cancel()
      return answer.redirected && answer.url.endsWith(service) ? new URL(answer.url.slice(0, -service.length)) : null
    } catch (error) {
      throw ofOutbound(error)
    }
  }

  private failed(end: GitEnd & { ok: false }, source: RepoSource): SourceError {
    const { reason, stderr } = end
    this.deps.log.info({ reason, stderr, url: source.url.href }, 'a repository was not read')
    const message = {
      failed: fetchFlaw(stderr, source),
      timed_out: 'Reading the repository took too long.',
      too_much: 'The repository is too large.',
      no_git: 'This server has no git.',
    }[reason]
    return new SourceError('unreadable', message)
  }

  private limitsFor(outputBytes: number): GitProgramLimits {
    const { fetchMs, packBytes, memoryBytes } = this.limits
    return { timeMs: fetchMs, fileBytes: packBytes, memoryBytes, outputBytes }
  }

  /** An older git would not connect to the address that was checked. */
  private async findGitFlaw(): Promise<string | null> {
    makeFolder(this.deps.folder)
    const signal = new AbortController().signal
    const told = await runGit({ args: ['version'], gitDir: this.deps.folder, limits: this.limitsFor(1024), signal })
    const [, major, minor] = /(\d+)\.(\d+)/.exec(told.ok ? told.stdout.toString('latin1') : '') ?? []
    const isNew = Number(major) > 2 || (Number(major) === 2 && Number(minor) >= 37)
    if (!isNew) this.gitFlaw = null
    return isNew ? null : 'This server needs git 2.37 or newer to read repositories.'
  }

  private async remove(folder: string): Promise<void> {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch((error: unknown) =>
      this.deps.log.warn({ err: error, folder }, 'the folder of a fetch could not be removed'),
    )
  }
}

function ofOutbound(error: unknown): unknown {
  if (!(error instanceof OutboundError)) return error
  const { reason, message } = error
  const isRefused = reason === 'refused_address' || reason === 'not_https'
  return new SourceError(isRefused ? 'refused' : 'unreadable', `${message}.`, { cause: error })
}

/** Where the host is an address, nothing is left to be resolved. */
const pinnedTo = ({ host, port, addresses }: Destination): string[] =>
  isIP(host) === 0 ? [`http.curloptResolve=${host}:${port}:${addresses.join(',')}`] : []

/** With the very name that is pinned: a dot at its end would make it another one. */
function hrefOf({ url, host }: Destination): string {
  const asked = new URL(url)
  if (isIP(host) === 0) asked.hostname = host
  return asked.href
}

/** The least that git takes for a repository; `git init` would copy templates of the machine. */
async function makeBare(folder: string): Promise<void> {
  await mkdir(join(folder, 'objects'), { recursive: true, mode: 0o700 })
  await mkdir(join(folder, 'refs'))
  await writeFile(join(folder, 'HEAD'), 'ref: refs/heads/none\n')
  await writeFile(join(folder, 'config'), '[core]\n\trepositoryformatversion = 0\n\tbare = true\n')
}

/** Whether the process that made the folder is gone. Ours may have the id of one that is. */
async function isLeft(pid: number, folder: string): Promise<boolean> {
  if (pid !== process.pid) return !isAlive(pid)
  const begun = performance.timeOrigin + performance.now() - process.uptime() * 1000
  const made = await stat(folder).catch(() => null)
  return made !== null && made.mtimeMs < begun
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
