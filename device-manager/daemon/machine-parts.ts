import { EventEmitter } from 'node:events'
import type { FolderFacts } from '../../shared/device/folder-check.ts'
import type { LinkClient } from '../link/client.ts'
import { Isolation } from '../isolation/isolation.ts'
import type { DaemonOptions } from './daemon-options.ts'
import { MachineWatch } from './machine-watch.ts'
import { ReadinessReports } from './readiness-reports.ts'
import { Surroundings } from './surroundings.ts'

/** A look at the harnesses that is younger than this is told to the control plane as it is. */
export const harnessesMs = 5 * 60_000

/** What is known of this machine beside its runs, how it is watched, and who tells the control plane. */
export interface MachineParts {
  isolation: Isolation
  surroundings: Surroundings
  readiness: ReadinessReports
  machine: MachineWatch
}

interface MachineEvents {
  isolationChanged: []
  envProbed: []
  harnessesFound: []
}

/** Makes these parts. Each uses those before it, and tells the others what happened by events. None of them is started. */
export function machineParts(options: DaemonOptions, send: LinkClient['send']): MachineParts {
  const { world, log, config } = options
  const events = new EventEmitter<MachineEvents>()
  const isolation = new Isolation({
    ...options,
    hidden: config.otherDirs,
    doors: config.doors,
    changed: () => void events.emit('isolationChanged'),
  })
  const surroundings = new Surroundings({ ...options, isolation, envProbed: () => void events.emit('envProbed') })
  let servedFolders = (): Record<string, FolderFacts> => ({})
  const readiness = new ReadinessReports({
    world,
    log,
    surroundings,
    isolation: () => isolation.describe().level,
    folders: () => servedFolders(),
    send,
    news: () => void events.emit('harnessesFound'),
  })
  const machine = new MachineWatch({ world, log, reports: readiness })
  servedFolders = () => machine.folders.facts()
  events.on('isolationChanged', () => void readiness.report(harnessesMs))
  events.on('envProbed', () => machine.watchSignIns(surroundings.signInFiles()))
  events.on('harnessesFound', () => machine.verifyHarnesses())
  return { isolation, surroundings, readiness, machine }
}
