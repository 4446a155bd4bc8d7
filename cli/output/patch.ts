import { listAt, textAt, fieldAt } from '../replies/fields.ts'
import type { Paint, Tone } from './colours.ts'
import { plainText } from './terminal-text.ts'
import { cut, pad, widthOf } from './width.ts'

// A unified diff of git, in its parts and as people read it. Paths are those of the top level of the repository.

/** The part of one file; one that became a symlink, or is none any more, has two. */
interface Part {
  /** The path before and after, and none twice. */
  paths: readonly string[]
  text: string
}

/** Splits at line feeds alone: a carriage return, or another end of a line, is content. */
function partsOf(diff: string): Part[] {
  return diff.split(/(?<=\n)(?=diff --git )/).map((text) => ({ text, paths: pathsIn(text) }))
}

function pathsIn(part: string): string[] {
  const named = new Set<string>()
  let first = ''
  for (const line of linesOf(part)) {
    if (first === '') first = line.slice('diff --git '.length)
    const [, name] = /^(?:(?:rename|copy) (?:from|to) (.*))$/s.exec(line) ?? []
    const [, prefixed] = /^(?:---|\+\+\+) (?!\/dev\/null\t?$)(.*?)\t?$/s.exec(line) ?? []
    if (name !== undefined) named.add(unquoted(name))
    else if (prefixed !== undefined) named.add(withoutPrefix(unquoted(prefixed)))
    // What follows is content, in which a line may begin with dashes.
    if (/^(?:@@ |GIT binary patch|Binary files )/.test(line)) break
  }
  // Only the mode changed, the file is empty, or binary: both names are one and the same.
  if (named.size === 0) named.add(withoutPrefix(unquoted(firstOfTwo(first))))
  return [...named]
}

function* linesOf(text: string): Generator<string> {
  for (let at = 0; at < text.length;) {
    const end = text.indexOf('\n', at)
    yield text.slice(at, end === -1 ? undefined : end)
    if (end === -1) return
    at = end + 1
  }
}

/** `a/x b/x`, of which `x` may hold spaces; quoted where it holds what git does not print. */
function firstOfTwo(names: string): string {
  const [quoted] = /^"(?:[^"\\]|\\.)*"/s.exec(names) ?? []
  return quoted ?? names.slice(0, (names.length - 1) / 2)
}

const withoutPrefix = (name: string): string => name.replace(/^("?)[ab]\//, '$1')

const escapes: Readonly<Record<string, string>> = { a: '\u0007', b: '\b', t: '\t', n: '\n', v: '\v', f: '\f', r: '\r' }

/** A path that is no UTF-8 stays quoted, as lists of changed files have it. */
function unquoted(name: string): string {
  if (!/^".*"$/s.test(name)) return name
  const bytes = name.slice(1, -1).replaceAll(/\\([0-7]{3}|.)/gs, (_, escape: string) => {
    if (escape.length === 3) return String.fromCharCode(Number.parseInt(escape, 8))
    return escapes[escape] ?? escape
  })
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(bytes, 'latin1'))
  } catch {
    return name
  }
}

/** Returns the change-set with nothing but what is in these files and folders. A renamed file is in both of its places. */
export function narrowed(changeSet: unknown, within: readonly string[]): Record<string, unknown> {
  const whole = typeof changeSet === 'object' && changeSet !== null ? (changeSet as Record<string, unknown>) : {}
  const places = within.map((place) => place.replace(/^(?:\.?\/)+/, '').replace(/\/+$/, ''))
  if (places.length === 0 || places.some((place) => place === '' || place === '.')) return whole
  const isWithin = (path: string | null) =>
    path !== null && places.some((place) => path === place || path.startsWith(`${place}/`))
  const files = listAt(whole, 'files').filter(
    (file) => isWithin(textAt(file, 'path')) || isWithin(textAt(file, 'oldPath')),
  )
  const sum = (count: 'additions' | 'deletions') =>
    files.reduce((total: number, file) => total + countAt(file, count), 0)
  return {
    ...whole,
    files,
    additions: sum('additions'),
    deletions: sum('deletions'),
    diff: partsOf(textAt(whole, 'diff') ?? '')
      .filter(({ paths }) => paths.some(isWithin))
      .map(({ text }) => text)
      .join(''),
  }
}

