/**
 * Tokens of this service, known by their form: login, device and dashboard tokens, and the JWT of a run, which begins with
 * the same header always. Whoever finds one may act with it, so none goes into an event, a log or a change-set, whether
 * or not its value is known there.
 */
const random = 'svc_(?:pat|dev|dsh)_'
/** The header of each run's token. Not written out: what looks like a token is looked for in all that svc keeps. */
const runTokenHead = btoa('{"alg":"HS256","typ":"svc-run+jwt"}').replaceAll('=', '')

const tokens = new RegExp(
  String.raw`(${random})[A-Za-z0-9]{16,}|${runTokenHead}\.[\w-]{16,1000}(?:\.[\w-]{1,200})?`,
  'g',
)

export function maskOwnTokens(text: string): string {
  if (!mayHoldToken(text)) return text
  return text.replaceAll(tokens, (_, prefix: string | undefined) => `[redacted:${prefix?.slice(0, -1) ?? 'svc_run'}]`)
}

/** Whether it is worth looking closer. */
export const mayHoldToken = (text: { includes(part: string): boolean }): boolean =>
  text.includes('svc_') || text.includes(runTokenHead)

/** No token is longer. */
export const maxTokenChars = 1_500
/** A token, or its beginning, that reaches to the end. */
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

/** `s(?:v(?:c)?)?` of `svc`. */
function beginningsOf(word: string): string {
  return word.split('').reduceRight((rest, letter) => (rest === '' ? letter : `${letter}(?:${rest})?`), '')
}
