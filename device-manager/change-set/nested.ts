import { runGit } from './git.ts'
import type { View } from './listing.ts'

/**
 * Returns those untracked paths that are repositories of their own (listed with a slash at the end) and have a commit,
 * without the slash, as git records a submodule. Nothing in them is looked at but their head.
 */
export async function resolveNested(view: View, untracked: readonly string[]): Promise<string[]> {
  const folders = untracked.filter((path) => path.endsWith('/')).slice(0, view.limits.nested)
  const resolved: string[] = []
  for (const path of folders) {
    // A folder's name must be text to be entered; one that is not cannot be named in a git call.
    const name = Buffer.from(path.slice(0, -1), 'latin1').toString('utf8')
    const call = { cwd: `${view.topLevel}/${name}`, timeoutMs: view.limits.gitMs }
    const outcome = await runGit({ ...call, args: ['rev-parse', '--verify', '-q', 'HEAD'] })
    if (outcome.ok) resolved.push(path.slice(0, -1))
  }
  return resolved
}
