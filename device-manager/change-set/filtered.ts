import { failureOf } from './failure.ts'
import { runGit } from './git.ts'
import { callIn, type View } from './listing.ts'

/**
 * The paths whose content goes through one of the configured filter drivers (Git LFS, git-crypt, ...). A filter is a
 * program and is never run, so the working file and the stored one cannot be compared: such a file is told as changed by
 * its size and time, and its content (which a filter may be there to hide) is not shown.
 */
export async function pathsUnderFilters(
  view: View,
  filters: readonly string[],
  paths: readonly string[],
): Promise<Set<string>> {
  const filtered = new Set<string>()
  if (filters.length === 0 || paths.length === 0) return filtered
  const input = Buffer.from(paths.join('\0') + '\0', 'latin1')
  const outcome = await runGit({ ...callIn(view, ['check-attr', '-z', '--stdin', 'filter']), input })
  if (!outcome.ok) throw failureOf(outcome, 'reading the attributes')
  const fields = outcome.stdout.toString('latin1').split('\0')
  for (let at = 0; at + 2 < fields.length; at += 3) {
    if (filters.includes(fields[at + 2]!)) filtered.add(fields[at]!)
  }
  return filtered
}
