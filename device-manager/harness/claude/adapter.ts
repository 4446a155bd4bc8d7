import type { HarnessAdapter } from '../adapter.ts'
import { claudeSignInFiles, detectClaude } from './detect.ts'
import { claudeLaunch } from './launch.ts'
import { claudeDialogue } from './dialogue.ts'
import { skillFiles, skillName } from './skills.ts'

/** Claude Code, driven over pipes by its stream-json protocol; every tool call is asked through its hook. */
export const claudeAdapter: HarnessAdapter = {
  name: 'claude',
  can: { resume: true, input: true, ask: true },
  detect: detectClaude,
  signInFiles: claudeSignInFiles,
  skillFiles,
  skillName,
  command: claudeLaunch,
  dialogue: claudeDialogue,
}
