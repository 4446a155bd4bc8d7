import { join } from 'node:path'
import type { HarnessProbe, HarnessReadiness } from '../adapter.ts'
import { installed, notInstalled } from '../parts/readiness.ts'

const probeMs = 5_000

export const codexSignInHint = 'codex is not signed in; run `codex login` once in a terminal.'
export const codexSignInWith = '`codex login`'

/** Looks at what is installed; `login status` says whether credentials are present, without using them. */
export async function detectCodex(probe: HarnessProbe): Promise<HarnessReadiness> {
  const file = await probe.which('codex')
  if (file === null) {
    const message = 'codex was not found on the PATH of the login shell; install it with: npm install -g @openai/codex'
    return notInstalled(message)
  }
  const [versionRun, loginRun, settings] = await Promise.all([
    probe.run(file, ['--version'], probeMs),
    probe.run(file, ['login', 'status'], probeMs),
    probe.readStart(join(homeOf(probe), 'config.toml')),
  ])
  const signedIn = loginRun.exitCode === 0 ? true : loginRun.timedOut || hasOwnProvider(settings) ? null : false
  return installed('codex', versionRun, { signedIn, signInHint: codexSignInHint, probeMs })
}

const homeOf = ({ env, homeDir }: Pick<HarnessProbe, 'env' | 'homeDir'>): string =>
  env['CODEX_HOME'] ?? join(homeDir, '.codex')

/** The files that change when a person signs in or out, or chooses another provider. */
export const codexSignInFiles = (machine: Pick<HarnessProbe, 'env' | 'homeDir'>): string[] =>
  ['auth.json', 'config.toml'].map((name) => join(homeOf(machine), name))

/** Another provider than OpenAI has a key of its own, of which `login status` says nothing. */
function hasOwnProvider(settings: string | null): boolean {
  const [, provider = 'openai'] = /^[ \t]*model_provider[ \t]*=[ \t]*["']([^"'\n]*)["']/m.exec(settings ?? '') ?? []
  return provider !== 'openai'
}
