import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { IsolationChoice, IsolationState } from '../../shared/device/isolation.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../log/log.ts'
import type { Places } from '../setup/places.ts'
import { hostPaths, makeShortFolder } from '../run-host/wire/record.ts'
import { marksOf, movedFolder, type Marks } from '../wall/hidden.ts'
import { readIsolationSettings, writeSettings } from './setting.ts'
import { WallError, type WallSpec } from '../wall/spec.ts'
import type { Executed } from './executed.ts'
import { tryWall, type Trial } from './trial.ts'

const longestHostId = 64

export interface IsolationOptions {
  places: Places
  /** Folders of svc besides the state folder: the login's, and that of a server on this machine. */
  hidden: readonly string[]
  /** Folders of terminal multiplexers in unusual places. */
  doors: readonly string[]
  /** Looks at what is executed outside of the wall of a run. */
  executed: () => Promise<Executed>
  world: World
  log: Log
  /** The level changed. */
  changed(): void
}

/**
 * Decides whether runs of this device get a wall, and how it is made. The first trial that succeeds is kept as the choice: from
 * then on a machine that lets no wall be made starts no run, until the owner of the device chooses `off`.
 *
 *     not chosen -- trial succeeds -> svc -- set off -> off -- set svc, trial succeeds -> svc
 *         \-------- trial fails: no wall, and status says so (tried again by the next daemon)
 */
export class Isolation {
  private readonly options: IsolationOptions
  private choice: IsolationChoice | null
  /** The marks of the folders that are hidden. */
  private marks: Marks
  private trial: Trial | null = null
  private trying: Promise<Trial> | null = null

  constructor(options: IsolationOptions) {
    this.options = options
    const { isolation, folders } = readIsolationSettings(options.places.settings)
    this.choice = isolation
    this.marks = folders
  }

  /** The first trial; runs wait for it. */
  start(): void {
    if (this.choice !== 'off') void this.try()
  }

  /** Returns how the wall of the next run is made; null: it gets none. Fails with a WallError when it should have one. */
  forRun(): (WallSpec | null) | Promise<WallSpec | null> {
    if (this.choice === 'off') return null
    const spec = this.trial?.spec ?? null
    // A folder that it hides was moved: a new trial says so.
    return spec !== null && movedFolder(spec) === null ? spec : this.untilTried()
  }

  private async untilTried(): Promise<WallSpec | null> {
    // A machine that was too busy for the last trial may not be any more.
    const trial = this.choice === null && this.trial !== null ? this.trial : await this.try()
    if (trial.spec !== null || this.choice === null || this.isOff()) return this.isOff() ? null : trial.spec
    throw new WallError(
      `No wall can be made around the run: ${trial.message} Mend that (see docs/isolation.md), or run without: svc device set --isolation off`,
    )
  }

  /**
   * The owner's choice. Rejects with a WallError when `svc` does not work here; the choice stays as it was. The folders that
   * are there now are what is hidden from then on.
   */
  async set(choice: IsolationChoice): Promise<IsolationState> {
    if (choice === 'svc') {
      await this.trying
      const before = this.marks
      this.marks = {}
      const trial = await this.try()
      if (trial.spec === null) {
        this.marks = before
        throw new WallError(`No wall can be made on this machine: ${trial.message}`)
      }
    }
    writeSettings(this.options.places.settings, { isolation: choice, folders: this.marks })
    this.choice = choice
    this.options.log.info({ ...this.describe() }, 'isolation was set')
    this.options.changed()
    return this.describe()
  }

  describe(): IsolationState {
    const { choice, trial } = this
    if (choice === 'off') return { choice, level: 'off', tool: null, message: 'The owner of the device chose so.' }
    const message = trial === null ? 'It is being tried.' : trial.message
    return { choice, level: trial?.level ?? 'off', tool: trial?.spec?.tool ?? null, message }
  }

  private isOff(): boolean {
    return this.choice === 'off'
  }

  private try(): Promise<Trial> {
    this.trying ??= this.tryNow().finally(() => {
      this.trying = null
    })
    return this.trying
  }

  private async tryNow(): Promise<Trial> {
    const { places, hidden, doors, executed, world, log } = this.options
    const look = async () => {
      const { stateDir } = places
      const moved = movedFolder({ stateDir, hidden: [...hidden], marks: this.marks })
      if (moved !== null) throw new WallError(moved)
      const all = [...hidden, ...shortSockets(stateDir)]
      // One that is made later would be seen by the runs that live then.
      for (const folder of [...all, places.hosts, places.bin, places.compileCache]) makeFolder(folder)
      // The folder of the sockets lies where the system removes what is old; nobody but root renames what is above it.
      const marks = { ...marksOf([stateDir, ...hidden]), ...this.marks }
      const { paths, gaps } = await executed()
      return tryWall({ stateDir, hidden: all, marks, doors: [...doors], executed: paths }, { gaps, world })
    }
    const trial = await look().catch((error: unknown): Trial => {
      return { level: 'off', spec: null, message: error instanceof Error ? error.message : String(error) }
    })
    this.trial = trial
    if (trial.spec !== null) this.keep(trial.spec.marks)
    if (trial.level === 'full') log.info({ tool: trial.spec?.tool }, 'runs are walled')
    else log.warn({ level: trial.level, tool: trial.spec?.tool ?? null }, trial.message ?? 'runs are not walled')
    this.options.changed()
    return trial
  }

  /** `off` is not tried but by its owner, who ends it. */
  private keep(marks: Marks): void {
    const isKept = this.choice !== null && Object.keys(marks).every((folder) => this.marks[folder] !== undefined)
    this.marks = marks
    if (isKept || this.choice === 'off') return
    this.choice = 'svc'
    try {
      writeSettings(this.options.places.settings, { isolation: 'svc', folders: marks })
    } catch (error) {
      this.options.log.error({ err: error }, 'the choice of isolation could not be kept')
    }
  }
}

/** The folder of the hosts' sockets where these do not lie in the state folder. */
function shortSockets(stateDir: string): string[] {
  const { socket, hosts } = hostPaths(stateDir, 'h'.repeat(longestHostId))
  return dirname(socket) === hosts ? [] : [makeShortFolder(stateDir)]
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch {
    // Then nothing can be put there either.
  }
}
