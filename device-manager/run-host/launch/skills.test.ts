import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { realWorld, type World } from '../../../shared/lib/world.ts'
import { runEventSchemas } from '../../../shared/runs/events.ts'
import { readSkills, skillEvents } from './skills.ts'

let root: string
const at = (...parts: string[]) => join(root, ...parts)
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'svc-skills-')))
  for (const folder of ['home', 'work', 'own']) mkdirSync(at(folder))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

function put(path: string, text: string | Uint8Array): void {
  mkdirSync(dirname(at(path)), { recursive: true })
  writeFileSync(at(path), text)
}
const skill = (name: string, body = 'Do it.') => `---\nname: ${name}\ndescription: Knows ${name}.\n---\n${body}\n`
/** The time for reading is never over, however slow the machine is. */
const patient: World = { ...realWorld, after: () => () => undefined }
const read = (folders: string[], world = patient) =>
  readSkills(folders, { cwd: at('work'), homeDir: at('home'), ownFolders: [at('own')] }, world)
const whys = async (...folders: string[]) => (await read(folders)).leftOut.map(({ path, why }) => `${path}: ${why}`)

it("reads skills of the home, of the agent's folder and of any other, in their order, with a version each", async () => {
  put('home/skills/knots/SKILL.md', skill('knots', 'Make a loop.'))
  put('home/skills/knots/refs/a.md', 'a')
  put('home/skills/notes.txt', 'no skill')
  put('work/team/ferry/SKILL.md', skill('ferry'))
  put('far/gull/SKILL.md', skill('gull'))
  const { given, told, leftOut } = await read(['~/skills/', 'team', at('far')])
  expect(given).toEqual([
    {
      name: 'knots',
      description: 'Knows knots.',
      body: 'Make a loop.\n',
      folder: at('home/skills/knots'),
      hasFiles: true,
    },
    { name: 'ferry', description: 'Knows ferry.', body: 'Do it.\n', folder: at('work/team/ferry'), hasFiles: false },
    { name: 'gull', description: 'Knows gull.', body: 'Do it.\n', folder: at('far/gull'), hasFiles: false },
  ])
  const version = expect.stringMatching(/^[0-9a-f]{12}$/)
  expect(told.folders).toEqual([
    { folder: '~/skills/', skills: [{ name: 'knots', version }] },
    { folder: 'team', skills: [{ name: 'ferry', version }] },
    { folder: at('far'), skills: [{ name: 'gull', version }] },
  ])
  expect(leftOut).toEqual([])
  const [event] = skillEvents({ given, told, leftOut })
  expect(runEventSchemas.skills.parse(event?.data)).toEqual(told)
})

it('tells another version, and another digest of all, when SKILL.md or the list of the files changes', async () => {
  const versions = new Set<string>()
  const digests = new Set<string>()
  const look = async () => {
    const { told } = await read(['~/skills'])
    versions.add(told.folders[0]!.skills[0]!.version)
    digests.add(told.digest)
  }
  put('home/skills/knots/SKILL.md', skill('knots'))
  await look()
  await look()
  expect([versions.size, digests.size]).toEqual([1, 1])
  const changes = [
    () => put('home/skills/knots/SKILL.md', skill('knots', 'Make two loops.')),
    () => put('home/skills/knots/scripts/tie.sh', 'true'),
    () => put('home/skills/knots/scripts/tie.sh', 'true; true'),
    () => symlinkSync('/etc', at('home/skills/knots/etc')),
  ]
  for (const change of changes) {
    change()
    await look()
  }
  expect([versions.size, digests.size]).toEqual([5, 5])
  put('home/skills/knots/.git/index', 'x')
  await look()
  expect(versions.size).toBe(5)
})

