import { closeSync, constants, existsSync, openSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { runGit } from './git.ts'
import { readOpenFile, readRegularFile } from './regular-file.ts'
import { hasReftable } from './plain-ref.ts'

// Head and branch of a repository whose refs are files, read by us and not by git, which follows links: one that a run puts in the
// place of a ref or of a folder above would lead to a file of svc's, whose text would be told as a commit.

export interface Head {
  commit: string | null
  branch: string | null
}

export interface Refs {
  gitDir: string
  commonDir: string
  objectFormat: 'sha1' | 'sha256'
}

const maxRefBytes = 4_096
const maxPackedBytes = 4 * 1024 * 1024
/** As git follows refs that name others. */
const maxDepth = 5
const objectIds = { sha1: /^[0-9a-f]{40}$/, sha256: /^[0-9a-f]{64}$/ } as const

/** Commit and branch as they are now, by the git folder alone; nulls when they cannot be told. */
export async function readHead(refs: Refs, timeoutMs: number): Promise<Head> {
  return readHeadFiles(refs) ?? (await readHeadOfTable(refs, timeoutMs)) ?? { commit: null, branch: null }
}

/**
 * Head of a repository whose refs are in a table, as git tells it; null: they are not. A table can be put beside refs that are files,
 * and can name files itself, so the commit counts only as an object that is there: nobody makes one for a text that he does not
 * know.
 */
async function readHeadOfTable({ gitDir, commonDir }: Refs, timeoutMs: number): Promise<Head | null> {
  if (!hasReftable(commonDir)) return null
  const call = { cwd: gitDir, gitDir, timeoutMs }
  const format = await runGit({ ...call, args: ['rev-parse', '--show-ref-format'] })
  // An older git repeats the question. One that knows tables also obeys GIT_NO_LAZY_FETCH, and fetches no object.
  if (!format.ok || format.stdout.toString('latin1').trim() !== 'reftable') return null
  const args = ['rev-parse', 'HEAD^{commit}', '--symbolic-full-name', 'HEAD'] as const
  const outcome = await runGit({ ...call, args })
  if (!outcome.ok) return { commit: null, branch: await unbornBranch(gitDir, timeoutMs) }
  const [commit, fullName] = outcome.stdout.toString('utf8').split('\n')
  return { commit: commit ?? null, branch: branchOf(fullName) }
}

export async function unbornBranch(folder: string, timeoutMs: number): Promise<string | null> {
  const outcome = await runGit({ args: ['symbolic-ref', '-q', 'HEAD'], cwd: folder, timeoutMs })
  return outcome.ok ? branchOf(outcome.stdout.toString('utf8').trim()) : null
}

export function branchOf(fullName: string | undefined): string | null {
  return fullName?.startsWith('refs/heads/') ? fullName.slice('refs/heads/'.length) : null
}

/** Null: the head is in no file of the repository itself, or is none that git would take. Names are latin1 text of their bytes. */
export function readHeadFiles({ gitDir, commonDir, objectFormat }: Refs): Head | null {
  try {
    const isObjectId = (text: string) => objectIds[objectFormat].test(text)
    let text = readWithin(gitDir, 'HEAD') ?? linkedName(gitDir)
    let branch: string | null = null
    for (let depth = 0; text !== null && depth <= maxDepth; depth++) {
      if (isObjectId(text)) return { commit: text, branch }
      const name = /^ref: *(refs\/.+)$/.exec(text)?.[1]
      if (name === undefined || !isRefName(name)) return null
      branch = branchOf(Buffer.from(name, 'latin1').toString())
      text = readWithin(commonDir, name) ?? findPacked(commonDir, name)
      if (text === null) return depth === 0 ? { commit: null, branch } : null
    }
    return null
  } catch {
    return null
  }
}

/** HEAD was a link to a ref once, and may be one still. */
function linkedName(gitDir: string): string | null {
  const target = readlinkSync(join(gitDir, 'HEAD'), 'latin1')
  return target.startsWith('refs/') ? `ref: ${target}` : null
}

/** No part of it leads up or out. */
const isRefName = (name: string): boolean =>
  // oxlint-disable-next-line no-control-regex
  !/[\0-\x20\x7f~^:?*[\\]|\.\.|\/\/|\/\.|\.lock(?:\/|$)|[/.]$/.test(name)

/** The text of a small file that lies in the folder by its real path; null: there is none, or it lies elsewhere. */
function readWithin(folder: string, name: string): string | null {
  const path = pathIn(folder, name)
  const file = openOrNull(path)
  if (file === null) return null
  try {
    const isWithin = placeOf(file, path).equals(pathIn(realpathSync.native(folder), name))
    return isWithin ? (readOpenFile(file, maxRefBytes)?.toString('latin1').trimEnd() ?? null) : null
  } finally {
    closeSync(file)
  }
}

const pathIn = (folder: string, name: string): Buffer =>
  Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name, 'latin1')])

function openOrNull(path: Buffer): number | null {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  } catch {
    return null
  }
}

/** Linux tells where what is open lies; elsewhere the path is looked at once more. */
const placeOf = (file: number, path: Buffer): Buffer =>
  process.platform === 'linux' ? readlinkSync(`/proc/self/fd/${file}`, 'buffer') : realpathSync.native(path, 'buffer')

function findPacked(commonDir: string, name: string): string | null {
  const path = join(commonDir, 'packed-refs')
  if (!existsSync(path)) return null
  const packed = readRegularFile(path, { maxBytes: maxPackedBytes, followLinks: false })?.toString('latin1')
  const line = packed?.split('\n').find((one) => one.endsWith(` ${name}`))
  return line?.split(' ')[0] ?? null
}
