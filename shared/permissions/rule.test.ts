import { expect, test } from 'vitest'
import type { ToolRule } from '../runs/spec.ts'
import { readRule } from './rule.ts'

test.for<[ToolRule, string | null, string]>([
  ['Bash(rm:*', 'Bash', 'not closed'],
  ['Bash(rm:*)x', 'Bash', 'not closed'],
  ['Bash(rm:*), Write', 'Bash', 'not closed'],
  ['(rm:*)', '*', 'names no tool'],
  ['', '*', 'names no tool'],
  ['  ', '*', 'names no tool'],
  ['Bash)', 'Bash', 'no `)`'],
  ['Bash[rm]', 'Bash', 'no `[`'],
  ['Bash（rm:*）', 'Bash', 'no `（`'],
  ['"Bash(rm:*)"', '*', 'not closed'],
  ['`Bash`', '*', 'no ```'],
  ['Ba?h', 'Ba', 'no `?`'],
  ['Bash rm', 'Bash', 'more than one tool'],
  ['Bash,Write', 'Bash', 'more than one tool'],
  ['Bash(rm:*), Bash(mv:*)', 'Bash', 'several rules'],
  ['Bash(rm:*);mcp__github__*(x)', 'Bash', 'several rules'],
  ['Bash(rm:*))', 'Bash', 'more brackets'],
  ['WebFetch(domain:)', 'WebFetch', 'no name of a host'],
  ['WebFetch(domain:a b)', 'WebFetch', 'no name of a host'],
  [{ tool: 'Bash(rm:*)', pattern: '' }, 'Bash', 'no `(`'],
  [{ tool: ' ', pattern: 'x' }, '*', 'names no tool'],
])('%j cannot be read', ([rule, tool, problem]) => {
  expect(readRule(rule)).toEqual({ tool, pattern: null, problem: expect.stringContaining(problem) as string })
})

test.for<[ToolRule, string, string | null]>([
  ['Bash', 'Bash', null],
  ['*', '*', null],
  ['Bash(*)', 'Bash', null],
  [' Bash(rm:*) ', 'Bash', 'rm:*'],
  ['*(secrets/**)', '*', 'secrets/**'],
  ['mcp__my-server.v2__get/it', 'mcp__my-server.v2__get/it', null],
  ['Bash(python3 -c "print(f(1), g(2))")', 'Bash', 'python3 -c "print(f(1), g(2))"'],
  ['Bash(echo ":)")', 'Bash', 'echo ":)"'],
  ['Bash(domain: x)', 'Bash', 'domain: x'],
  ['WebFetch(domain:*.example.com)', 'WebFetch', 'domain:*.example.com'],
  ['WebFetch(domain:::1)', 'WebFetch', 'domain:::1'],
  [{ tool: 'Read', pattern: ' a' }, 'Read', ' a'],
])('%j is read', ([rule, tool, pattern]) => {
  expect(readRule(rule)).toEqual({ tool, pattern, problem: null })
})
