import type { HarnessAdapter } from '../adapter.ts'
import { commandAdapter } from '../command/adapter.ts'
import { gateDialogue } from './dialogue.ts'
import { gateLaunch } from './launch.ts'

/** A command that a program of a workflow gave: judged as the shell call that it is, and started only then. */
export const gateAdapter: HarnessAdapter = {
  ...commandAdapter,
  can: { resume: false, input: false, ask: true },
  command: gateLaunch,
  dialogue: gateDialogue,
}
