import { statSync } from 'node:fs'
import { join, posix } from 'node:path'
import type { BaseRecord } from './base-store.ts'
import { readEntry, readEntries, type View } from './listing.ts'

/**
 * The untracked files without those that a removed ignore rule has brought to light and that were there before the run. The
 * base does not list them, so it goes by their change time, and only when a rule was changed by the run, at a time that is
 * after the base by the same clock.
 */
export async function withoutOlder(
  { view, record }: { view: View; record: Pick<BaseRecord, 'moment'> },
  listed: { untracked: readonly string[]; changed: readonly string[] },
): Promise<string[]> {
  const files = listed.untracked.filter((path) => !path.endsWith('/'))
  if (files.length === 0) return files
  const since = record.moment === null ? null : BigInt(record.moment)
  if (since === null || !changedRules(view, listed.changed).some((at) => at >= since)) return files
  const looked = await readEntries(view.topLevel, files)
  return files.filter((path) => looked.get(path)!.ctimeNs >= since)
}

/** When ignore rules that are not as they were at the base were changed; of a file that is gone, its folder tells. */
function changedRules(view: View, changed: readonly string[]): bigint[] {
  const times = changed
    .filter((path) => posix.basename(path) === '.gitignore')
    .map((path) => {
      const found = readEntry(view.topLevel, path)
      return found.kind === 'missing' ? readEntry(view.topLevel, posix.dirname(path)).ctimeNs : found.ctimeNs
    })
  return [...times, ...excludeFileChanged(view.storeDir)]
}

function excludeFileChanged(storeDir: string): bigint[] {
  try {
    return [statSync(join(storeDir, 'info', 'exclude'), { bigint: true }).ctimeNs]
  } catch {
    // None, or one that git cannot read either.
    return []
  }
}
