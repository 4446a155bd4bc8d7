import { expect, test } from 'vitest'
import { secretIn, withoutSecrets } from './secret-shapes.ts'
import { cpuMsOf } from '../../test/kit/cpu-time.ts'

/** Secrets are made up here and put together from parts, so that no scanner of this repository takes them for real ones. */
const letters = 'aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fG3hJ6kL9nP2rS5'
const of = (length: number) => letters.repeat(4).slice(0, length)
/** Apart from what follows it, too. */
const begin = ['-----BEGIN', ''].join(' ')
const hex = (length: number) => '0123456789abcdef'.repeat(6).slice(0, length)

test.each([
  ['a private key', `${begin}RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----`],
  ['a private key', `${begin}PRIVATE KEY-----`],
  ['a private key', `${begin}OPENSSH PRIVATE KEY-----`],
  ['a PGP key', `${begin}PGP PRIVATE KEY BLOCK-----`],
  ['an AWS key id', `AKIA${of(16).toUpperCase()}`],
  ['an AWS secret', `aws_secret_access_key = ${of(40)}`],
  ['an AWS secret in JSON', `{"AwsSecretAccessKey": "${of(40)}"}`],
  ['an Azure key', `AccountKey=${of(86)}==;EndpointSuffix=x`],
  ['a Google key', `AIza${of(35)}`],
  ['a GitHub token', `ghp_${of(36)}`],
  ['a GitHub token of one letter', `ghp_${'a'.repeat(36)}`],
  ['a GitHub app token', `ghs_${of(36)}`],
  ['a fine-grained GitHub token', `github_pat_${of(22)}_${of(59)}`],
  ['a GitLab token', `glpat-${of(20)}`],
  ['a Slack token', ['xoxb', '123456789012', of(24)].join('-')],
  ['a model key', `sk-${of(48)}`],
  ['a model key with a prefix', `sk-ant-api03-${of(60)}`],
  ['a model key of a project', `sk-proj-${of(64)}`],
  ['a payment key', `sk_live_${of(24)}`],
  ['a registry token', `npm_${of(36)}`],
  ['our own token', `svc_pat_${of(40)}`],
  ['a signed token', `eyJ${of(30)}.eyJ${of(40)}.${of(43)}`],
  ['a vault token', `hvs.${of(28)}`],
  ['a Databricks token', `dapi${hex(32)}`],
])('%s is found, in the middle of words too', (_, secret) => {
  for (const text of [secret, `Use "${secret}", please.`, `key=${secret}\nnext line`, `\`${secret}\``])
    expect(secretIn(text)).not.toBeNull()
  // The kind of the secret may be told, the secret itself not.
  expect(secret).not.toContain(secretIn(secret)!)
})

test.each([
  '',
  'Please rotate the AWS key and the ghp_ token; mine begins with sk- and ends with an x.',
  'The prefix svc_pat_ marks a login token, svc_pat_... in the manual.',
  'scikit-learn is imported as sklearn; sk-learn-contrib-imbalanced-learn is another package.',
  'task-sk-internationalization-of-the-frontend-and-documentation',
  'Commit 9f2c1e7a6b5d4c3b2a190817263544f3e2d1c0b9 broke it, see sha256 ' + hex(64),
  'run_3nB7cW1yHsD5jK9q answered msg_2kX5vB8nQwE1rT4y in 5b0c7d0e-6a7e-4b52-9a8e-2f9d1c3e4a6b',
  '-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----',
  '-----BEGIN PUBLIC KEY-----',
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGm5 me@laptop',
  `export GITHUB_TOKEN=ghp_${'x'.repeat(36)}`,
  `OPENAI_API_KEY=sk-${'X'.repeat(48)}`,
  'AKIA is how access key ids begin; ASIAN FOOD, MALAYSIA1234567890123456',
  'password: hunter2',
  'https://example.com/a/very/long/path?with=query&and=AIzaSyShort',
  'eyJhbGciOiJIUzI1NiJ9 is only a header',
  'data:image/png;base64,' + of(150),
  'npm_config_registry and npm_lifecycle_event are variables; pypi-publish-action-with-trusted-publishing',
])('ordinary text is none: %s', (text) => {
  expect(secretIn(text)).toBeNull()
})

test('a signed token is found and masked after other words of its letters, too', () => {
  const token = `eyJ${of(30)}.eyJ${of(40)}.${of(43)}`
  for (const before of ['', 'Bearer ', 'a.', 'jwt-', '--eyJ-', 'eyJ-eyJ-', 'eyJ.eyJ.']) {
    expect(secretIn(`${before}${token}`)).toBe('signed token')
    expect(withoutSecrets(`${before}${token} b`, '[masked]')).not.toContain(token.slice(20))
  }
})

test('a long text is read in time', () => {
  const spent = cpuMsOf(() => {
    for (const text of ['sk-'.repeat(33_000), 'a-'.repeat(50_000), 'eyJ'.repeat(33_000), 'xoxb-'.repeat(20_000)])
      expect(secretIn(text)).toBeNull()
    for (const text of ['eyJ-'.repeat(25_000), `${'eyJ0123456789-'.repeat(3_500)}.`.repeat(2), '.eyJ-'.repeat(20_000)])
      expect(secretIn(text)).toBeNull()
    // The text is nearly a placeholder.
    expect(secretIn(`whsec_${'x'.repeat(100_000)}+`)).not.toBeNull()
  })
  expect(spent).toBeLessThan(2_000)
})
