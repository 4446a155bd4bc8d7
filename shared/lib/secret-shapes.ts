// Recognises secrets by the shapes their issuers give them, so that nobody leaves one in a message by accident.
// Ordinary text never has these shapes; merely looking random is no reason to refuse a text.

interface Shape {
  name: string
  pattern: RegExp
}

/**
 * A JSON Web Token, with what is written before it without a blank. Each run of such characters is looked at once: a try at each
 * `eyJ` within a long run would read it to its end each time.
 */
const signedToken =
  /(?<![\w-])(?=[\w-]{13,}\.eyJ[\w-]{10,}\.[\w-]{10})[\w-]*?\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}/g

const shapes: readonly Shape[] = [
  { name: 'private key', pattern: /-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----/g },
  { name: 'age key', pattern: /\bAGE-SECRET-KEY-1[0-9A-Z]{40,}/g },
  { name: 'access token of this service', pattern: /\bsvc_(?:pat|dev|dsh)_[A-Za-z0-9]{16,}/g },
  { name: 'AWS access key', pattern: /\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b/g },
  {
    name: 'AWS secret key',
    pattern: /(?<=\baws_?secret_?(?:access_?)?key["']?\s{0,4}[:=]\s{0,4}["']?)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])/gi,
  },
  { name: 'Azure storage key', pattern: /\bAccountKey=[A-Za-z0-9+/]{80,}={0,2}/g },
  { name: 'Google API key', pattern: /\bAIza[0-9A-Za-z_-]{35}/g },
  { name: 'Google OAuth token', pattern: /\bya29\.[0-9A-Za-z_-]{20,}/g },
  { name: 'Google OAuth client secret', pattern: /\bGOCSPX-[0-9A-Za-z_-]{20,}/g },
  { name: 'GitHub token', pattern: /\bgh[pousr]_[A-Za-z0-9]{30,}/g },
  { name: 'GitHub token', pattern: /\bgithub_pat_[A-Za-z0-9_]{22,}/g },
  { name: 'GitLab token', pattern: /\bgl(?:pat|dt|rt|ptt|cbt|oas)-[A-Za-z0-9_-]{20,}/g },
  { name: 'Slack token', pattern: /\bxox[abeoprs]-(?=[A-Za-z0-9-]{0,80}\d)[A-Za-z0-9-]{10,}/g },
  { name: 'Slack token', pattern: /\bxapp-\d-[A-Za-z0-9-]{20,}/g },
  { name: 'Slack webhook', pattern: /\bhooks\.slack\.com\/services\/T[A-Z0-9]{6,}\/B[A-Z0-9]{6,}\/[A-Za-z0-9]{16,}/g },
  // Words joined by hyphens are no key: a key has one long part, or one of middle length with a digit in it.
  {
    name: 'API key',
    pattern: /\bsk-(?:[A-Za-z0-9]{1,12}-){0,3}(?:[A-Za-z0-9_]{32,}|(?=[A-Za-z0-9_]{0,80}\d)[A-Za-z0-9_]{16,})/g,
  },
  { name: 'Stripe key', pattern: /\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}/g },
  { name: 'webhook secret', pattern: /\bwhsec_[A-Za-z0-9+/]{24,}/g },
  { name: 'package registry token', pattern: /\bnpm_[A-Za-z0-9]{36}/g },
  { name: 'package registry token', pattern: /\bpypi-[A-Za-z0-9_-]{50,}/g },
  { name: 'SendGrid key', pattern: /\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}/g },
  { name: 'Twilio key', pattern: /\bSK[0-9a-f]{32}\b/g },
  { name: 'Hugging Face token', pattern: /\bhf_[A-Za-z0-9]{30,}/g },
  { name: 'DigitalOcean token', pattern: /\bdo[opr]_v1_[a-f0-9]{64}/g },
  { name: 'Shopify token', pattern: /\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}/g },
  { name: 'Vault token', pattern: /\bhv[bs]\.[A-Za-z0-9_-]{24,}/g },
  { name: 'Databricks token', pattern: /\bdapi[a-f0-9]{32}\b/g },
  { name: 'Linear key', pattern: /\blin_(?:api|oauth)_[A-Za-z0-9]{32,}/g },
  { name: 'signed token', pattern: signedToken },
]

/** The kind of secret that the text seems to hold, in words; null when none. The secret itself is not returned. */
export function secretIn(text: string): string | null {
  for (const { name, pattern } of shapes)
    for (const [found] of text.matchAll(pattern)) if (!isPlaceholder(found)) return name
  return null
}

/**
 * Replaces everything with such a shape. Whole private keys are replaced line by line: a shell ends a command where a
 * line ends, so the text after a key must not vanish with it.
 */
export function withoutSecrets(text: string, mask: string): string {
  let masked = text.replaceAll(wholeKey, (key: string) => withoutKey(key, mask))
  for (const { pattern } of shapes)
    masked = masked.replaceAll(pattern, (found: string) => (isPlaceholder(found) ? found : mask))
  return masked
}

const wholeKey =
  /-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s:,]|\\[nr]){0,20000}(?:-----END [A-Z0-9 ]{0,60}-----)?/g
/** Lines of a key, also when its line ends are written as `\n`. The last one may be short. */
const keyLine = /[A-Za-z0-9+/=]{16,}|[A-Za-z0-9+/]+={1,2}|-----(?:BEGIN|END) [A-Z0-9 ]{0,60}-----/g

function withoutKey(key: string, mask: string): string {
  // An `n` after a backslash is a line end and not part of the line.
  return key
    .split(/(\\[nr])/)
    .map((part, at) => (at % 2 === 1 ? part : part.replaceAll(keyLine, mask)))
    .join('')
}

/** A placeholder as manuals write it, such as `ghp_xxxxxxxxxxxx`. */
const isPlaceholder = (found: string): boolean => /[xX*]{12}$/.test(found)
