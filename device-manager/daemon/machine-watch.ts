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
  reports: Pick<ReadinessReports, 'probeAgain' | 'tellChanges'>
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
  /** Looks in a row that were to verify what the one before had found. */
  private verifying = 0

  constructor({ world, log, reports }: MachineWatchOptions) {
    const patience = new Patience(world, folderMs)
    this.watch = new Watch({
      world,
      log,
      patience,
      changed: async (subjects) => {
        if (subjects.includes(signIns)) this.harnesses.ask()
        await this.folders.inspect(subjects)
        reports.tellChanges()
        // The harnesses are asked later, and once more by themselves.
        return subjects.filter((subject) => subject !== signIns)
      },
    })
    this.folders = new ServedFolders({ patience, watch: this.watch })
    // A harness may write its files whenever it is asked, and each question is a program of hundreds of megabytes.
    this.harnesses = new Paced({
      world,
      soonMs: 100,
      gapMs: 500,
      maxGapMs: 60_000,
      act: async () => {
        const { verifying } = this
        const isNew = await reports.probeAgain({ askShell: false })
        if (verifying > 0) this.verifying = isNew ? verifying + 1 : 0
        if (verifying > 0 && isNew) this.harnesses.ask()
        // The first that verifies was asked for since something changed: that says nothing about how often files are written
        // for nothing. Those that find something else each time come ever less often.
        return verifying === 0 ? isNew : verifying === 1
      },
    })
  }

  /**
   * Has the harnesses looked at once more, since a look found something new. A file that was there for the moment of that
   * look, and never when the files were looked at, would else be believed in for good. So is what that look finds anew.
   */
  verifyHarnesses(): void {
    if (this.verifying > 0) return
    this.verifying = 1
    this.harnesses.ask()
  }

  watchSignIns(files: readonly string[]): void {
    this.watch.set(signIns, files.length === 0 ? null : files)
  }

  async stop(): Promise<void> {
    this.harnesses.stop()
    await this.watch.stop()
  }
}
