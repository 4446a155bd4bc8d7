import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { keysIn, readHappening } from './events.ts'
import { signatureCheck } from './signature.ts'

test('task keys are found in branch, title and body', () => {
  const keys = (text: Partial<Parameters<typeof keysIn>[0]>) => keysIn({ branch: 'b', title: 't', body: '', ...text })
  expect(keys({ branch: 'feature/web-12-button' })).toEqual(['WEB-12'])
  expect(keys({ branch: 'WEB-12', title: 'web-13: x', body: 'Closes WEB-14, (WEB-12).' })).toEqual([
    'WEB-12',
    'WEB-13',
    'WEB-14',
  ])
  // A word with a number is no key in running text unless it is written as one.
  expect(keys({ body: 'utf-8 and covid-19, WEB12, XWEB-1x' })).toEqual([])
  expect(keys({ title: Array.from({ length: 80 }, (_, i) => `A-${i}`).join(' ') })).toHaveLength(50)
})

test('only successful checks of a commit count', () => {
  const repository = { full_name: 'Acme/Web', default_branch: 'main' }
  const sha = 'a'.repeat(40)
  const run = (conclusion: string | null, action = 'completed') =>
    readHappening('check_run', {
      action,
      repository,
      check_run: { head_sha: sha, conclusion, pull_requests: [{ number: 4 }] },
    })
  const ended = { kind: 'green', repo: 'acme/web', sha, numbers: [4] }
  for (const passed of ['success', 'skipped', 'neutral']) expect(run(passed)).toEqual({ ...ended, hasPassed: true })
  for (const failed of ['failure', 'timed_out', 'cancelled', 'action_required', 'startup_failure', 'stale'])
    expect(run(failed)).toEqual({ ...ended, hasPassed: false })
  for (const open of [run(null), run('success', 'created'), run('failure', 'rerequested')]) expect(open).toBeNull()
  const status = (state: string) => readHappening('status', { repository, sha, state })
  expect(status('success')).toMatchObject({ kind: 'green', numbers: [], hasPassed: true })
  for (const state of ['error', 'failure']) expect(status(state)).toMatchObject({ hasPassed: false })
  expect(status('pending')).toBeNull()
  expect(readHappening('issues', {})).toBeNull()
})

test('a signature is valid only for these bytes and this secret, however the bytes are chunked', () => {
  const isSignedWith = (secret: string, bytes: Buffer, sent: string) => {
    const check = signatureCheck(secret, sent)
    for (const byte of bytes) check?.update(Buffer.from([byte]))
    return check?.isRight() ?? false
  }
  const body = Buffer.from('{"a":1}')
  const signature = `sha256=${createHmac('sha256', 'secret').update(body).digest('hex')}`
  expect(isSignedWith('secret', body, signature)).toBe(true)
  expect(isSignedWith('secret', body, signature.toUpperCase().replace('SHA256', 'sha256'))).toBe(true)
  expect(isSignedWith('other', body, signature)).toBe(false)
  expect(isSignedWith('secret', Buffer.from('{"a":2}'), signature)).toBe(false)
  for (const wrong of ['', signature.slice(0, -1), `${signature}0`, signature.replace('sha256', 'sha1')])
    expect(isSignedWith('secret', body, wrong)).toBe(false)
})
