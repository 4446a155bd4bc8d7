import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../log/log.ts'
import { Paced } from '../watch/paced.ts'
import { Patience } from '../watch/patience.ts'
import { Watch } from '../watch/watch.ts'
import type { ReadinessReports } from './readiness-reports.ts'
import { ServedFolders } from './served-folders.ts'

export interface MachineWatchOptions {
  world: World
  log: Log
  reports: Pick<ReadinessReports, 'lookAgain' | 'tellChanges'>
}

/** A folder on a dead network mount is not waited for any longer. */
const folderMs = 5_000

/** The subject beside the folders; no short id is spelled like this. */
const signIns = 'sign-ins'

/** Watches folders and the sign-ins of harnesses, and has reported what changed. */
export class MachineWatch {
  readonly folders: ServedFolders
  private readonly watch: Watch
  private readonly harnesses: Paced

  constructor({ world, log, reports }: MachineWatchOptions) {
    const patience = new Patience(world, folderMs)
    this.watch = new Watch({
      world,
      log,
      patience,
      changed: async (subjects) => {
        if (subjects.includes(signIns)) this.harnesses.ask()
        await this.folders.look(subjects)
        reports.tellChanges()
      },
    })
    this.folders = new ServedFolders({ patience, watch: this.watch })
    // A harness may write its files whenever it is asked, and each question is a program of hundreds of megabytes.
    this.harnesses = new Paced({
      world,
      soonMs: 100,
      gapMs: 500,
      maxGapMs: 60_000,
      act: () => reports.lookAgain({ askShell: false }),
    })
  }

  watchSignIns(files: readonly string[]): void {
    this.watch.set(signIns, files.length === 0 ? null : files)
  }

  async stop(): Promise<void> {
    this.harnesses.stop()
    await this.watch.stop()
  }
}
