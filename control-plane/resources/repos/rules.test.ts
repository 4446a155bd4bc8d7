import { expect, test } from 'vitest'
import { readRemote } from './rules.ts'

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
