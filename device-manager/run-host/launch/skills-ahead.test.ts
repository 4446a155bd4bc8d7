import { createHash } from 'node:crypto'
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { bundleHashText } from '../../../shared/lib/bundle-hash.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import type { OfferedSkill } from '../../../shared/runs/skills.ts'
import { aheadOf } from '../wire/record.ts'
import { SkillsAhead } from './skills-ahead.ts'

// Copies of skills that are made before there is a run: they are taken whole as they were made, or not at all.

let root = ''
beforeEach(() => (root = mkdtempSync(join(tmpdir(), 'svc-ahead-'))))
afterEach(() => rmSync(root, { recursive: true, force: true }))

const own = () => join(root, 'own')
const bundles = () => join(root, 'bundles')
const made = (path: string) => join(aheadOf(own()), '0', path)

/** Puts a bundle where the daemon keeps them. */
function keep(slug: string, files: Record<string, string>): OfferedSkill {
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
  const list = Object.keys(files)
    .toSorted()
    .map((path) => ({ path, sizeBytes: files[path]!.length, sha256: sha256(files[path]!), executable: false }))
  const bundleHash = sha256(bundleHashText(list))
  for (const [path, content] of Object.entries(files)) {
    const file = join(bundles(), bundleHash, 'files', path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content)
  }
  writeFileSync(join(bundles(), bundleHash, 'list.json'), JSON.stringify({ files: list }))
  return { slug, description: 'Says.', bundleHash, fileCount: list.length, totalBytes: 10 }
}

const skill = () => keep('tides', { 'SKILL.md': 'Body.', 'more/one.md': 'One.' })
const claude = 'claude' as const

async function standingBy(skills: OfferedSkill[]): Promise<SkillsAhead> {
  const ahead = new SkillsAhead(own(), realWorld)
  await ahead.prepare(bundles(), [{ harness: claude, skills }])
  return ahead
}

test('what was made is moved into the folder of the run, with what the program is given beside', async () => {
  const skills = [skill()]
  const ahead = await standingBy(skills)
  expect(existsSync(own())).toBe(false)
  const folder = join(own(), 'skills/tides')
  expect(ahead.take({ harness: claude, skills })).toEqual([
    { name: 'tides', description: 'Says.', body: 'Body.', folder, hasFiles: true },
  ])
  expect(readFileSync(join(folder, 'more/one.md'), 'utf8')).toBe('One.')
  const file = join(own(), 'svc/skills/tides/SKILL.md')
  expect(readFileSync(file, 'utf8')).toContain(`The files of this skill are in ${folder}`)
  expect(ahead.laid.get(file)).toBe(createHash('sha256').update(readFileSync(file)).digest('hex'))
  // Once: another run has another copy.
  expect(ahead.take({ harness: claude, skills })).toBeNull()
  await ahead.end()
  expect(readdirSync(root).toSorted()).toEqual(['bundles', 'own'])
})

test('other skills, another description, another program and an unfinished copy are not taken', async () => {
  const [one, two] = [skill(), keep('knots', { 'SKILL.md': 'Tie.' })]
  for (const wanted of [
    { harness: claude, skills: [one, two] },
    { harness: claude, skills: [{ ...one, description: 'Else.' }] },
    { harness: 'codex' as const, skills: [one] },
    { harness: claude, skills: [] },
  ]) {
    const ahead = await standingBy([one])
    expect(ahead.take(wanted)).toBeNull()
    await ahead.end()
  }
  const ahead = new SkillsAhead(own(), realWorld)
  const preparing = ahead.prepare(bundles(), [{ harness: claude, skills: [one] }])
  expect(ahead.take({ harness: claude, skills: [one] })).toBeNull()
  await preparing
  expect(ahead.take({ harness: claude, skills: [one] })).toBeNull()
  await ahead.end()
  expect(existsSync(aheadOf(own()))).toBe(false)
})

const meddling: Record<string, () => void> = {
  'a file has another text of the same length': () => writeFileSync(made('skills/tides/more/one.md'), 'Two.'),
  'a file is written again as it was': () => writeFileSync(made('skills/tides/more/one.md'), 'One.'),
  'a file has a second name elsewhere': () => linkSync(made('skills/tides/more/one.md'), join(root, 'held')),
  'a file is replaced by a link to the same text': () => {
    writeFileSync(join(root, 'same'), 'One.')
    rmSync(made('skills/tides/more/one.md'))
    symlinkSync(join(root, 'same'), made('skills/tides/more/one.md'))
  },
  'a file is gone': () => rmSync(made('skills/tides/more/one.md')),
  'a file was added': () => writeFileSync(made('skills/tides/more/two.md'), 'Two.'),
  'hooks were added to the plugin': () => mkdirSync(made('svc/hooks')),
  'a program is added beside': () => mkdirSync(made('bin')),
  'a folder is replaced by a link to the same': () => {
    renameSync(made('skills/tides'), join(root, 'tides'))
    symlinkSync(join(root, 'tides'), made('skills/tides'))
  },
  'all of it is gone': () => rmSync(aheadOf(own()), { recursive: true }),
}

test.for(Object.entries(meddling))('nothing is taken when %s', async ([, meddle]) => {
  const skills = [skill()]
  const ahead = await standingBy(skills)
  meddle()
  expect(ahead.take({ harness: claude, skills })).toBeNull()
  expect(existsSync(join(own(), 'skills'))).toBe(false)
})

test('nothing is made of a bundle that was changed, of too much, or where there is no room', async () => {
  const changed = keep('changed', { 'SKILL.md': 'A.' })
  writeFileSync(join(bundles(), changed.bundleHash, 'files/SKILL.md'), 'B.')
  const large = { ...skill(), totalBytes: 17 * 1024 * 1024 }
  for (const skills of [[changed], [large], [{ ...skill(), bundleHash: '0'.repeat(64) }]]) {
    const ahead = await standingBy(skills)
    expect(ahead.take({ harness: claude, skills })).toBeNull()
    await ahead.end()
  }
  writeFileSync(aheadOf(own()), 'in the way')
  const ahead = await standingBy([skill()])
  expect(ahead.take({ harness: claude, skills: [skill()] })).toBeNull()
})
