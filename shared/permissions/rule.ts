import type { ToolRule } from '../runs/spec.ts'
import { namesNoHost } from './patterns/url-rules.ts'

/** A rule as the engine takes it. */
export interface ReadRule {
  /** The name of a tool, in which `*` stands for any characters. */
  tool: string
  /** The pattern of the input; null: the rule is for the tool whatever its input. */
  pattern: string | null
  /** A sentence about why the rule cannot be read; null when it can. */
  problem: string | null
}

/** Returns the text by which people write the rule. */
export function ruleText(rule: ToolRule): string {
  return typeof rule === 'string' ? rule : `${rule.tool}(${rule.pattern})`
}

/**
 * Reads a rule. One that cannot be read is about all calls of the tool that its text begins with, or about every call where no
 * tool can be told from it, so that a list that forbids loses nothing by it. The list that allows ignores it.
 */
export function readRule(rule: ToolRule): ReadRule {
  const { tool, pattern, problem } = typeof rule === 'string' ? fromText(rule.trim()) : fromObject(rule)
  if (problem === null) return { tool, pattern: anything(pattern), problem }
  const [named = '*'] = /^[\p{L}\p{N}_]+/u.exec(tool) ?? []
  return { tool: named, pattern: null, problem }
}

interface Split {
  tool: string
  pattern: string
  problem: string | null
}

function fromText(text: string): Split {
  const open = text.indexOf('(')
  const tool = open < 0 ? text : text.slice(0, open)
  if (open < 0) return { tool, pattern: '', problem: problemOfName(tool) }
  if (!text.endsWith(')')) return { tool, pattern: '', problem: 'Its bracket is not closed; a rule ends with `)`.' }
  const pattern = text.slice(open + 1, -1).trim()
  return {
    tool,
    pattern,
    problem: problemOfName(tool) ?? problemOfBrackets(pattern) ?? problemOfPattern(tool, pattern),
  }
}

function fromObject({ tool, pattern }: { tool: string; pattern: string }): Split {
  const name = tool.trim()
  return { tool: name, pattern, problem: problemOfName(name) ?? problemOfPattern(name, pattern) }
}

function problemOfName(tool: string): string | null {
  if (tool === '') return 'It names no tool.'
  const odd = /[^\p{L}\p{N}_*.:/@$-]/u.exec(tool)?.[0]
  if (odd === undefined) return null
  if (/[\s,;|]/.test(odd)) return 'It names more than one tool; each rule names one.'
  return `The name of a tool has no \`${odd}\`.`
}

/** Finds what is wrong with the brackets of a rule in one text, where its own stand around the pattern. */
function problemOfBrackets(pattern: string): string | null {
  if (/:\*\)+$/.test(pattern)) return 'It has more brackets at its end than at its beginning.'
  return beginsAnother(pattern) ? 'It looks like several rules; each is given by itself.' : null
}

/** Says whether the rule's bracket is closed before another rule begins, as in `Bash(a), Write(b)`. */
function beginsAnother(pattern: string): boolean {
  let depth = 0
  for (let at = 0; at < pattern.length; at++) {
    if (pattern[at] === '(') depth++
    else if (pattern[at] === ')' && --depth < 0) return /^\)[\s,;]+(?:[A-Z]\w*|mcp__[\w*-]+)\(/.test(pattern.slice(at))
  }
  return false
}

function problemOfPattern(tool: string, pattern: string): string | null {
  if (tool.toLowerCase() === 'bash' || !namesNoHost(pattern)) return null
  return 'Behind `domain:` stands no name of a host.'
}

function anything(pattern: string): string | null {
  return pattern === '' || pattern === '*' || pattern === '**' || pattern === ':*' ? null : pattern
}