function countAt(file: unknown, name: string): number {
  const count = fieldAt(file, name)
  return typeof count === 'number' ? count : 0
}

/** Adds the colours of git, and nothing else. */
export function paintedPatch(diff: string, paint: Paint): string {
  let isContent = false
  return diff
    .split('\n')
    .map((line) => {
      if (line.startsWith('diff --git ')) isContent = false
      if (line.startsWith('@@ ')) isContent = true
      return paint(line, toneOf(line, isContent))
    })
    .join('\n')
}

const tones: Readonly<Record<string, Tone>> = { '+': 'good', '-': 'bad', '@': 'busy', '\\': 'dim' }
const toneOf = (line: string, isContent: boolean): Tone | null => (isContent ? (tones[line[0] ?? ''] ?? null) : 'bold')

/**
 * Makes visible what a terminal would not show, as git and less write it: a file could hide a line of itself from whoever reads the
 * diff, with colours or with the direction of writing.
 */
export const visible = (text: string): string =>
  text.replaceAll(
    // oxlint-disable-next-line no-control-regex
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu,
    (char) => {
      const code = char.charCodeAt(0)
      return code < 0x20
        ? `^${String.fromCharCode(code + 0x40)}`
        : `<U+${code.toString(16).toUpperCase().padStart(4, '0')}>`
    },
  )

/** The changed paths, a line each; quoted where git quotes them, but for letters that are not ASCII. */
export const namesOf = (changeSet: unknown): string[] =>
  listAt(changeSet, 'files').map((file) => nameOf(textAt(file, 'path') ?? ''))

/** What is no UTF-8 is quoted already. */
const nameOf = (path: string): string =>
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f"\\]/.test(path) && !/^".*\\[0-7]{3}.*"$/s.test(path) ? JSON.stringify(path) : path

/** A line for each file, and their sum, as `git diff --stat` prints them. */
export function statOf(changeSet: unknown, { width, paint }: { width: number; paint: Paint }): string[] {
  const files = listAt(changeSet, 'files')
  const rows = files.map((file) => ({ file, name: statName(file), count: statCount(file) }))
  const counts = Math.max(0, ...rows.map(({ count }) => count.length))
  const names = Math.min(Math.max(0, ...rows.map(({ name }) => widthOf(name))), Math.max(20, width - counts - 24))
  const most = Math.max(1, ...files.map((file) => countAt(file, 'additions') + countAt(file, 'deletions')))
  const room = Math.max(10, width - names - counts - 5)
  const marks = (file: unknown, count: 'additions' | 'deletions', mark: string) => {
    const lines = countAt(file, count)
    return mark.repeat(most <= room ? lines : Math.ceil((lines * room) / most))
  }
  const lines = rows.map(({ file, name, count }) => {
    const graph = paint(marks(file, 'additions', '+'), 'good') + paint(marks(file, 'deletions', '-'), 'bad')
    return ` ${pad(cut(name, names), names)} | ${count.padStart(counts)} ${graph}`.trimEnd()
  })
  const [additions, deletions] = [countAt(changeSet, 'additions'), countAt(changeSet, 'deletions')]
  const sum = [
    ` ${files.length} ${files.length === 1 ? 'file' : 'files'} changed`,
    ...(additions > 0 ? [`${additions} ${additions === 1 ? 'insertion' : 'insertions'}(+)`] : []),
    ...(deletions > 0 ? [`${deletions} ${deletions === 1 ? 'deletion' : 'deletions'}(-)`] : []),
  ]
  return files.length === 0 ? [] : [...lines, sum.join(', ')]
}

function statName(file: unknown): string {
  const [path, oldPath] = [textAt(file, 'path') ?? '', textAt(file, 'oldPath')]
  return plainText(
    visible(oldPath === null || oldPath === path ? nameOf(path) : `${nameOf(oldPath)} => ${nameOf(path)}`),
  )
}

const statCount = (file: unknown): string =>
  fieldAt(file, 'binary') === true ? 'Bin' : String(countAt(file, 'additions') + countAt(file, 'deletions'))

/** The files whose patch is not in the diff, since it is too large or was not read. */
export const leftOutOf = (changeSet: unknown): string[] =>
  listAt(changeSet, 'files')
    .filter((file) => fieldAt(file, 'patchOmitted') === true)
    .map((file) => nameOf(textAt(file, 'path') ?? ''))
