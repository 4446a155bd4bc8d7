import type { HarnessAdapter } from '../adapter.ts'
import { detectOpencode, opencodeSignInFiles } from './detect.ts'
import { opencodeDialogue } from './dialogue.ts'
import { opencodeLaunch } from './launch.ts'

/** OpenCode, driven over HTTP; every tool call is asked by svc's plugin before it is made. */
export const opencodeAdapter: HarnessAdapter = {
  name: 'opencode',
  can: { resume: true, input: true, ask: true },
  skillName: (name) => name,
  detect: detectOpencode,
  signInFiles: opencodeSignInFiles,
  command: opencodeLaunch,
  dialogue: opencodeDialogue,
}
