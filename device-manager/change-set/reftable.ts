import { existsSync } from 'node:fs'
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { renderConfig } from './carried-settings.ts'
import { runGit, type GitOutcome } from './git.ts'
import { defaultLimits } from './limits.ts'

/** Refs in one binary table (git 2.45, `init --ref-format=reftable`), which is left to git. */
export const hasReftable = (commonDir: string): boolean => existsSync(join(commonDir, 'reftable', 'tables.list'))

export interface RefChange {
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
