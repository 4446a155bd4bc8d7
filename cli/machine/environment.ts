import { loginTokenPrefix, runVariables } from '../../shared/lib/places.ts'

/** The environment variables of svc, read once at the start. */
export interface CliEnvironment {
  configDir: string | null
  stateDir: string | null
  dataDir: string | null
  /** Set within a run: svc calls as the agent with these. */
  run: { apiUrl: string | null; token: string; runId: string | null } | null
  /** Set where a person gives their login token, as programs do that have no login file. */
  person: { apiUrl: string | null; token: string } | null
  /** The run this shell is in, whoever the caller is. */
  runId: string | null
  isDebugging: boolean
  /** What the environment says about colours; null: nothing. */
  hasColours: boolean | null
  /** The terminal has 256 colours. */
  hasPalette: boolean
}

export function readEnvironment(env: Readonly<Record<string, string | undefined>>): CliEnvironment {
  const text = (name: string) => (env[name] === undefined || env[name] === '' ? null : env[name])
  const token = text(runVariables.token)
  const runId = text(runVariables.runId)
  const apiUrl = text(runVariables.apiUrl)
  // Within a run whatever token there is counts as the run's, so that its reader is an agent.
  const isPersons = token?.startsWith(loginTokenPrefix) === true && runId === null
  return {
    configDir: text('SVC_CONFIG_DIR'),
    stateDir: text('SVC_STATE_DIR'),
    dataDir: text('SVC_DATA_DIR'),
    run: token === null || isPersons ? null : { apiUrl, token, runId },
    person: token !== null && isPersons ? { apiUrl, token } : null,
    runId,
    isDebugging: text('SVC_DEBUG') !== null,
    hasColours: coloursIn(text),
    hasPalette: /256color|direct/.test(text('TERM') ?? '') || text('COLORTERM') !== null,
  }
}

/** NO_COLOR (no-color.org) counts more than CLICOLOR_FORCE (bixense.com/clicolors). */
function coloursIn(text: (name: string) => string | null | undefined): boolean | null {
  if (text('NO_COLOR') != null || text('TERM') === 'dumb') return false
  const forced = text('CLICOLOR_FORCE')
  if (forced != null && forced !== '0') return true
  return text('CLICOLOR') === '0' ? false : null
}

/** The program in which long results are shown; null: none. An empty name, and `cat`, mean none. `chosen`: by the settings of svc. */
export function pagerIn(env: Readonly<Record<string, string | undefined>>, chosen?: string): string | null {
  const named = (env['SVC_PAGER'] ?? chosen ?? env['PAGER'] ?? 'less').trim()
  return named === '' || named === 'cat' ? null : named
}
