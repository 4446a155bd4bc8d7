import { expect, test } from 'vitest'
import { isBranchName } from './repo.ts'

test.each(['main', 'svc/ENG-1', 'svc/rescue/run_1', 'a.b/c-d_e', 'ünï', 'a@b', 'x{y'])('%j names a branch', (name) => {
  expect(isBranchName(name)).toBe(true)
})

test.each([
  '',
  '@',
  'HEAD',
  '-x',
  '/a',
  'a/',
  'a//b',
  'a..b',
  'a.',
  '.a',
  'a/.b',
  'a.lock',
  'a.lock/b',
  'a b',
  'a\tb',
  'a\nb',
  'a\0b',
  'a\u007f',
  'a~1',
  'a^',
  'a:b',
  'a?',
  'a*',
  'a[b',
  'a\\b',
  'a@{1}',
  '\ud800',
  'a/-b',
])('%j names no branch', (name) => {
  expect(isBranchName(name)).toBe(false)
})
