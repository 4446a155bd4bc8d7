import { idFrom } from '../../../../shared/lib/ids.ts'
import { expect, test } from 'vitest'
import { agentRow } from '../../../../test/store/seed.ts'
import { pageRow } from '../../../../test/store/wiki-rows.ts'
import type { WorkspaceRow } from '../../workspaces/store.ts'
import { headingOf, headOf, pageSection, Sections } from './manifest.ts'

const workspace = {
  id: 'w',
  name: 'Acme',
  slug: 'acme',
  status: 'active',
  issuePrefix: 'ACM',
  description: null,
  defaultModel: null,
  contextMd: 'A ```` fence',
} as WorkspaceRow

const agent = (name: string, agentMd: string) =>
  agentRow(idFrom('w'), { name, agentMd, agentMdHash: `hash of ${name}` })
const sections = () => new Sections({ agents: new Map(), projects: new Map() })
const textOf = (...lines: readonly string[][]) => `${lines.flat().join('\n')}\n`

test('the text for an empty workspace says that it is empty', () => {
  const text = textOf(headOf(workspace, '2026-01-01T00:00:00.000Z'), headingOf('Agents', 0), headingOf('Tasks', 0))
  expect(text).toContain('\n\n## Agents (0)\n\nNone.\n\n## Tasks (0)\n\nNone.\n')
  expect(text).toContain('\n`````markdown\nA ```` fence\n`````\n')
  expect(text).not.toContain('Description')
})

test('names with backticks and line breaks stay on one line and add no markup', () => {
  const written = sections()
  const text = textOf(...['a `b`\n# c', '`', '\n'].map((name) => written.agent(agent(name, ''))))
  expect(text.match(/^### .*$/gm)).toEqual(['### ``a `b` # c``', '### `` ` ``', '### (empty)'])
})

test('instructions that are too long in total are replaced by their hash', () => {
  const long = 'x'.repeat(9_000_000)
  const written = sections()
  const text = textOf(written.agent(agent('first', long)), written.agent(agent('second', long)))
  expect(text.length).toBeLessThan(10_000_000)
  expect(text).toContain('`hash of second`')
  expect(text).not.toContain('hash of first')
})

test('texts of pages that are too long in total are left out', () => {
  const text = textOf(
    pageSection({ ...pageRow('w', { title: 'A' }), body: 'Words.' }),
    pageSection({ ...pageRow('w', { title: 'B', kind: 'csv' }), body: null }),
  )
  expect(text).toContain('```markdown\nWords.\n```')
  expect(text).toContain('Its text is left out for its length.')
})
