import { lstatSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { runGit } from './git.ts'
import { readHead, type Refs } from './head.ts'
import type { View } from './listing.ts'
import { namedGitFolder } from './git-file.ts'
import { readRegularFile } from './regular-file.ts'

/**
 * Returns those untracked paths that are repositories of their own (listed with a slash at the end) and have a commit,
 * without the slash, as git records a submodule. Nothing in them is looked at but their head.
 */
export async function resolveNested(view: View, untracked: readonly string[]): Promise<string[]> {
  const folders = untracked.filter((path) => path.endsWith('/')).slice(0, view.limits.nested)
  const resolved: string[] = []
  for (const path of folders) {
    const call = { cwd: placeOf(view, path.slice(0, -1)), timeoutMs: view.limits.gitMs }
    const outcome = await runGit({ ...call, args: ['rev-parse', '--verify', '-q', 'HEAD'] })
    if (outcome.ok) resolved.push(path.slice(0, -1))
  }
  return resolved
}

/** A folder's name must be text to be entered; one that is not cannot be named in a git call. */
const placeOf = ({ topLevel }: View, path: string): string =>
  `${topLevel}/${Buffer.from(path, 'latin1').toString('utf8')}`

/**
 * git takes the head of a repository within from wherever the links in its git folder lead, so a run could make it tell the text of
 * another file as a commit. Returns those paths whose commit, as git told it, is not the one that a ref of the repository itself
 * has.
 */
export async function withForeignHeads(
  view: View,
  objectFormat: Refs['objectFormat'],
  told: Iterable<readonly [path: string, commit: string]>,
): Promise<Set<string>> {
  const foreign = new Set<string>()
  for (const [path, commit] of told) {
    const refs = refsOf(placeOf(view, path), objectFormat)
    const head = refs === null ? null : await readHead(refs, view.limits.gitMs)
    if (head?.commit !== commit) foreign.add(path)
    await turn()
  }
  return foreign
}

/** As git finds them; null: there is no repository. */
function refsOf(folder: string, objectFormat: Refs['objectFormat']): Refs | null {
  try {
    const own = join(folder, '.git')
    const gitDir = lstatSync(own).isDirectory() ? own : namedGitFolder(folder)
    if (gitDir === null) return null
    const common = textOf(join(gitDir, 'commondir'))
    return { gitDir, commonDir: common === null ? gitDir : resolve(gitDir, common.trimEnd()), objectFormat }
  } catch {
    return null
  }
}

const maxNameBytes = 8_192

function textOf(path: string): string | null {
  try {
    return readRegularFile(path, { maxBytes: maxNameBytes, followLinks: false })?.toString('utf8') ?? null
  } catch {
    return null
  }
}
