import { join } from 'node:path'
import type { HarnessProbe, HarnessReadiness } from '../adapter.ts'
import { installed, notInstalled } from '../parts/readiness.ts'

/** It takes more than a second, and much longer on a busy machine. */
const probeMs = 15_000

export const opencodeSignInHint =
  'opencode is not signed in to any provider; run `opencode auth login` once in a terminal.'
export const opencodeSignInWith = '`opencode auth login`'

/** The variables by which the known providers take a key. */
const keyVariables =
  `ANTHROPIC_API_KEY OPENAI_API_KEY AZURE_OPENAI_API_KEY GEMINI_API_KEY GOOGLE_API_KEY GOOGLE_APPLICATION_CREDENTIALS
  OPENROUTER_API_KEY XAI_API_KEY GROQ_API_KEY MISTRAL_API_KEY DEEPSEEK_API_KEY OPENCODE_API_KEY OPENCODE_AUTH_CONTENT
  AWS_ACCESS_KEY_ID AWS_PROFILE AWS_BEARER_TOKEN_BEDROCK`.split(/\s+/)

/**
 * Looks at what is installed. Whether a person is signed in is told by what lies there: `opencode auth list` costs two
 * seconds of a processor and says no more.
 */
export async function detectOpencode(probe: HarnessProbe): Promise<HarnessReadiness> {
  const file = await probe.which('opencode')
  if (file === null) {
    const message = 'opencode was not found on the PATH of the login shell; install it with: npm install -g opencode-ai'
    return notInstalled(message)
  }
  const [versionRun, signedIn] = await Promise.all([probe.run(file, ['--version'], probeMs), isSignedIn(probe)])
  return installed('opencode', versionRun, { signedIn, signInHint: opencodeSignInHint, probeMs })
}

/** null: a provider of the person's own, of whose key nobody can tell. */
async function isSignedIn(probe: HarnessProbe): Promise<boolean | null> {
  if (keyVariables.some((name) => (probe.env[name] ?? '') !== '')) return true
  const [auth, ...settings] = opencodeSignInFiles(probe)
  // Only its presence is looked at, since it holds credentials.
  if (await probe.exists(auth!)) return true
  const texts = await Promise.all(settings.map((path) => probe.readStart(path)))
  const own = [...texts, probe.env['OPENCODE_CONFIG_CONTENT'] ?? null]
  return own.some((text) => text !== null && /["']provider["']\s*:/.test(text)) ? null : false
}

type Place = Pick<HarnessProbe, 'env' | 'homeDir'>
const homeOf = ({ env, homeDir }: Place, variable: string, usual: string): string =>
  join(env[variable] ?? join(homeDir, usual), 'opencode')

/** The files that change when a person signs in or out, or adds a provider; the credentials first. */
export function opencodeSignInFiles(place: Place): string[] {
  const settings = homeOf(place, 'XDG_CONFIG_HOME', '.config')
  const named = place.env['OPENCODE_CONFIG']
  return [
    join(homeOf(place, 'XDG_DATA_HOME', '.local/share'), 'auth.json'),
    ...['opencode.json', 'opencode.jsonc', 'config.json'].map((name) => join(settings, name)),
    ...(named === undefined ? [] : [named]),
  ]
}