it('says what is wrong with a folder, and what to do', async () => {
  put('home/knots/SKILL.md', skill('knots'))
  put('home/file', 'x')
  put('own/x/knots/SKILL.md', skill('knots'))
  symlinkSync(at('home'), at('work/out'))
  symlinkSync(at('loop'), at('loop'))
  mkdirSync(at('empty'))
  const found = await whys('~/none', '~/file', 'out', at('own/x'), '~/knots', at('empty'), at('loop'))
  expect(found).toEqual([
    expect.stringMatching(/^~\/none: there is no such folder on this device; make it/),
    expect.stringMatching(/^~\/file: there is no such folder/),
    expect.stringMatching(/^out: a link leads out of the folder of the agent/),
    expect.stringMatching(/x: svc keeps this folder for itself/),
    expect.stringMatching(/^~\/knots: it is a skill itself; name the folder above it/),
    expect.stringMatching(/empty: it holds no <name>\/SKILL\.md/),
    expect.stringMatching(/loop: it cannot be read \(ELOOP\)/),
  ])
})

it('does without a skill that is broken, and gives the others', async () => {
  const big = `${skill('big')}${'x'.repeat(64 * 1024)}`
  put('home/skills/a-good/SKILL.md', skill('a-good'))
  put('home/skills/big/SKILL.md', big)
  put('home/skills/bytes/SKILL.md', Buffer.from([0x2d, 0xff, 0xfe]))
  put('home/skills/folder/SKILL.md/x', '')
  put('home/skills/named/SKILL.md', skill('other'))
  put('home/skills/no-head/SKILL.md', '# No head')
  put('outside/SKILL.md', skill('outside'))
  put('outside/file/SKILL.md', skill('linked-file'))
  symlinkSync(at('outside'), at('home/skills/outside'))
  mkdirSync(at('home/skills/linked-file'))
  symlinkSync(at('outside/file/SKILL.md'), at('home/skills/linked-file/SKILL.md'))
  symlinkSync(at('home/skills/a-good'), at('home/skills/z-inside'))
  mkdirSync(at('home/skills/pipe'))
  execFileSync('mkfifo', [at('home/skills/pipe/SKILL.md')])
  put('work/more/a-good/SKILL.md', skill('a-good'))
  const { given, leftOut } = await read(['~/skills', 'more'])
  expect(given.map(({ name }) => name)).toEqual(['a-good'])
  expect(leftOut.map(({ path, why }) => `${path}: ${why}`)).toEqual([
    expect.stringMatching(/^~\/skills\/big: SKILL\.md is larger than 64 KiB/),
    '~/skills/bytes: SKILL.md is no UTF-8 text',
    '~/skills/folder: SKILL.md is no plain file',
    expect.stringMatching(/^~\/skills\/linked-file: a link leads out/),
    expect.stringMatching(/^~\/skills\/named: SKILL\.md says the name other; its folder must be named so/),
    expect.stringMatching(/^~\/skills\/no-head: SKILL\.md cannot be used: it does not begin with front matter/),
    expect.stringMatching(/^~\/skills\/outside: a link leads out/),
    '~/skills/pipe: SKILL.md is no plain file',
    expect.stringMatching(/^~\/skills\/z-inside: SKILL\.md says the name a-good/),
    'more/a-good: ~/skills has a skill of this name, which the run is given',
  ])
})

it('takes 200 skills, and tells of twenty places that are left out', async () => {
  for (let n = 0; n < 202; n++) put(`home/skills/s${n}/SKILL.md`, skill(`s${n}`))
  for (let n = 0; n < 30; n++) put(`work/bad/b${n}/SKILL.md`, 'x')
  const { given, told, leftOut } = await read(['bad', '~/skills', 'bad'])
  expect(given).toHaveLength(200)
  expect(told.folders[0]?.skills).toHaveLength(200)
  expect(leftOut).toHaveLength(21)
  expect(leftOut.at(-1)).toMatchObject({ path: expect.stringMatching(/^\d+ more places$/) })
  expect((await whys('~/skills'))[0]).toMatch(/^~\/skills: a run takes 200 skills/)
})

it('does not wait for a folder that never answers', async () => {
  put('home/skills/knots/SKILL.md', skill('knots'))
  const { given, leftOut } = await read(['~/skills', 'more'], { ...realWorld, after: (_, fn) => (fn(), () => {}) })
  expect(given).toEqual([])
  expect(leftOut.map(({ path, why }) => [path, why])).toEqual([
    ['~/skills', 'reading the folders took longer than 5 s'],
    ['more', 'reading the folders took longer than 5 s'],
  ])
})
