// How a unit of systemd writes words, and what `systemctl show` answers: for the units of all our programs.

const escapePercent = (text: string): string => text.replaceAll('%', '%%')
const quoted = (text: string): string => `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`

/** The path of a program: systemd puts no variables into it, and takes neither quotes nor backslashes (`isProgramOfUnit`). */
export const programInUnit = (path: string): string => quoted(escapePercent(path))
export const isProgramOfUnit = (path: string): boolean => !/["'\\]/.test(path)

/** An argument, into which systemd would put variables. */
export const argumentInUnit = (text: string): string => quoted(escapePercent(text).replaceAll('$', '$$$$'))

/** A setting of `Environment=`. */
export const variableInUnit = (name: string, value: string): string => quoted(escapePercent(`${name}=${value}`))

/** The values of a key, in their order. Lines are split at newlines alone: a pattern ends one at other characters, too, which a path may have. */
export const valuesInUnit = (text: string, key: string): string[] =>
  text.split('\n').flatMap((line) => (line.startsWith(`${key}=`) ? [line.slice(key.length + 1)] : []))

/** Reads the words that were written so. */
export function wordsInUnit(line: string): string[] {
  return [...line.matchAll(/"((?:[^"\\]|\\.)*)"/gs)].map(([, word = '']) =>
    word.replaceAll(/\\(.)/gs, '$1').replaceAll('%%', '%'),
  )
}

export interface UnitState {
  /** The service manager knows the service. */
  loaded: boolean
  /** It is started with the person's login, or with the machine. */
  enabled: boolean
  running: boolean
  /** Why it is down for good; null otherwise. */
  failed: string | null
  pid: number | null
}

export const shownProperties = '--property=LoadState,ActiveState,SubState,UnitFileState,MainPID,Result,ExecMainStatus'

/** Reads `systemctl show`, which answers for an unknown unit, too. */
export function stateFromSystemctl(shown: string): UnitState {
  const value = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(shown)?.[1] ?? ''
  const active = value('ActiveState')
  const pid = Number(value('MainPID'))
  return {
    loaded: value('LoadState') === 'loaded',
    enabled: value('UnitFileState').startsWith('enabled'),
    running: ['active', 'reloading', 'deactivating'].includes(active) && pid > 0,
    failed: active === 'failed' ? `${value('Result')}, status ${value('ExecMainStatus')}` : null,
    pid: pid > 0 ? pid : null,
  }
}
