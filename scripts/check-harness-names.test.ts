import { expect, it } from 'vitest'
import { harnessNameProblems } from './check-harness-names.ts'

const names = ['claude', 'opencode', 'cursor', 'codex', 'command']
const countIn = (text: string, file = 'control-plane/run/wakes/start-run.ts') =>
  harnessNameProblems(file, text, names).length

it.each([
  "if (run.harness === 'command') return",
  "if (run.harness !== 'cursor') return",
  "if (name === 'claude') return",
  "const ownModelsOnly: readonly HarnessName[] = ['claude', 'codex']",
  "switch (name) { case 'codex': return }",
  "const spec = { harness: 'command' }",
  "const chosen = harness ?? 'claude'",
])('refuses %s', (text) => {
  expect(countIn(text)).toBe(1)
})

it('accepts the row, the folder of a harness, tests, and words that mean something else', () => {
  expect(countIn("if (name === 'claude') return", 'shared/runs/harnesses.ts')).toBe(0)
  expect(countIn("const adapter = { name: 'claude' }", 'device-manager/harness/claude/adapter.ts')).toBe(0)
  expect(countIn("if (name === 'claude') return", 'control-plane/run/wakes/start-run.test.ts')).toBe(0)
  expect(countIn("if (kind === 'command') return given.has('cursor')")).toBe(0)
  expect(countIn('if (harnesses[harness].runsOwnCommand) return')).toBe(0)
})
