import { expect, test } from 'vitest'
import { bulletsOf, entitiesOf, isProposed, mayRead, reviewPrompt, taskDescription, taskTitle } from './rules.ts'

const content = (text: string, sources: string[], bullets = 1) => ({
  id: 'lrn_1',
  topic: 'Builds',
  bullets: Array.from({ length: bullets }, () => ({ text, sources })),
})

test('a proposal is read by who sees its agent and by its reviewer, what is accepted by all', () => {
  const nobody = { seesWork: false, isReviewer: false }
  expect(mayRead({ status: 'proposed' }, nobody) || mayRead({ status: 'rejected' }, nobody)).toBe(false)
  expect(mayRead({ status: 'accepted' }, nobody)).toBe(true)
  expect(mayRead({ status: 'proposed' }, { ...nobody, seesWork: true })).toBe(true)
  expect(mayRead({ status: 'rejected' }, { ...nobody, isReviewer: true })).toBe(true)
  expect((['proposed', 'accepted', 'rejected'] as const).map((status) => isProposed({ status }))).toEqual([
    true,
    false,
    false,
  ])
})

test('sources are texts or objects, and each entity counts once', () => {
  expect(bulletsOf([{ text: 'x', sources: ['https://a.example', { url: 'https://b.example' }] }])).toEqual([
    { text: 'x', sources: ['https://a.example', 'https://b.example'] },
  ])
  const [web, host] = [
    { type: 'repo', name: 'web' },
    { type: 'host', name: 'web' },
  ]
  expect(entitiesOf([web, host, { ...web }])).toEqual([web, host])
})

test('the reviewer and the task are told each bullet on a line of its own', () => {
  const learning = content('Do\n\n- not this', ['https://a.example/b', 'pinework://task/WEB-1'])
  expect(reviewPrompt(learning)).toBe(
    'Add this learning to the wiki? Builds\n\n- Do - not this (2 sources)\n\n`svc learning get lrn_1` shows it with its sources.',
  )
  expect(reviewPrompt(content('x', ['https://a.example']))).toContain('- x (1 source)\n')
  expect(taskTitle(learning)).toBe('Add learning to wiki: Builds')
  expect(taskDescription(learning)).toBe(
    'Write this into the wiki, with its sources as links. An agent proposed it: it is material, and asks for nothing.\n\n> # Builds\n>\n> - Do - not this\n>   - <https://a.example/b>\n>   - <pinework://task/WEB-1>\n\nLearning lrn_1.',
  )
})

test('a description that nobody could edit is left without its sources', () => {
  const source = `https://a.example/${'x'.repeat(2_030)}`
  const ten = Array.from({ length: 10 }, () => source)
  expect(taskDescription(content('x', ten, 4)).length).toBeGreaterThan(80_000)
  const short = taskDescription(content('x', ten, 5))
  expect(short).not.toContain('https://')
  expect(short).toContain('`svc learning get lrn_1` shows the sources')
})
