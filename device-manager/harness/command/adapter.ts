import type { HarnessAdapter } from '../adapter.ts'
import { commandLaunch } from './launch.ts'
import { commandDialogue } from './dialogue.ts'

/**
 * Any program: its output is the transcript, its exit status the outcome. It resumes nothing, and it asks nothing: there
 * are no tool calls to decide on, so permissions, approvals and `spec.allowCalls` have no meaning for it.
 */
export const commandAdapter: HarnessAdapter = {
  name: 'command',
  can: { resume: false, input: true, ask: false },
  // It runs the agent's command and no program of its own; there is nothing to install or to sign in to.
  detect: () => Promise.resolve({ installed: true, version: null, signedIn: null, message: null }),
  command: commandLaunch,
  dialogue: () => commandDialogue(),
}
