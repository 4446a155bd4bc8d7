import { nearest } from '../../shared/lib/nearest.ts'
import { variableNames } from './variables.ts'

/** Variables of `svc`, of the device manager and of runs: on one machine all programs may have the same environment. */
export const namesOfOthers: readonly string[] = [
  'SVC_AGENT_ID',
  'SVC_API_URL',
  'SVC_CONFIG_DIR',
  'SVC_DEBUG',
  'SVC_HOST_SILENT_MS',
  'SVC_INSTRUCTIONS_FILE',
  'SVC_PAGER',
  'SVC_PROMPT',
  'SVC_PROMPT_FILE',
  'SVC_RECONNECT_MAX_MS',
  'SVC_RECONNECT_MIN_MS',
  // Set by `scripts/env` for the programs of a checkout.
  'SVC_ROOT',
  'SVC_RUN_ID',
  'SVC_SPOOL_PAGES',
  'SVC_SPOOL_UNSENT_BYTES',
  'SVC_STATE_DIR',
  'SVC_TOKEN',
]

/** A sentence for each `SVC_` variable that no program of ours reads; its value may be secret and is not told. */
export function unknownNamesIn(env: Readonly<Record<string, string | undefined>>): string[] {
  const known: readonly string[] = [...variableNames, ...namesOfOthers]
  return Object.keys(env)
    .filter((name) => /^SVC_/i.test(name) && env[name] !== undefined && !known.includes(name))
    .toSorted()
    .map((name) => {
      const meant = nearest(name, known)
      const told = `${name.slice(0, 100)} is no setting and is ignored.`
      return meant === null ? told : `${told} Did you mean ${meant}?`
    })
}
