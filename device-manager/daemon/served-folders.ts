import { join } from 'node:path'
import { type FolderFacts, type ServedFolder, watchedFolders } from '../../shared/device/folder-check.ts'
import type { FolderLook } from '../folders/check.ts'
import type { Patience } from '../watch/patience.ts'
import type { Watch } from '../watch/watch.ts'

export interface ServedFoldersOptions {
  patience: Patience
  watch: Pick<Watch, 'set'>
  look?: (rootPath: string) => Promise<FolderLook>
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

  /** By short id; those that were not looked at yet are missing. */
  facts(): Record<string, FolderFacts> {
    return Object.fromEntries([...this.found].filter(([shortId]) => this.folders.has(shortId)))
  }

  /** Looks at those of them that are folders of this device. */
  async look(shortIds: Iterable<string> = this.folders.keys()): Promise<void> {
    const look = this.options.look ?? (await import('../folders/check.ts')).lookAtFolder
    for (const shortId of shortIds) {
      const rootPath = this.folders.get(shortId)
      if (rootPath === undefined) continue
      const seen = await this.options.patience.wait(shortId, () => look(rootPath)).catch(() => null)
      if (this.folders.get(shortId) !== rootPath) continue
      this.found.set(shortId, seen?.facts ?? { state: 'not_permitted', branch: null })
      if (seen !== null) this.options.watch.set(shortId, pathsOf({ rootPath, gitDir: seen.gitDir }))
    }
  }
}

/** Paths that change when the folder comes or goes, becomes a repository, or has another branch checked out. */
function pathsOf({ rootPath, gitDir }: { rootPath: string; gitDir: string | null }): string[] {
  const ofGit = gitDir === null ? [] : [join(gitDir, 'HEAD'), join(gitDir, 'reftable', 'tables.list')]
  return [rootPath, join(rootPath, '.git'), ...ofGit]
}
