import { realpath } from 'node:fs/promises'
import { resolve, sep } from 'node:path'
import type { RunId } from '../../shared/lib/ids.ts'
import type { RunState } from './machine.ts'

export interface FolderMeetingsOptions {
  list(): readonly RunState[]
  /** The change-set of the run may hold changes of that other one. */
  shares(runId: RunId, other: RunId): void
}

/**
 * Finds runs that work at the same time in one folder, or in two of which one lies in the other: nothing in a working tree tells which
 * of them changed a file, so their change-sets are mixed (docs/adr/0086). A run counts from its offer on what others change, since its base is recorded
 * then, and changes something itself once its harness runs.
 *
 * Folders are compared by their real paths, which are resolved while the runs go on: a folder on a mount that does not answer is never
 * found to be shared, and holds up nothing.
 */
export class FolderMeetings {
  private readonly options: FolderMeetingsOptions
  private readonly places = new Map<RunId, Promise<string>>()

  constructor(options: FolderMeetingsOptions) {
    this.options = options
  }

  /** The run came to another phase, or is new, or gone. */
  changed(before: RunState | null, after: RunState | null): void {
    if (after === null || after.phase === 'ended') return void this.places.delete((after ?? before!).runId)
    const isLive = after.phase === 'live'
    if (before !== null && !isLive) return
    for (const other of this.options.list()) {
      if (other.runId === after.runId || other.phase === 'ended') continue
      if (other.phase === 'live') void this.meet(after, other)
      if (isLive) void this.meet(other, after)
    }
  }

  private async meet(run: RunState, other: RunState): Promise<void> {
    const [own, its] = await Promise.all([this.placeOf(run), this.placeOf(other)])
    if (own !== null && its !== null && isWithin(own, its)) this.options.shares(run.runId, other.runId)
  }

  private placeOf({ runId, spec }: RunState): Promise<string> | null {
    if (spec.folder === null) return null
    const { rootPath } = spec.folder
    const place = this.places.get(runId) ?? realpath(rootPath).catch(() => resolve(rootPath))
    this.places.set(runId, place)
    return place
  }
}

const isWithin = (one: string, other: string): boolean => {
  const [a, b] = [folderName(one), folderName(other)]
  return a.startsWith(b) || b.startsWith(a)
}

const folderName = (path: string): string => (path.endsWith(sep) ? path : `${path}${sep}`)
