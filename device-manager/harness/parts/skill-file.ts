import { runSkillLimits } from '../../../shared/runs/skills.ts'

/** A SKILL.md in the open Agent Skills format, as far as svc reads it (pure). */
export interface SkillFile {
  name: string
  description: string
  /** What follows the front matter. */
  body: string
}

/** Reads the file, or says in words for people what is wrong with it. Other keys of the front matter are ignored. */
export function readSkillFile(text: string): SkillFile | { flaw: string } {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/)
  if (!isFence(lines[0] ?? '')) return { flaw: 'it does not begin with front matter (---)' }
  const end = lines.findIndex((line, at) => at > 0 && isFence(line))
  if (end < 0) return { flaw: 'its front matter has no end (---)' }
  const head = lines.slice(1, end)
  const [name, description] = [textOf(head, 'name'), textOf(head, 'description')]
  if (name === null || name === '') return { flaw: 'its front matter has no name' }
  if (name.length > runSkillLimits.nameChars || !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name))
    return {
      flaw: `its name is not made of up to ${runSkillLimits.nameChars} lower-case letters, digits and single hyphens`,
    }
  if (description === null || description === '') return { flaw: 'its front matter has no description' }
  if (description.length > runSkillLimits.descriptionChars)
    return { flaw: `its description is longer than ${runSkillLimits.descriptionChars} characters` }
  return { name, description, body: lines.slice(end + 1).join('\n') }
}

/** What follows the front matter; all of it where there is none. */
export function belowFrontMatter(text: string): string {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/)
  const end = isFence(lines[0] ?? '') ? lines.findIndex((line, at) => at > 0 && isFence(line)) : -1
  return lines.slice(end + 1).join('\n')
}

/**
 * A SKILL.md with this name, description and text alone: agent programs would take hooks and allowed tools from the front matter that
 * came, and run those hooks without asking.
 */
export const skillFileText = ({ name, description, body }: SkillFile): string =>
  // Strings of JSON are strings of YAML.
  ['---', `name: ${JSON.stringify(name)}`, `description: ${JSON.stringify(description)}`, '---', body].join('\n')

const isFence = (line: string): boolean => /^---\s*$/.test(line)

/**
 * The text of a key at the top of the front matter: plain or in quotes, on one line or on several, or a block (`|`, `>`). null:
 * it is not there, or no text. A plain text may hold what YAML would not take, such as a colon: many files have that.
 */
function textOf(head: readonly string[], key: string): string | null {
  const at = head.findIndex((line) => line.startsWith(`${key}:`))
  if (at < 0) return null
  const first = head[at]!.slice(key.length + 1)
  if (first !== '' && !/^\s/.test(first)) return null
  const next = head.findIndex((line, place) => place > at && line !== '' && !/^\s/.test(line))
  const rest = head.slice(at + 1, next < 0 ? head.length : next)
  const start = first.trim()
  if (/^[|>][+-]?\d?[+-]?(\s+#.*)?$/.test(start)) return blockOf(rest, start.startsWith('>'))
  const whole = [start, ...rest.map((line) => line.trim())].join(' ').trim()
  if (whole.startsWith('"') || whole.startsWith("'")) return quotedOf(whole)
  const plain = whole.replace(/(^|\s)#.*$/, '').trim()
  return /^[[{&*!%@`]/.test(plain) ? null : plain
}

function blockOf(lines: readonly string[], isFolded: boolean): string {
  const indent = Math.min(...lines.filter((line) => line.trim() !== '').map((line) => /^\s*/.exec(line)![0].length))
  const texts = lines.map((line) => line.slice(Number.isFinite(indent) ? indent : 0).trimEnd())
  if (!isFolded) return texts.join('\n').trim()
  return texts
    .map((line) => (line === '' ? '\n' : line))
    .join(' ')
    .replaceAll(/ ?\n ?/g, '\n')
    .trim()
}

function quotedOf(text: string): string | null {
  if (text.startsWith("'")) {
    const [, inner] = /^'((?:[^']|'')*)'\s*(?:#.*)?$/.exec(text) ?? []
    return inner === undefined ? null : inner.replaceAll("''", "'").trim()
  }
  const [, inner] = /^("(?:[^"\\]|\\.)*")\s*(?:#.*)?$/.exec(text) ?? []
  try {
    return inner === undefined ? null : String(JSON.parse(inner)).trim()
  } catch {
    return null
  }
}
