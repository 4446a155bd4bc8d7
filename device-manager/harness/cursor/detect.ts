import { z } from 'zod'
import type { HarnessProbe, HarnessReadiness } from '../adapter.ts'
import { jsonObject } from '../parts/json-lines.ts'
import { installed, notInstalled } from '../parts/readiness.ts'

const probeMs = 10_000

export const cursorSignInHint = 'Cursor is not signed in; run `cursor-agent login` once in a terminal.'
export const cursorSignInWith = '`cursor-agent login`'

const status = z.object({ isAuthenticated: z.boolean() })

export async function detectCursor(probe: HarnessProbe): Promise<HarnessReadiness> {
  const file = await probe.which('cursor-agent')
  if (file === null) {
    const message = 'cursor-agent was not found on the PATH of the login shell; cursor.com/cli says how to install it.'
    return notInstalled(message)
  }
  const [versionRun, statusRun] = await Promise.all([
    probe.run(file, ['--version'], probeMs),
    probe.run(file, ['status', '--format', 'json'], probeMs),
  ])
  const said = status.safeParse(jsonObject(Buffer.from(statusRun.stdout)))
  const signedIn = said.success ? said.data.isAuthenticated : null
  return installed('cursor-agent', versionRun, { signedIn, signInHint: cursorSignInHint, probeMs })
}
