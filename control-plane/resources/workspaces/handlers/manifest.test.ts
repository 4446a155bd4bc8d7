import { expect, test } from 'vitest'
import { agentRow } from '../../../../test/store/seed.ts'
import { pageRow } from '../../../../test/store/wiki-rows.ts'
import { manifestOf, type ManifestFacts } from './manifest.ts'

const workspace = {
  id: 'w',
  name: 'Acme',
  slug: 'acme',
  status: 'active',
  issuePrefix: 'ACM',
  description: null,
  defaultModel: null,
  contextMd: 'A ```` fence',
} as ManifestFacts['workspace']

const agent = (name: string, agentMd: string) => agentRow('w', { name, agentMd, agentMdHash: `hash of ${name}` })

test('the text for an empty workspace says that it is empty', () => {
  const text = manifestOf({
    workspace,
    exportedAt: '2026-01-01T00:00:00.000Z',
    agents: [],
    projects: [],
    tasks: [],
    workflows: [],
    files: [],
    pages: [],
    learnings: [],
  })
  expect(text).toContain('## Agents (0)\n\nNone.')
  expect(text).toContain('## Projects (0)\n\nNone.')
  expect(text).toContain('## Tasks (0)\n\nNone.')
  expect(text).toContain('\n`````markdown\nA ```` fence\n`````\n')
  expect(text).not.toContain('Description')
})

test('names with backticks and line breaks stay on one line and add no markup', () => {
  const agents = [agent('a `b`\n# c', ''), agent('`', ''), agent('\n', '')]
  const text = manifestOf({
    workspace,
    exportedAt: 'x',
    agents,
    projects: [],
    tasks: [],
    workflows: [],
    files: [],
    pages: [],
    learnings: [],
  })
  expect(text.match(/^### .*$/gm)).toEqual(['### ``a `b` # c``', '### `` ` ``', '### (empty)'])
})

test('instructions that are too long in total are replaced by their hash', () => {
  const long = 'x'.repeat(9_000_000)
  const text = manifestOf({
    workspace,
    exportedAt: 'x',
    agents: [agent('first', long), agent('second', long)],
    projects: [],
    tasks: [],
    workflows: [],
    files: [],
    pages: [],
    learnings: [],
  })
  expect(text.length).toBeLessThan(10_000_000)
  expect(text).toContain('`hash of second`')
  expect(text).not.toContain('hash of first')
})

test('texts of pages that are too long in total are left out', () => {
  const pages = [
    { ...pageRow('w', { title: 'A' }), body: 'Words.' },
    { ...pageRow('w', { title: 'B', kind: 'csv' }), body: null },
  ]
  const empty = { agents: [], projects: [], tasks: [], workflows: [], files: [], learnings: [] }
  const text = manifestOf({ workspace, exportedAt: 'x', ...empty, pages })
  expect(text).toContain('```markdown\nWords.\n```')
  expect(text).toContain('Its text is left out for its length.')
})
