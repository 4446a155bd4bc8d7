import { constants, lstatSync, existsSync } from 'node:fs'
import { access, mkdir, open, rename, rm, rmdir, writeFile, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { readRegularFile } from './regular-file.ts'
import { renderConfig } from './carried-settings.ts'
import { runGit, type GitOutcome } from './git.ts'
import { defaultLimits } from './limits.ts'

// The ref that keeps a base, written and removed as git does where refs are files. Not by git: it would run what the
// repository's config names for changes of refs (`[hook "x"]` with `event = reference-transaction`, from git 2.54 on, which no
// setting switches off). Names of refs are below `refs/svc`, and nobody else writes them.

/** A larger list of packed refs is not read: the ref stays in it, and keeps a commit that is in the history anyway. */
const maxPackedBytes = 256 * 1024 * 1024
const attempts = 20
const pauseMs = 50

/**
 * Beside the ref under a lock, flushed, renamed. Fails as the file system does. Does nothing on a read-only one, where git
 * removes no commit either.
 */
export async function writeRef(commonDir: string, refName: string, commit: string): Promise<void> {
  demandNoLink(commonDir, refName)
  try {
    await writeAt(join(commonDir, refName), commit)
  } catch (error) {
    if (!(await isReadOnly(commonDir))) throw error
  }
}

/** Asked of the folder itself: where Node makes folders on a read-only file system it says that there is none. */
const isReadOnly = (folder: string): Promise<boolean> =>
  access(folder, constants.W_OK).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'EROFS',
  )

async function writeAt(path: string, commit: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    await mkdir(dirname(path), { recursive: true })
    try {
      return await writeLocked(path, `${commit}\n`)
    } catch (error) {
      // A run that ended has removed the empty folders.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || attempt === attempts) throw error
    }
  }
}

async function writeLocked(path: string, text: string): Promise<void> {
  const lock = `${path}.lock`
  const file = await open(lock, 'wx')
  try {
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(lock, path)
  } catch (error) {
    await rm(lock, { force: true }).catch(() => undefined)
    throw error
  }
}

/** Removes the ref, packed or not, and the folders that it leaves empty. Fails as the file system does. */
export async function removeRef(commonDir: string, refName: string): Promise<void> {
  demandNoLink(commonDir, refName)
  await withPackedLock(commonDir, refName, () => rm(join(commonDir, refName), { force: true }))
  try {
    for (let name = dirname(refName); name !== 'refs'; name = dirname(name)) await rmdir(join(commonDir, name))
  } catch {
    // Another run's is in it.
  }
}

/**
 * The list of packed refs is rewritten without the ref, under the lock by which git keeps a `pack-refs` that runs now from
 * bringing it back.
 */
async function withPackedLock(commonDir: string, refName: string, removeLoose: () => Promise<void>): Promise<void> {
  const path = join(commonDir, 'packed-refs')
  const lock = `${path}.lock`
  // A lock that was left there keeps the list as it is.
  if (!(await takeLock(lock))) return removeLoose()
  let isReplaced = false
  try {
    const rest = withoutRef(readPacked(path), refName)
    if (rest !== null) await writeFile(lock, rest, { flush: true })
    await removeLoose()
    if (rest !== null) await rename(lock, path)
    isReplaced = rest !== null
  } finally {
    if (!isReplaced) await rm(lock, { force: true })
  }
}

async function takeLock(lock: string): Promise<boolean> {
  for (let attempt = 1; attempt <= attempts; attempt++) {
    try {
      await (await open(lock, 'wx')).close()
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    await pause(pauseMs)
  }
  return false
}

function readPacked(path: string): Buffer | null {
  try {
    // One that is a link belongs to another repository.
    return readRegularFile(path, { maxBytes: maxPackedBytes, followLinks: false })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** Pure: null when the ref is not in it. Its line may be followed by that of what a tag points to. Exported for its test. */
export function withoutRef(packed: Buffer | null, refName: string): Buffer | null {
  if (packed === null) return null
  const at = packed.indexOf(` ${refName}\n`)
  if (at < 0) return null
  const from = packed.lastIndexOf('\n', at) + 1
  let to = packed.indexOf('\n', at) + 1
  if (packed[to] === 0x5e) to = packed.indexOf('\n', to) + 1 || packed.length
  return Buffer.concat([packed.subarray(0, from), packed.subarray(to)])
}

/** A link below `refs` would lead this program, which is behind no wall, to write elsewhere. */
function demandNoLink(commonDir: string, refName: string): void {
  for (let name = dirname(refName); name !== '.'; name = dirname(name)) {
    const path = join(commonDir, name)
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true) throw new Error(`${path} is a link`)
  }
}

/** Refs in one binary table (git 2.45, `init --ref-format=reftable`), which is left to git. */
export const hasReftable = (commonDir: string): boolean => existsSync(join(commonDir, 'reftable', 'tables.list'))

interface RefChange {
  commonDir: string
  objectFormat: 'sha1' | 'sha256'
  /** A folder for the time of the change can be made in it. */
  scratchDir: string
  /** The arguments after `update-ref`. */
  args: readonly string[]
  timeoutMs: number
}

/** Changes a ref of the repository by a git folder of our own, that has its refs and objects and none of its config. */
export async function changeReftable({
  commonDir,
  objectFormat,
  scratchDir,
  args,
  timeoutMs,
}: RefChange): Promise<GitOutcome> {
  const gitDir = join(scratchDir, `refs-${crypto.randomUUID()}`)
  const at = (name: string) => join(gitDir, name)
  try {
    await mkdir(at('refs'), { recursive: true, mode: 0o700 })
    const extensions = `[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = reftable\n`
    await Promise.all([
      writeFile(at('HEAD'), 'ref: refs/heads/.invalid\n'),
      writeFile(at('config'), `${renderConfig({}, objectFormat, defaultLimits.fileBytes)}${extensions}`),
      symlink(join(commonDir, 'objects'), at('objects')),
      symlink(join(commonDir, 'reftable'), at('reftable')),
    ])
    return await runGit({ args: ['update-ref', ...args], cwd: gitDir, gitDir, workTree: gitDir, timeoutMs })
  } finally {
    await rm(gitDir, { recursive: true, force: true })
  }
}
