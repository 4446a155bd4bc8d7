/**
 * The ways in which the value of a secret shows up in output. `text` forms are matched as they are, with any run of
 * white space in place of each run of theirs (a terminal turns \n into \r\n, and programs wrap at spaces). In `encoded`
 * forms line ends are ignored, since `base64` and `xxd` wrap their lines.
 */
export interface SecretForms {
  text: Uint8Array[]
  encoded: Uint8Array[]
}

/** Shorter values are ignored: they would redact ordinary words. */
export const minSecretBytes = 6

/** Hex dumps of longer values are ignored; the tables would cost more than they are worth. */
const maxHexBytes = 1024

const encoder = new TextEncoder()

export function formsOf(value: string): SecretForms {
  const trimmed = value.toWellFormed().trim()
  const bytes = encoder.encode(trimmed)
  if (bytes.length < minSecretBytes) return { text: [], encoded: [] }
  const text = new Set([trimmed, ...jsonForms(trimmed), ...urlForms(trimmed), ...lineForms(trimmed)])
  const encoded = new Set([...base64Forms(bytes), ...hexForms(bytes)])
  return {
    text: [...text].map((form) => encoder.encode(form)),
    encoded: [...encoded].map((form) => encoder.encode(form)),
  }
}

/** Marks before each line of a file in a patch, and in a quotation. Space is any space. */
const lineMarks = ['+', '+ ', '-', '> ']
const keyChars = /[A-Za-z0-9+/=_-]{32,}/g

/**
 * A value of several lines as patches and quotations show it; and its long lines alone, since programs that number the
 * lines of a file put something else before each.
 */
function lineForms(value: string): string[] {
  const lines = value.split(/\r\n|\r|\n/)
  return lines.length === 1 ? [] : [...lineMarks.map((mark) => lines.join(`\n${mark}`)), ...keyLines(value)]
}

const keyLines = (value: string): string[] => (value.match(keyChars) ?? []).filter(isOfKey)

/** A path or a name is none. */
const isOfKey = (run: string): boolean =>
  /\d/.test(run) && (/^[\da-f]+$/i.test(run) || (/[a-z]/.test(run) && /[A-Z]/.test(run)))

const shortBytes = 64
const pieceUnits = 32

/**
 * A part of the value of which each form is a part of the value's own form. Where it is not, the value is not either; and its
 * tables take little time, however long the value is. From the middle: keys begin and end alike.
 */
export function pieceOf(value: string): string {
  const whole = value.toWellFormed().trim()
  if (whole.length <= shortBytes) return whole
  // The end of a long line, where there is one: what shows a value line by line shows that in one piece.
  const line = keyLineFromMiddle(whole)
  return line === undefined ? middleOf(whole) : line.slice(-pieceUnits)
}

function middleOf(trimmed: string): string {
  const from = Math.floor((trimmed.length - pieceUnits) / 2)
  const isLow = (at: number) => (trimmed.charCodeAt(at) & 0xfc00) === 0xdc00
  const piece = trimmed
    .slice(isLow(from) ? from + 1 : from, from + pieceUnits - (isLow(from + pieceUnits) ? 1 : 0))
    .trim()
  // A piece that is little but white space is too little to go by.
  return piece.length < pieceUnits / 2 ? trimmed : piece
}

/** Finds the first line of a key that ends in the second half. Only that much is read: each request of an agent asks this of all its secrets. */
function keyLineFromMiddle(value: string): string | undefined {
  if (!/[\r\n]/.test(value)) return undefined
  const middle = Math.floor(value.length / 2)
  const from = Math.max(value.lastIndexOf('\n', middle), value.lastIndexOf('\r', middle)) + 1
  for (const { 0: run, index } of value.slice(from).matchAll(keyChars))
    if (from + index + run.length > middle && isOfKey(run)) return run
  return undefined
}

/** The content of a JSON string: plain, as a string inside a string, and as encoders write it that escape more. */
function jsonForms(value: string): string[] {
  const plain = inJson(value)
  const ascii = (hex: (code: string) => string) =>
    plain.replace(/[^\0-\x7e]/g, (unit) => `\\u${hex(unit.charCodeAt(0).toString(16).padStart(4, '0'))}`)
  const html = (text: string) =>
    text.replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const lower = ascii((code) => code)
  const upper = ascii((code) => code.toUpperCase())
  return [
    plain,
    inJson(plain),
    lower,
    upper,
    html(plain),
    html(lower),
    plain.replaceAll('/', '\\/'),
    lower.replaceAll('/', '\\/'),
  ]
}

function inJson(value: string): string {
  return JSON.stringify(value).slice(1, -1)
}

/** Percent-encoded with each usual set of unescaped characters, hex digits in upper and in lower case. */
function urlForms(value: string): string[] {
  const component = encodeURIComponent(value)
  const strict = component.replace(/[!'()*]/g, percentOf)
  const form = strict.replaceAll('%20', '+')
  const formStar = form.replaceAll('%2A', '*')
  const path = strict.replaceAll('%2F', '/')
  const all = [
    component,
    strict,
    form,
    formStar,
    form.replaceAll('~', '%7E'),
    formStar.replaceAll('~', '%7E'),
    path,
    encodeURI(value),
  ]
  return [...all, ...all.map((each) => each.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()))]
}

function percentOf(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
}

/**
 * Base64 of a text that holds the value depends on where in a group of three bytes the value begins. Each of the three
 * forms keeps only the characters that the value alone determines; those at the edges depend on its neighbours.
 */
function base64Forms(bytes: Uint8Array): string[] {
  const forms: string[] = []
  for (let shift = 0; shift < 3; shift++) {
    const padded = new Uint8Array(shift + bytes.length)
    padded.set(bytes, shift)
    const first = Math.ceil((8 * shift) / 6)
    const last = Math.floor((8 * padded.length) / 6)
    const form = base64(padded).slice(first, last)
    forms.push(form, form.replaceAll('+', '-').replaceAll('/', '_'))
  }
  return forms
}

function base64(bytes: Uint8Array): string {
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary)
}

function hexForms(bytes: Uint8Array): string[] {
  if (bytes.length > maxHexBytes) return []
  let hex = ''
  for (const byte of bytes) hex += byte.toString(16).padStart(2, '0')
  return [hex, hex.toUpperCase()]
}
