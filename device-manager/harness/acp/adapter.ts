import type { HarnessAdapter } from '../adapter.ts'
import { commandAdapter } from '../command/adapter.ts'
import { acpDialogue } from './dialogue.ts'
import { acpLaunch } from './launch.ts'

/** The agent's own command where it speaks the Agent Client Protocol: any program of that kind, without code of its own. */
export const acpAdapter: HarnessAdapter = {
  ...commandAdapter,
  can: { resume: true, input: true, ask: true },
  command: acpLaunch,
  dialogue: acpDialogue,
}
