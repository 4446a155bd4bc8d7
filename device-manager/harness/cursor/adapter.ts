import { acpDialogue } from '../acp/dialogue.ts'
import type { AcpProgram } from '../acp/program.ts'
import type { HarnessAdapter } from '../adapter.ts'
import { hasCallChecks } from '../../../shared/runs/call-checks.ts'
import { detectCursor, cursorSignInHint, cursorSignInWith } from './detect.ts'
import { cursorDialogue } from './dialogue.ts'
import { cursorLaunch } from './launch.ts'

const program: AcpProgram = { signInHint: cursorSignInHint, signInWith: cursorSignInWith, signInMethod: 'cursor_login' }

/** Cursor: by ACP where the agent's lists have a say, since it asks nobody otherwise; else in print mode, by its stream of JSON. */
export const cursorAdapter: HarnessAdapter = {
  name: 'cursor',
  can: { resume: true, input: true, ask: true },
  detect: detectCursor,
  command: cursorLaunch,
  dialogue: (spec, options = {}) =>
    hasCallChecks(spec) ? acpDialogue(spec, options, program) : cursorDialogue(spec, options),
}
