import { isAbsolute, join } from 'node:path'
import { type FolderFacts, type ServedFolder, watchedFolders } from '../../shared/device/folder-check.ts'
import type { InspectedFolder } from '../folders/check.ts'
import type { Patience } from '../watch/patience.ts'
import type { Watch } from '../watch/watch.ts'

export interface ServedFoldersOptions {
  patience: Patience
  watch: Pick<Watch, 'set' | 'recheck'>
  inspect?: (rootPath: string) => Promise<InspectedFolder>
}

/** The folders of this device that the control plane named, and what was found there last. */
export class ServedFolders {
  private readonly options: ServedFoldersOptions
  private folders = new Map<string, string>()
  private found = new Map<string, FolderFacts>()

  constructor(options: ServedFoldersOptions) {
    this.options = options
  }

  /** The first ones where they are too many. */
  set(folders: readonly ServedFolder[]): void {
    const before = this.folders
    const served = folders.slice(0, watchedFolders)
    this.folders = new Map(served.map(({ shortId, rootPath }) => [shortId, rootPath]))
    for (const shortId of before.keys()) if (!this.folders.has(shortId)) this.options.watch.set(shortId, null)
    for (const [shortId, rootPath] of this.folders) {
      if (before.get(shortId) === rootPath) continue
      this.found.delete(shortId)
      this.options.watch.set(shortId, pathsOf({ rootPath, gitDir: null }))
    }
  }

  list(): ServedFolder[] {
    return [...this.folders].map(([shortId, rootPath]) => ({ shortId, rootPath }))
  }

  /** Returns the facts by short id; those of folders that were not looked at yet are missing. */
  facts(): Record<string, FolderFacts> {
    return Object.fromEntries([...this.found].filter(([shortId]) => this.folders.has(shortId)))
  }

  /** Looks at those of them that are folders of this device. Never rejects. */
  async inspect(shortIds: Iterable<string> = this.folders.keys()): Promise<void> {
    const { patience, watch, inspect = lookWithGit } = this.options
    for (const shortId of shortIds) {
      const rootPath = this.folders.get(shortId)
      if (rootPath === undefined) continue
      const before = this.found.get(shortId) ?? noAnswer
      const failed = () => ({ facts: before, gitDir: null, isUnsure: true })
      const seen = await patience.wait(shortId, () => inspect(rootPath)).catch(failed)
      if (this.folders.get(shortId) !== rootPath) continue
      const { facts, gitDir, isUnsure } = seen ?? { facts: noAnswer, gitDir: null, isUnsure: false }
      this.found.set(shortId, isUnsure && before.state === facts.state ? before : facts)
      if (isUnsure) watch.recheck(shortId)
      else if (seen !== null) watch.set(shortId, pathsOf({ rootPath, gitDir }))
    }
  }
}

const noAnswer: FolderFacts = { state: 'not_permitted', branch: null }

/** Loaded when the first folder is looked at: it brings what compares working trees. */
async function lookWithGit(rootPath: string): Promise<InspectedFolder> {
  const { inspectFolder: lookAtFolder } = await import('../folders/check.ts')
  return lookAtFolder(rootPath)
}

/** Paths that change when the folder comes or goes, becomes a repository, or has another branch checked out. */
function pathsOf({ rootPath, gitDir }: { rootPath: string; gitDir: string | null }): string[] {
  // A path of another system: a look says so, and nothing of this machine is meant.
  if (!isAbsolute(rootPath)) return []
  const ofGit = gitDir === null ? [] : [join(gitDir, 'HEAD'), join(gitDir, 'reftable', 'tables.list')]
  return [rootPath, join(rootPath, '.git'), ...ofGit]
}
