import type { HarnessAdapter } from '../adapter.ts'
import { codexSignInFiles, detectCodex } from './detect.ts'
import { codexDialogue } from './dialogue.ts'
import { codexLaunch } from './launch.ts'

/** Codex, driven over pipes by its app-server protocol; every command, patch and MCP call is asked. */
export const codexAdapter: HarnessAdapter = {
  name: 'codex',
  can: { resume: true, input: true, ask: true },
  detect: detectCodex,
  signInFiles: codexSignInFiles,
  command: codexLaunch,
  dialogue: codexDialogue,
}
