import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { runSkillLimits, type OfferedSkill } from '../../../shared/runs/skills.ts'
import { keepBundleIn } from '../../../test/kit/kept-bundle.ts'
import type { SkillsRead } from './skills.ts'
import { addSkills, leftOutEvents } from './workspace-skills.ts'

let root = ''
beforeEach(() => (root = mkdtempSync(join(tmpdir(), 'svc-copies-'))))
afterEach(() => rmSync(root, { recursive: true, force: true }))

const none: SkillsRead = { given: [], told: { folders: [], digest: 'of folders' }, leftOut: [] }
const ofFolder = (...names: string[]): SkillsRead => ({
  ...none,
  given: names.map((name) => ({ name, description: 'x', body: '', folder: '/skills', hasFiles: false })),
})
const place = (missed: { bundleHash: string; reason: 'not_materialized' }[] = []) => ({
  brought: { bundles: join(root, 'skills'), missed },
  folder: join(root, 'run', 'skills'),
})

/** Puts a bundle where the daemon keeps them. */
const keep = (slug: string, contents: Record<string, string>, description = 'Of the row.'): OfferedSkill => ({
  slug,
  description,
  ...keepBundleIn(join(root, 'skills'), contents),
  totalBytes: 1,
})
const add = (read: SkillsRead, skills: OfferedSkill[], where: ReturnType<typeof place> | null = place()) =>
  addSkills(read, { skills, leftOut: [] }, where)
const reasons = ({ told }: SkillsRead) => told.workspace?.leftOut.map(({ slug, reason }) => `${slug} ${reason}`)

test('a run has a copy for its user alone, with its name, its description and its text in front', async () => {
  const text = ['---', 'name: else', 'hooks:', '  Stop: [{hooks: [{type: command, command: x}]}]', '---', 'Body.'].join(
    '\n',
  )
  const nested = '---\nname: hidden\ndescription: Hidden.\n---\nNested.'
  const skill = keep(
    'tides',
    { 'SKILL.md': text, 'run.sh': 'echo', 'sub/SKILL.md': nested, 'agents/openai.yaml': 'dependencies: x' },
    'Says: "high"\nor low',
  )
  const { given, told } = await add(none, [skill])
  const folder = join(root, 'run', 'skills', 'tides')
  expect(given).toEqual([{ name: 'tides', description: skill.description, body: 'Body.', folder, hasFiles: true }])
  expect(told.workspace).toEqual({ skills: [{ name: 'tides', version: skill.bundleHash.slice(0, 12) }], leftOut: [] })
  const read = (path: string) => readFileSync(join(folder, path), 'utf8')
  expect(read('SKILL.md')).toBe('---\nname: "tides"\ndescription: "Says: \\"high\\"\\nor low"\n---\nBody.')
  expect(read('sub/SKILL.md')).toBe('Nested.')
  expect(existsSync(join(folder, 'agents/openai.yaml'))).toBe(false)
  const modes = ['.', 'run.sh', 'SKILL.md', 'sub'].map((path) => statSync(join(folder, path)).mode & 0o777)
  expect(modes).toEqual([0o700, 0o700, 0o600, 0o700])
  // A run changes its copy and nobody else's.
  writeFileSync(join(folder, 'run.sh'), 'rm')
  await add(none, [skill])
  expect(read('run.sh')).toBe('echo')
})

test('a text without front matter is all of it the text, and a broken one is no reason to go without', async () => {
  const skills = [
    keep('plain', { 'SKILL.md': 'Only text.\n---\nMore.' }),
    keep('open', { 'SKILL.md': '---\nname: x\n' }),
  ]
  const { given } = await add(none, skills)
  expect(given.map(({ body }) => body)).toEqual(['Only text.\n---\nMore.', '---\nname: x\n'])
})

test('the digest is of what the run has: of names, files and descriptions, not of places or of what is left out', async () => {
  const a = keep('a', { 'SKILL.md': 'A.' })
  const digest = async (skills: OfferedSkill[], missed: string[] = [], read = none) => {
    const of = missed.map((bundleHash) => ({ bundleHash, reason: 'not_materialized' as const }))
    return (await add(read, skills, place(of))).told.digest
  }
  const first = await digest([a])
  expect(await digest([a])).toBe(first)
  expect(await digest([a, keep('b', { 'SKILL.md': 'B.' })], [keep('b', { 'SKILL.md': 'B.' }).bundleHash])).toBe(first)
  expect(await digest([a], [a.bundleHash])).toBe('of folders')
  const others = [keep('b', { 'SKILL.md': 'A.' }), keep('a', { 'SKILL.md': 'B.' }), { ...a, description: 'New.' }]
  const digests = [first, ...(await Promise.all(others.map((other) => digest([other]))))]
  const more = await digest([a], [], { ...none, told: { ...none.told, digest: 'of others' } })
  expect(new Set([...digests, more]).size).toBe(5)
})

test('what cannot be had is left out, said once for each reason, and brought anew where it was changed', async () => {
  const [gone, changed, taken, missing] = ['gone', 'changed', 'taken', 'missing'].map((slug) =>
    keep(slug, { 'SKILL.md': slug }),
  )
  rmSync(join(root, 'skills', gone!.bundleHash), { recursive: true })
  writeFileSync(join(root, 'skills', changed!.bundleHash, 'files/SKILL.md'), 'Changed')
  const where = place([{ bundleHash: missing!.bundleHash, reason: 'not_materialized' }])
  const read = await addSkills(
    ofFolder('taken'),
    { skills: [gone!, changed!, taken!, missing!], leftOut: [{ slug: 'x', reason: 'of a newer server' }] },
    where,
  )
  expect(read.given.map(({ name, folder }) => [name, folder])).toEqual([['taken', '/skills']])
  expect(reasons(read)).toEqual([
    'x of a newer server',
    'gone not_materialized',
    'changed bundle_unreadable',
    'taken name_taken',
    'missing not_materialized',
  ])
  expect(existsSync(join(root, 'skills', changed!.bundleHash))).toBe(false)
  expect(existsSync(join(where.folder, 'changed'))).toBe(false)
  expect(leftOutEvents(read).map(({ data }) => data)).toMatchObject([
    { message: 'The run goes without the skill x of the workspace: of a newer server.' },
    { message: expect.stringContaining('the skills gone, missing of the workspace: its files could not be brought') },
    { message: expect.stringContaining('the skill changed of the workspace') },
    { message: expect.stringContaining('the skill taken of the workspace: the run has another skill of this name') },
  ])
})

test('with those of folders there are no more than a run takes', async () => {
  const names = Array.from({ length: runSkillLimits.skills - 1 }, (_, at) => `f${at}`)
  const skills = [keep('f0', { 'SKILL.md': '0' }), keep('a', { 'SKILL.md': 'A.' }), keep('b', { 'SKILL.md': 'B.' })]
  const read = await add(ofFolder(...names), skills)
  expect(read.given).toHaveLength(runSkillLimits.skills)
  expect(reasons(read)).toEqual(['f0 name_taken', 'b too_many'])
  expect(reasons(await add(none, skills, null))).toEqual(['f0', 'a', 'b'].map((slug) => `${slug} not_materialized`))
})
