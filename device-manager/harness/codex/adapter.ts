import type { HarnessAdapter } from '../adapter.ts'
import { codexSignInFiles, detectCodex } from './detect.ts'
import { codexDialogue } from './dialogue.ts'
import { codexFirstStart } from './first-start.ts'
import { codexLaunch } from './launch.ts'

/** Codex, driven over pipes by its app-server protocol; every command, patch and MCP call is asked. */
export const codexAdapter: HarnessAdapter = {
  name: 'codex',
  can: { resume: true, input: true, ask: true },
  detect: detectCodex,
  signInFiles: codexSignInFiles,
  firstStart: codexFirstStart,
  command: codexLaunch,
  dialogue: codexDialogue,
}
