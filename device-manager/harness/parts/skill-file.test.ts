import { expect, it } from 'vitest'
import { readSkillFile } from './skill-file.ts'

const file = (...head: string[]) => ['---', ...head, '---', '# Knots', 'Make a loop.', ''].join('\n')

it.each<[string, string[], string]>([
  ['plain', ['name: knots', 'description: Ties a bowline: fast. # said Ada'], 'Ties a bowline: fast.'],
  ['in quotes', ['name: "knots"', 'description: "Ties \\"a\\" bowline"'], 'Ties "a" bowline'],
  ['in single quotes', ["name: 'knots'", "description: 'Ada''s # bowline'"], "Ada's # bowline"],
  ['on several lines', ['description: Ties', '  a bowline.', 'name: knots'], 'Ties a bowline.'],
  ['folded', ['name: knots', 'description: >-', '  Ties', '  a bowline.', '', '  Twice.'], 'Ties a bowline.\nTwice.'],
  ['literal', ['name: knots', 'description: |', '  Ties', '    a bowline.'], 'Ties\n  a bowline.'],
  ['among other keys', ['license: MIT', 'name: knots', 'metadata:', '  name: x', 'description: Ties.'], 'Ties.'],
])('reads a description that is written %s', (_, head, description) => {
  expect(readSkillFile(file(...head))).toEqual({ name: 'knots', description, body: '# Knots\nMake a loop.\n' })
})

it('reads lines that end as on Windows, and a mark of the byte order', () => {
  const text = `\uFEFF${file('name: knots', 'description: Ties.').replaceAll('\n', '\r\n')}`
  expect(readSkillFile(text)).toMatchObject({ name: 'knots', description: 'Ties.' })
})

it.each<[RegExp, string]>([
  [/does not begin with front matter/, 'name: knots\n'],
  [/does not begin with front matter/, ''],
  [/has no end/, '---\nname: knots\ndescription: Ties.\n'],
  [/has no name/, file('description: Ties.')],
  [/has no name/, file('name: [knots]', 'description: Ties.')],
  [/has no name/, file('name:knots', 'description: Ties.')],
  [/lower-case letters/, file('name: Knots', 'description: Ties.')],
  [/lower-case letters/, file('name: ../knots', 'description: Ties.')],
  [/lower-case letters/, file(`name: ${'a'.repeat(65)}`, 'description: Ties.')],
  [/has no description/, file('name: knots')],
  [/has no description/, file('name: knots', 'description: >')],
  [/has no description/, file('name: knots', 'description: "not ended')],
  [/has no description/, file('name: knots', 'description: "\\q"')],
  [/longer than 1024/, file('name: knots', `description: ${'a'.repeat(1025)}`)],
])('says %s', (flaw, text) => {
  expect(readSkillFile(text)).toEqual({ flaw: expect.stringMatching(flaw) })
})
