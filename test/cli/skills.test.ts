import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { makeSkill } from '../api/facts/kit/skills.ts'
import { startGitServer, type GitServer } from '../kit/git-server.ts'
import { commandsOf } from './page-blocks.ts'
import { useRealServer } from './real-server.ts'

// The commands of skills, by the real `svc` against a real server.

let git: GitServer
beforeAll(async () => void (git = await startGitServer()))
afterAll(() => git.close())
const real = useRealServer({ SVC_ALLOW_HOSTS: '127.0.0.1' })
const call = (line: readonly string[]) => real.svc(['skill', ...line])

test('all commands of docs/skills.md work in their order', async () => {
  const lines = commandsOf('skills.md')
    .filter((line) => line.startsWith('svc skill '))
    .map((line) => line.replaceAll('\\\n', ' '))
  expect(lines.length).toBe(15)
  const agent = await real.server.createAgent({})
  git.repo('skills.git').commit({ skills: { changelog: { 'SKILL.md': 'Write it.' }, other: { 'SKILL.md': 'x' } } })
  const values: Record<string, string> = { AGENT: agent.id, REPOSITORY: `${git.url}/skills.git` }
  for (const line of lines) {
    const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? values[word!] ?? word!)
    const end = await call(words.slice(2))
    expect([line, end.status, end.stderr]).toEqual([line, 0, ''])
  }
  expect((await real.server.ok('/skills')).data).toMatchObject([{ slug: 'changelog' }, { slug: 'svc' }])
})

test('a repository says what was installed and skipped, and why it cannot be read', async () => {
  git.repo('many.git').commit({
    skills: {
      one: { 'SKILL.md': 'x' },
      two: { 'SKILL.md': 'x' },
      svc: { 'SKILL.md': 'x' },
      'No Slug': { 'SKILL.md': 'x' },
    },
  })
  const url = `${git.url}/many.git`
  const named = await call(['add', url, '--skill', 'one', '--skill', 'two', '--skill', 'svc', '--skill', 'none'])
  expect(JSON.parse(named.stdout)).toMatchObject({
    installed: [{ slug: 'one' }, { slug: 'two' }],
    skipped: [
      { slug: 'svc', reason: 'slug_taken' },
      { slug: 'none', reason: 'not_found' },
    ],
    resolvedSha: expect.stringMatching(/^[0-9a-f]{40}$/),
  })
  expect(JSON.parse((await call(['add', url, '--subdir', 'skills/one'])).stdout).installed).toMatchObject([
    { slug: 'one' },
  ])
  for (const [line, code] of [
    [[url, '--ref=--upload-pack=x'], 'invalid_skill_source'],
    [['ext::sh -c true'], 'invalid_skill_source'],
    [[url, '--ref', 'none'], 'skill_source_unreadable'],
    [[url, '--skill', 'none'], 'no_skills_found'],
  ] as const) {
    const { status, stderr } = await call(['add', ...line])
    expect([line, status, stderr]).toEqual([line, 1, expect.stringContaining(code)])
  }
})

test('a folder is sent as it is, with its programs, and without what git keeps there', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'skill-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  mkdirSync(join(dir, 'scripts'))
  mkdirSync(join(dir, '.git'))
  writeFileSync(join(dir, 'SKILL.md'), 'Do it.')
  writeFileSync(join(dir, '.git/config'), 'x')
  writeFileSync(join(dir, 'scripts/run.sh'), '#!/bin/sh\n')
  chmodSync(join(dir, 'scripts/run.sh'), 0o755)
  writeFileSync(join(dir, 'logo.bin'), Buffer.from([0, 255]))
  const named = ['--slug', 'from-folder', '--name', 'x', '--source-type', 'imported', '--dir', dir]
  const made = JSON.parse((await call(['create', ...named])).stdout)
  expect(made.files).toEqual([
    { path: 'SKILL.md', kind: 'instruction', sizeBytes: 6, executable: false },
    { path: 'logo.bin', kind: 'reference', sizeBytes: 2, executable: false },
    { path: 'scripts/run.sh', kind: 'reference', sizeBytes: 10, executable: true },
  ])
  symlinkSync('/etc/passwd', join(dir, 'link'))
  const refused = await call(['replace-bundle', 'from-folder', '--dir', dir])
  expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('link')])
})

test('files are named, one way or the other', async () => {
  const { slug } = await makeSkill({ server: real.server })
  const both = ['--dir', '.', '--file', 'SKILL.md:x']
  for (const line of [[], both, ['--file', 'no colon'], ['--file', ':x']]) {
    const { status, stderr } = await call(['replace-bundle', slug, ...line])
    expect([line, status, stderr.includes('--file')]).toEqual([line, 2, true])
  }
  const colons = await call(['replace-bundle', slug, '--file', 'SKILL.md:a: b:c\nd'])
  expect(colons.status).toBe(0)
  expect((await real.server.ok(`/skills/${slug}/files/content?path=SKILL.md`)).content).toBe('a: b:c\nd')
})

test('the skill that is built in is listed, shown and turned off, and nothing else', async () => {
  const agent = await real.server.createAgent({})
  const asked = async (...line: string[]) => {
    const { status, stdout, stderr } = await call(line)
    return status === 0 ? JSON.parse(stdout || 'null') : stderr
  }
  expect(await asked('list', '--source-type', 'builtin')).toMatchObject({
    data: [{ slug: 'svc' }],
  })
  expect(await asked('get', 'svc')).toMatchObject({ sourceType: 'builtin', files: [{ path: 'SKILL.md' }] })
  const off = await asked('set-agent-override', 'svc', '--agent', agent.id, '--enabled', 'false')
  expect(off).toMatchObject({ slug: 'svc', enabled: false, effectiveEnabled: false })
  expect(await asked('clear-agent-override', 'svc', '--agent', agent.id)).toBeNull()
  expect(await asked('update', 'svc', '--enabled-by-default', 'false')).toMatchObject({ enabledByDefault: false })
  const { data } = await asked('agent-overrides', '--agent', agent.id)
  expect(data.find(({ slug }: { slug: string }) => slug === 'svc')).toMatchObject({ effectiveEnabled: false })
  for (const [line, code] of [
    [['update', 'svc', '--name', 'x'], 'skill_replace_forbidden'],
    [['replace-bundle', 'svc', '--file', 'SKILL.md:x'], 'skill_replace_forbidden'],
    [['delete', 'svc'], 'builtin_skill_delete_forbidden'],
    [['share', 'svc'], 'skill_share_forbidden'],
    [
      ['create', '--slug', 'svc', '--name', 'x', '--source-type', 'imported', '--file', 'SKILL.md:x'],
      'duplicate_skill_slug',
    ],
  ] as const)
    expect([line, await asked(...line)]).toEqual([line, expect.stringContaining(code)])
  await asked('update', 'svc', '--enabled-by-default', 'true')
})
