import { isAlias, isScalar, parseDocument, visit } from 'yaml'
import { skillLimits } from '../../../shared/api/skill-fields.ts'
import type { FrontMatter } from './bundle-store.ts'

/**
 * Reads the YAML between the lines `---` at the beginning of SKILL.md: plain values only. Done in a worker, since how long
 * YAML takes is for its writer to decide.
 */
export const frontMatterLimits = { bytes: 16 * 1024, allowedTools: 100, toolLength: 200 } as const

export type FrontMatterReading = { matter: FrontMatter; flaw: null } | { matter: null; flaw: string }

const none: FrontMatter = { name: null, description: null, allowedTools: [] }
const flawed = (flaw: string): FrontMatterReading => ({ matter: null, flaw })

/** A SKILL.md may have none: the skill then says itself what it is for. */
export function readFrontMatter(text: string): FrontMatterReading {
  const yaml = frontMatterOf(text)
  if (yaml === null) return { matter: none, flaw: null }
  if (yaml === undefined) return flawed('the front matter has no line --- at its end')
  if (yaml.length > frontMatterLimits.bytes) return flawed(`the front matter is longer than ${frontMatterLimits.bytes}`)
  try {
    return readYaml(yaml)
  } catch {
    return flawed('the front matter is not YAML')
  }
}

/** null: there is none; undefined: it has no end. */
export function frontMatterOf(text: string): string | null | undefined {
  const begin = /^\uFEFF?---[ \t]*\r?\n/.exec(text)
  if (begin === null) return null
  const rest = text.slice(begin[0].length)
  const end = /^---[ \t]*(?:\r?\n|$)/m.exec(rest)
  return end === null ? undefined : rest.slice(0, end.index)
}

function readYaml(yaml: string): FrontMatterReading {
  const document = parseDocument(yaml, { version: '1.2', schema: 'core', uniqueKeys: true, prettyErrors: false })
  if (document.errors.length > 0 || document.warnings.length > 0) return flawed('the front matter is not YAML')
  let flaw: string | null = null
  visit(document, {
    Node: (_, node) => {
      if (isAlias(node) || ('anchor' in node && node.anchor !== undefined)) flaw = 'has anchors or aliases'
      else if ('tag' in node && node.tag !== undefined) flaw = 'has tags'
      return flaw === null ? undefined : visit.BREAK
    },
    Pair: (_, { key }) => {
      if (!isScalar(key) || typeof key.value !== 'string') flaw = 'has keys that are no text'
      return flaw === null ? undefined : visit.BREAK
    },
  })
  if (flaw !== null) return flawed(`the front matter ${String(flaw)}`)
  const value: unknown = document.toJS({ maxAliasCount: 0 })
  if (value === null || value === undefined) return { matter: none, flaw: null }
  if (typeof value !== 'object' || Array.isArray(value)) return flawed('the front matter is no list of keys')
  return readKeys(new Map(Object.entries(value)))
}

const names = /^[a-z0-9]+(-[a-z0-9]+)*$/

function readKeys(keys: ReadonlyMap<string, unknown>): FrontMatterReading {
  const name = keys.get('name') ?? null
  if (name !== null && (typeof name !== 'string' || name.length > skillLimits.slug || !names.test(name)))
    return flawed('`name` must have 1 to 64 characters of a-z, 0-9 and single - between them')
  const description = keys.get('description') ?? null
  if (description !== null && (typeof description !== 'string' || description.length > skillLimits.description))
    return flawed(`\`description\` must be text of at most ${skillLimits.description} characters`)
  const allowedTools = toolsOf(keys.get('allowed-tools') ?? [])
  if (allowedTools === null) return flawed('`allowed-tools` must be a text or a list of texts')
  return { matter: { name, description: description?.trim() || null, allowedTools }, flaw: null }
}

/** A text names them with blanks or commas between them; a rule may have blanks in brackets: `Bash(git add *)`. */
function toolsOf(sent: unknown): string[] | null {
  const list: unknown[] | null = typeof sent === 'string' ? splitTools(sent) : Array.isArray(sent) ? sent : null
  if (list === null || list.length > frontMatterLimits.allowedTools) return null
  const isTool = (tool: unknown): tool is string =>
    typeof tool === 'string' && tool.trim() !== '' && tool.length <= frontMatterLimits.toolLength
  return list.every(isTool) ? list.map((tool) => tool.trim()) : null
}

function splitTools(text: string): string[] {
  const tools: string[] = []
  let depth = 0
  let tool = ''
  for (const character of text) {
    if (character === '(') depth++
    if (character === ')') depth = Math.max(0, depth - 1)
    const isBetween = depth === 0 && /[\s,]/.test(character)
    if (!isBetween) tool += character
    else if (tool !== '') {
      tools.push(tool)
      tool = ''
    }
  }
  return tool === '' ? tools : [...tools, tool]
}
