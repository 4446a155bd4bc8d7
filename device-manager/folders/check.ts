import { constants } from 'node:fs'
import { access, lstat, realpath, stat } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import type { FolderCheck, FolderFacts } from '../../shared/device/folder-check.ts'
import { realWorld, type World } from '../../shared/lib/world.ts'
import { runGit } from '../change-set/git.ts'
import { ChangeSetFailure } from '../change-set/failure.ts'
import { locateRepository } from '../change-set/repository.ts'
import { withoutCredentials } from './remote-url.ts'

/** A network mount that does not answer holds a file system call for ever; no check takes longer than this. */
const checkMs = 5_000

/** Says what the folder is now. Never throws, and nothing of the repository in it is executed. */
export async function checkFolder(rootPath: string, world: World = realWorld): Promise<FolderCheck> {
  const waiting = new AbortController()
  const late = world.sleep(checkMs, waiting.signal).then(
    () => nothing(rootPath, 'not_permitted', `The folder did not answer within ${checkMs / 1000} s.`),
    () => nothing(rootPath, 'not_permitted', null),
  )
  try {
    return await Promise.race([inspectAll(rootPath), late])
  } finally {
    waiting.abort()
  }
}

function nothing(rootPath: string, state: FolderCheck['state'], message: string | null): FolderCheck {
  return { rootPath, state, realPath: null, isSymlink: false, writable: false, git: null, message }
}

export interface InspectedFolder {
  facts: FolderFacts
  /** The git folder of the repository that holds the folder; null: there is none, or git does not read it. */
  gitDir: string | null
  /** The repository could not be looked at this time; the branch is not known. */
  isUnsure: boolean
}

/** Less than `checkFolder`, in one call of git. Hangs where the file system does. */
export async function inspectFolder(rootPath: string): Promise<InspectedFolder> {
  const { state, realPath } = await inspect(rootPath)
  const none = { facts: { state, branch: null }, gitDir: null, isUnsure: false }
  if (state !== 'ok' || realPath === null) return none
  try {
    const { branch, gitDir } = await locateRepository(realPath, checkMs)
    return { ...none, facts: { state, branch: branch?.slice(0, 1_000) ?? null }, gitDir }
  } catch (error) {
    return { ...none, isUnsure: error instanceof ChangeSetFailure && error.isPassing }
  }
}

async function inspectAll(rootPath: string): Promise<FolderCheck> {
  const found = await inspect(rootPath)
  return found.state === 'ok' && found.realPath !== null ? { ...found, ...(await inspectGit(found.realPath)) } : found
}

/** All but its repository. */
async function inspect(rootPath: string): Promise<FolderCheck> {
  if (!isAbsolute(rootPath) || rootPath.includes('\0')) return nothing(rootPath, 'missing', 'The path is not absolute.')
  let isSymlink = false
  try {
    isSymlink = (await lstat(rootPath)).isSymbolicLink()
    const realPath = await realpath(rootPath)
    const found = { ...nothing(rootPath, 'ok', null), realPath, isSymlink }
    if (!(await stat(realPath)).isDirectory())
      return { ...found, state: 'not_a_directory', message: 'The path is not a folder.' }
    if (!(await may(realPath, constants.R_OK | constants.X_OK))) {
      return { ...found, state: 'not_permitted', message: 'The folder may not be read or entered.' }
    }
    return { ...found, writable: await may(realPath, constants.W_OK) }
  } catch (error) {
    return { ...refusal(rootPath, error), isSymlink }
  }
}

function refusal(rootPath: string, error: unknown): FolderCheck {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'EACCES' || code === 'EPERM')
    return nothing(rootPath, 'not_permitted', 'The folder may not be looked at.')
  if (code === 'ENOTDIR') return nothing(rootPath, 'missing', 'A part of the path is not a folder.')
  if (code === 'ELOOP') return nothing(rootPath, 'missing', 'The path is a loop of symlinks.')
  if (code === 'ENOENT') return nothing(rootPath, 'missing', 'The folder does not exist.')
  return nothing(rootPath, 'missing', `The folder cannot be looked at (${code ?? 'unknown error'}).`)
}

async function may(path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  )
}

async function inspectGit(folder: string): Promise<Pick<FolderCheck, 'git' | 'message'>> {
  try {
    const [repository, remotes] = await Promise.all([locateRepository(folder, checkMs), listRemotes(folder, checkMs)])
    const { topLevel, branch, commit } = repository
    return { git: { topLevel, branch, commit, remotes }, message: null }
  } catch (error) {
    const isPlainFolder = error instanceof ChangeSetFailure && error.code === 'source_unknown'
    return { git: null, message: isPlainFolder ? null : (error as Error).message }
  }
}

async function listRemotes(folder: string, timeoutMs: number): Promise<{ name: string; url: string }[]> {
  const outcome = await runGit({
    args: ['config', '-z', '--get-regexp', '^remote\\..*\\.url$'],
    cwd: folder,
    timeoutMs,
  })
  if (!outcome.ok) return []
  const remotes = new Map<string, string>()
  for (const entry of outcome.stdout.toString('utf8').split('\0')) {
    const [, name, url] = /^remote\.(.*)\.url\n(.*)$/s.exec(entry) ?? []
    // The first of several URLs is the one that is fetched from.
    if (name !== undefined && url !== undefined && !remotes.has(name))
      remotes.set(name, withoutCredentials(url).slice(0, 2_000))
  }
  return [...remotes].slice(0, 100).map(([name, url]) => ({ name: name.slice(0, 200), url }))
}
