import type { HarnessAdapter } from '../adapter.ts'
import { commandAdapter } from '../command/adapter.ts'
import { commandStepDialogue } from './dialogue.ts'
import { commandStepLaunch } from './launch.ts'

/** A command that a program of a workflow gave: judged as the shell call that it is, and started only then. */
export const commandStepAdapter: HarnessAdapter = {
  ...commandAdapter,
  can: { resume: false, input: false, ask: true },
  command: commandStepLaunch,
  dialogue: commandStepDialogue,
}
