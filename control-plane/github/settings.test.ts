import { expect, test } from 'vitest'
import { readConfig } from '../config.ts'
import { ConfigError } from '../process/config-error.ts'
import { isInstalled, repositoryHost } from './settings.ts'

const read = (env: Record<string, string>) => readConfig(env, {}).github

test('GitHub is not connected unless the operator configures it', () => {
  expect(read({})).toEqual({ apiUrl: 'https://api.github.com', auth: null, webhookSecret: null })
  expect(isInstalled(read({}))).toBe(false)
})

test('a token or an app, with the secret of the webhook', () => {
  const secret = { SVC_GITHUB_WEBHOOK_SECRET: 'longenough' }
  const byToken = read({ ...secret, SVC_GITHUB_TOKEN: 'ghp_x' })
  expect(byToken).toMatchObject({ auth: { kind: 'token', token: 'ghp_x' }, webhookSecret: 'longenough' })
  const byApp = read({
    ...secret,
    SVC_GITHUB_APP_ID: '1',
    SVC_GITHUB_APP_KEY_FILE: '/k',
    SVC_GITHUB_API_URL: 'https://git.example.com/api/v3/',
  })
  expect(byApp).toMatchObject({
    apiUrl: 'https://git.example.com/api/v3',
    auth: { kind: 'app', appId: '1', keyFile: '/k' },
  })
  expect([isInstalled(byToken), isInstalled(byApp)]).toEqual([true, true])
  expect(isInstalled(read({ SVC_GITHUB_TOKEN: 'ghp_x' }))).toBe(false)
})

test('an invalid configuration stops the start', () => {
  for (const env of [
    { SVC_GITHUB_APP_ID: '1' },
    { SVC_GITHUB_APP_KEY_FILE: '/k' },
    { SVC_GITHUB_TOKEN: 'x', SVC_GITHUB_APP_ID: '1', SVC_GITHUB_APP_KEY_FILE: '/k' },
    { SVC_GITHUB_API_URL: 'http://git.example.com/api/v3' },
    { SVC_GITHUB_API_URL: 'git.example.com' },
    { SVC_GITHUB_WEBHOOK_SECRET: 'short' },
    { SVC_GITHUB_TOKEN: 'two words' },
  ] as Record<string, string>[])
    expect(() => read(env), JSON.stringify(env)).toThrow(ConfigError)
})

test('the host of repositories', () => {
  expect(repositoryHost('https://api.github.com')).toBe('github.com')
  expect(repositoryHost('https://git.example.com/api/v3')).toBe('git.example.com')
  expect(repositoryHost('https://api.acme.ghe.com')).toBe('acme.ghe.com')
})
