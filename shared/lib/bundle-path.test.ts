import { expect, test } from 'vitest'
import { bundlePathFlaw, bundlePathsFlaw } from './bundle-path.ts'

test.each([
  'SKILL.md',
  'scripts/run.sh',
  'references/über alles.md',
  'a/b/c/d/e/f/g/h',
  '.hidden/x',
  '日本語/手順.md',
  'a b.txt',
  '...x',
  'conman.txt',
  'x'.repeat(120),
])('%s can be taken', (path) => {
  expect(bundlePathFlaw(path)).toBeNull()
})

test.each([
  '',
  '/etc/passwd',
  '../up',
  'a/../../b',
  'a/./b',
  'a//b',
  'a/',
  'a\\b',
  'C:x',
  'C:/x',
  '\\\\host\\share',
  'a:stream',
  'x\u0000y',
  'x\ny',
  'a\u200bb',
  'a\u202eb',
  'a\ufeff',
  'half\ud800',
  'a\u2028b',
  '\ue000',
  'trailing.',
  'trailing ',
  ' leading',
  'folder./x',
  'folder /x',
  'con',
  'CON.txt',
  'Nul',
  'aux.tar.gz',
  'com1',
  'COM¹.txt',
  'lpt9.md',
  'a/prn/b',
  'conin$',
  '.git/hooks/pre-commit',
  '.GIT/config',
  'SKILL~1.MD',
  '\uff0e\uff0e/x',
  'a\uff0fb',
  'a\uff3cb',
  'a\uff1ab',
  'what?',
  'a*',
  'a|b',
  '"a"',
  'a/b/c/d/e/f/g/h/i',
  'x'.repeat(121),
  'ü'.repeat(61),
  `${'x'.repeat(100)}/${'x'.repeat(100)}/${'x'.repeat(100)}`,
  'x'.repeat(1_000_000),
])('%j cannot be taken', (path) => {
  expect(bundlePathFlaw(path)).not.toBeNull()
})

test.each([
  ['a', 'a'],
  ['readme.md', 'README.md'],
  ['\u00fc.md', 'u\u0308.md'],
  ['STRASSE', 'straße'],
  ['\u212a.md', 'k.md'],
  ['ﬁle', 'file'],
  ['ſ.md', 's.md'],
  ['a', 'a/b'],
  ['a/b', 'a'],
  ['A', 'a/b'],
  ['Scripts/a', 'scripts/b'],
  ['\u00fc/a', 'u\u0308/b'],
  ['x/Y/a', 'x/y/b'],
])('%j and %j collide', (one, other) => {
  expect(bundlePathsFlaw([one, other])).toEqual({ path: other, flaw: expect.stringContaining('collides') })
})

test('different files of the same folders do not collide', () => {
  expect(bundlePathsFlaw(['SKILL.md', 'a/x', 'a/y', 'a/b/x', 'b/x'])).toBeNull()
})
