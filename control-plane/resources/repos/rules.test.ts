import { expect, test } from 'vitest'
import { addressOfRepo, cloneUrlOf, readRemote } from './rules.ts'

test('all forms of one remote are one repo', () => {
  const forms = [
    'https://github.com/Acme/Web.git',
    'https://github.com/acme/web',
    'https://somebody:token@github.com/acme/web.git/',
    'http://github.com:80/acme//web',
    'ssh://git@github.com:22/acme/web.git',
    'git@github.com:acme/web.git',
    'git@github.com:/acme/web',
    'github.com:acme/web.git',
    'git://GitHub.com/acme/web',
    'github.com/acme/web',
    ' https://github.com/acme/web?x=1#y ',
  ]
  for (const form of forms)
    expect([form, readRemote(form)]).toEqual([
      form,
      { gitRemote: 'github.com/acme/web', name: 'acme/web', host: 'github.com', provider: 'github' },
    ])
})

test('hosts, groups and ports', () => {
  expect(readRemote('https://gitlab.example.com/group/sub/app.git')).toMatchObject({
    gitRemote: 'gitlab.example.com/group/sub/app',
    name: 'group/sub/app',
    provider: 'gitlab',
  })
  expect(readRemote('https://git.example.com:8443/a/b')).toMatchObject({ provider: 'other', host: 'git.example.com' })
  expect(readRemote('https://mygithub.example.com/a/b')?.provider).toBe('other')
})

test('a text that is no remote address names no repository', () => {
  for (const url of [
    '',
    'acme/web',
    '/srv/git/web.git',
    '../web',
    'file:///srv/git/web.git',
    'https://github.com',
    'https://github.com/acme',
    'https://github.com/acme/../web',
    'https://git hub.com/a/b',
    'C:\\work\\web',
    'git@github.com:acme',
    'javascript://x/a/b',
  ])
    expect([url, readRemote(url)]).toEqual([url, null])
})

test.each([
  ['https://github.com/Acme/Web', 'https://github.com/Acme/Web', 'https://github.com/Acme/Web.git'],
  [
    'https://me:secret@github.com/acme/web.git?x#y',
    'https://github.com/acme/web.git',
    'https://github.com/acme/web.git',
  ],
  ['http://127.0.0.1:8080/Acme/web', 'http://127.0.0.1:8080/Acme/web', 'http://127.0.0.1:8080/Acme/web'],
  ['git@gitlab.com:Group/Sub/app.git', 'https://gitlab.com/Group/Sub/app.git', 'https://gitlab.com/Group/Sub/app.git'],
  ['ssh://git@git.example.com:22/a/b', 'https://git.example.com/a/b', 'https://git.example.com/a/b'],
  ['git.example.com/a//b/', 'https://git.example.com/a/b', 'https://git.example.com/a/b'],
])('%s is cloned from %s', (given, cloneUrl, address) => {
  expect(cloneUrlOf(given)).toBe(cloneUrl)
  expect(addressOfRepo({ ...readRemote(given)!, cloneUrl })).toBe(address)
})

test('a repo of which only the name was kept is asked for by https', () => {
  expect(addressOfRepo({ ...readRemote('git@github.com:acme/web')!, cloneUrl: null })).toBe(
    'https://github.com/acme/web.git',
  )
  expect(cloneUrlOf('/srv/git/web.git')).toBe(null)
})

test('an address is not asked at another host than the one that it shows', () => {
  const url = 'https://evil.example\\@github.com/acme/web'
  expect(readRemote(url)?.gitRemote).toBe('github.com/acme/web')
  expect(cloneUrlOf(url)).toBe(null)
})
