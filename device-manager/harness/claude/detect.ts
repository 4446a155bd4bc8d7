import { join } from 'node:path'
import { z } from 'zod'
import { parseJsonText } from '../../../shared/lib/lines.ts'
import type { HarnessProbe, HarnessReadiness } from '../adapter.ts'
import { accountDigest } from '../parts/account.ts'
import { installed, notInstalled } from '../parts/readiness.ts'

/** A third of a second, and much longer on a busy machine; who is cut off counts as neither signed in nor out. */
const probeMs = 15_000
const text = z.string().max(500).nullish().catch(null)
const authStatus = z.object({ loggedIn: z.boolean(), email: text, orgId: text })
type AuthStatus = z.infer<typeof authStatus>

export const claudeSignInHint =
  'claude is not signed in; run `claude` once in a terminal and sign in, or set ANTHROPIC_API_KEY.'
export const claudeSignInWith = '`claude`, once in a terminal'

/** Looks at what is installed; `auth status` says whether credentials are present, without using them. */
export async function detectClaude(probe: HarnessProbe): Promise<HarnessReadiness> {
  const file = await probe.which('claude')
  if (file === null) {
    return notInstalled(
      'claude was not found on the PATH of the login shell; install it with: npm install -g @anthropic-ai/claude-code',
    )
  }
  const [versionRun, authRun] = await Promise.all([
    probe.run(file, ['--version'], probeMs),
    probe.run(file, ['auth', 'status'], probeMs),
  ])
  const auth = authBy(authRun.stdout)
  const signedIn = auth?.loggedIn ?? null
  return { ...installed('claude', versionRun, { signedIn, signInHint: claudeSignInHint, probeMs }), ...accountOf(auth) }
}

/** On macOS it keeps its credentials in the keychain instead. */
export function claudeSignInFiles({ env, homeDir }: Pick<HarnessProbe, 'env' | 'homeDir'>): readonly string[] {
  return [join(env['CLAUDE_CONFIG_DIR'] ?? join(homeDir, '.claude'), '.credentials.json')]
}

/** null: a version without the command, or one that did not answer in time. */
const authBy = (stdout: string): AuthStatus | null => authStatus.safeParse(parseJsonText(stdout)).data ?? null

/** A subscription's limit is that of a person in an organization. Of a key claude tells nothing. */
function accountOf(auth: AuthStatus | null): Pick<HarnessReadiness, 'account'> {
  return auth?.email ? { account: accountDigest('claude', auth.orgId ?? '', auth.email) } : {}
}
