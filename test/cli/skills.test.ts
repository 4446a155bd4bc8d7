import { chmodSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeSkill } from '../api/facts/kit/skills.ts'
import { useRealServer } from './real-server.ts'

/** The commands of skills, by the real `svc` against a real server. */

const real = useRealServer()
const call = (line: readonly string[]) => real.svc(['skill', ...line])

test('all commands of docs/skills.md work in their order', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/skills.md'), 'utf8')
  const lines = page.split('\n').filter((line) => line.startsWith('svc skill '))
  expect(lines.length).toBe(10)
  const agent = await real.server.createAgent({})
  const values: Record<string, string> = { AGENT: agent.id }
  for (const line of lines) {
    const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? values[word!] ?? word!)
    const end = await call(words.slice(2))
    expect([line, end.status, end.stderr]).toEqual([line, 0, ''])
  }
  expect((await real.server.ok('/skills')).data).toEqual([])
})

test('a folder is sent as it is, with its programs, and without what git keeps there', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'skill-'))
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
