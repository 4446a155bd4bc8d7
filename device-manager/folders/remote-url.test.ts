import { expect, test } from 'vitest'
import { withoutCredentials } from './remote-url.ts'

test.each([
  ['https://example.com/a/b.git', 'https://example.com/a/b.git'],
  ['https://tok3n@example.com/a.git', 'https://example.com/a.git'],
  ['https://user:p@ss:w0rd@example.com:8443/a.git', 'https://example.com:8443/a.git'],
  ['HTTPS://user:pw@example.com/a.git?private_token=x#y', 'HTTPS://example.com/a.git'],
  ['codecommit::https://user:pw@example.com/a', 'codecommit::https://example.com/a'],
  ['ssh://git:pw@example.com/a.git', 'ssh://git@example.com/a.git'],
  ['ssh://git@example.com/a.git', 'ssh://git@example.com/a.git'],
  ['git@example.com:a/b.git', 'git@example.com:a/b.git'],
  ['/srv/git/a@b.git', '/srv/git/a@b.git'],
  ['file:///srv/a@b.git', 'file:///srv/a@b.git'],
])('%s is shown as %s', (url, shown) => {
  expect(withoutCredentials(url)).toBe(shown)
})
