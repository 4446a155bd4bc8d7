import { expect, test } from 'vitest'
import { mask, maskSecrets, maskValue } from './secret-patterns.ts'
import { cpuMsOf } from '../../test/kit/cpu-time.ts'

const letters = 'aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fG3hJ6kL9nP2rS5'

/** The key is put together here, so that no scanner of this repository takes it for a real one. */
const begin = ['-----BEGIN', ''].join(' ')

test.each([`sk-ant-api03-${letters}`, `ghp_${letters.slice(0, 36)}`, `svc_pat_${letters}`])(
  'a token of a known form is masked: %s',
  (token) => {
    expect(maskSecrets(`use ${token} now`)).toBe(`use ${mask} now`)
  },
)

test('a value is masked after a name that says what it is', () => {
  expect(maskSecrets('DB_PASSWORD=hunter22 make')).toBe(`DB_PASSWORD=${mask} make`)
  expect(maskSecrets('{"apiKey": "abcdef123"}')).toBe(`{"apiKey": "${mask}"}`)
  expect(maskSecrets('curl -H "Authorization: Bearer abcdefghijklmnop"')).toContain(`Bearer ${mask}`)
  expect(maskSecrets('git clone https://me:hunter22@example.com/x.git')).toBe(
    `git clone https://me:${mask}@example.com/x.git`,
  )
})

test('references to secrets and ordinary texts stay as they are', () => {
  for (const text of [
    'export TOKEN=$MY_TOKEN',
    'password: {{ vault.db }}',
    'The password is asked for at the start.',
    'see https://example.com/a:b@c',
    'token=[redacted:KEY]',
    'npm run test -- --watch',
    '',
  ])
    expect(maskSecrets(text)).toBe(text)
})

test('a private key is masked line by line, also with line ends written as text', () => {
  const key = ['RSA PRIVATE KEY-----', letters, letters, 'abcd==', ['-----END', 'RSA PRIVATE KEY-----'].join(' ')]
  for (const end of ['\n', '\r\n', '\\n']) {
    const masked = maskSecrets(`a ${begin}${key.join(end)} b`)
    expect(masked).toBe(`a ${[mask, mask, mask, mask, mask].join(end)} b`)
  }
})

test('no command hides behind what looks like a secret', () => {
  for (const [before, command] of [
    [`echo ${begin}PRIVATE KEY-----`, 'curl http://evil/x'],
    [`echo ${begin}PRIVATE KEY-----`, 'rm /home/me/notes'],
    ['export aws_secret_key=', '/usr/local/libexec/aaaaaaaaaaaaaaaa/evil'],
  ]) {
    const [, ...lines] = maskSecrets(`${before}\n${command}`).split('\n')
    expect(lines).toHaveLength(1)
    if (!before!.startsWith('export')) expect(lines).toEqual([command])
  }
})

test('text that a shell would execute is never masked', () => {
  expect(maskSecrets('TOKEN=abcdefgh$(rm -rf x)`y`|z;w')).toBe(`TOKEN=${mask}$(rm -rf x)\`y\`|z;w`)
})

test('a long text is read in time', () => {
  const spent = cpuMsOf(() => {
    for (const text of ['token-'.repeat(50_000), 'a-'.repeat(100_000), 'eyJ'.repeat(60_000), 'a://'.repeat(50_000)])
      expect(maskSecrets(text).length).toBeGreaterThan(0)
  })
  expect(spent).toBeLessThan(2_000)
})

test('values within JSON are masked by their form and by their names', () => {
  expect(maskValue({ command: 'PASSWORD=hunter22 x', env: { API_KEY: 'abc', PATH: '/bin' }, n: [1, null] })).toEqual({
    command: `PASSWORD=${mask} x`,
    env: { API_KEY: mask, PATH: '/bin' },
    n: [1, null],
  })
})

test('in a command what may be the program that is run is masked only where that is known to be none', () => {
  const mayMask = (text: string) => (from: number, to: number) =>
    text.indexOf('"') < from && to <= text.lastIndexOf('"')
  expect(maskSecrets('x=token: /tmp/evil.sh', mayMask)).toBe('x=token: /tmp/evil.sh')
  expect(maskSecrets('curl -H "Authorization: Bearer abcdefghijklmnop"', mayMask)).toContain(`Bearer ${mask}`)
  expect(maskSecrets('TOKEN=abcdefgh make', mayMask)).toBe(`TOKEN=${mask} make`)
})
