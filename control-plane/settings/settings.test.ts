import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readConfig, readOperatorConfig, type ServerFlags } from '../config.ts'
import { ConfigError } from '../process/config-error.ts'
import { namesOfOthers } from './unknown-names.ts'
import { variableNames, variables } from './variables.ts'

/** The sentences with which a start is refused, without the line before them. */
function refused(env: Record<string, string>, flags: ServerFlags = {}): string[] {
  try {
    readConfig(env, flags)
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n').slice(1)
    throw error
  }
  return []
}

test.each([
  ['SVC_PORT', 'abc', '"abc"'],
  ['SVC_PORT', '65536', '"65536"'],
  ['SVC_PORT', '', 'empty'],
  ['SVC_PORT', 'tcp://10.0.0.1:4400', '"tcp://10.0.0.1:4400"'],
  ['SVC_HOST', 'http://0.0.0.0', '"http://0.0.0.0"'],
  ['SVC_HOST', 'localhost:4400', '"localhost:4400"'],
  ['SVC_DATABASE_POOL', '0x10', '"0x10"'],
  ['SVC_LEASE_MS', '90s', '"90s"'],
  ['SVC_LEASE_MS', '1e5', '"1e5"'],
  ['SVC_LEASE_MS', '-1', '"-1"'],
  ['SVC_LEASE_MS', '1.5', '"1.5"'],
  ['SVC_TOKEN_IDLE_MS', '30', '"30"'],
  ['SVC_LOG_LEVEL', 'verbose', '"verbose"'],
  ['SVC_CHECK_REPLIES', 'yes', '"yes"'],
  ['SVC_WORKFLOWS', 'no', '"no"'],
  ['SVC_SECRET_PROVIDERS', 'github,,npm', '"github,,npm"'],
  ['SVC_ALLOW_HOSTS', 'git.example.lan:3000', '"git.example.lan:3000"'],
  ['SVC_ALLOW_HOSTS', 'a.lan,*.b.lan', '"a.lan,*.b.lan"'],
  ['SVC_PUBLIC_URL', 'svc.example.com', '"svc.example.com"'],
  ['SVC_PUBLIC_URL', 'ftp://svc.example.com', '"ftp://svc.example.com"'],
  ['SVC_PUBLIC_URL', 'https://svc.example.com/#a', '"https://svc.example.com/#a"'],
  ['SVC_PUBLIC_URL', 'https://svc.example.com/?a=b', '"https://svc.example.com/?..."'],
  ['SVC_PUBLIC_URL', 'https://me:hush@svc.example.com', '"https://...@svc.example.com"'],
  ['SVC_PUBLIC_URL', 'http://0.0.0.0:4400', '"http://0.0.0.0:4400"'],
  ['SVC_PUBLIC_URL', '', 'empty'],
  ['SVC_MAIL_FROM', 'svc', '"svc"'],
  ['SVC_FILES_URL', 's3://key:hush@bucket', '"s3://...@bucket"'],
  ['SVC_FILES_URL', 's3://bucket?secret=hush', '"s3://bucket?..."'],
  ['SVC_FILES_URL', 'file:///a%2Fb', '"file:///a%2Fb"'],
  ['SVC_FILES_OTHER_URL', 's3://key:hush@bucket', '"s3://...@bucket"'],
  ['SVC_KEEP_RUNS_DAYS', '0', '"0"'],
  ['SVC_KEEP_TASK_HISTORY_DAYS', '1.5', '"1.5"'],
  ['SVC_KEEP_FILE_VERSIONS_DAYS', '36501', '"36501"'],
  ['SVC_DATA_DIR', '', 'empty'],
  ['SVC_MODELS_FILE', `/${'x'.repeat(5_000)}`, `"/${'x'.repeat(99)}..."`],
])('%s=%s is refused with a sentence that says what it is, and an example', (name, value, shown) => {
  const [sentence, ...others] = refused({ [name]: value })
  expect(others).toEqual([])
  expect(sentence).toMatch(new RegExp(`^${name} [a-z].*; it is .*\\. Example: ${name}=`))
  expect(sentence).toContain(`it is ${shown}.`)
  expect(sentence).not.toContain('hush')
})

test('a flag is named where it brought the value', () => {
  expect(refused({ SVC_PORT: '4400' }, { port: 'x' })).toEqual([
    '--port must be a whole number from 0 to 65535; it is "x". Example: --port 4400',
  ])
  expect(refused({}, { databaseUrl: 'mysql://me:hush@host/db' })).toEqual([
    '--database-url must be an address that begins with postgres://; it is something else (23 characters, not shown here). Example: --database-url postgres://svc:p%40ss@db.example.com:5432/svc',
  ])
})

test('each setting that cannot be used has its sentence', () => {
  expect(refused({ SVC_PORT: 'a', SVC_LEASE_MS: 'b', SVC_PUBLIC_URL: 'c' })).toHaveLength(3)
})

test('no value of a secret stands in its refusal', () => {
  const hush = 'hush hush'.repeat(2_000)
  for (const name of variableNames) {
    const told = refused({ [name]: hush }).join('\n')
    if ('isSecret' in variables[name]) expect(told, name).not.toContain('hush')
  }
  expect(refused({ SVC_GITHUB_WEBHOOK_SECRET: 'short' })[0]).toContain('something else (5 characters, not shown here)')
  expect(refused({ SVC_LOG_LEVEL: `svc_pat_${'aB3'.repeat(10)}` })[0]).toContain('[redacted:svc_pat]')
})

test.each(['hu@sh', 'hu:sh', 'hu/sh', 'hu?sh', 'hu#sh', 'hu%sh', 'hu@sh:1/x?y', '12/3', 'hu sh', 'a@b:5432/c'])(
  'the password %s in an address of PostgreSQL is to be percent-encoded',
  (password) => {
    const [sentence] = refused({ SVC_DATABASE_URL: `postgres://svc:${password}@db.example.com:5432/svc` })
    expect(sentence).toMatch(/^SVC_DATABASE_URL must be an address whose name and password are percent-encoded/)
    expect(sentence).not.toContain(password)
    const encoded = `postgres://svc:${encodeURIComponent(password)}@db.example.com:5432/svc`
    expect(readConfig({ SVC_DATABASE_URL: encoded }, {}).databaseUrl).toBe(encoded)
  },
)

test.each([
  'postgres://db/svc',
  'postgresql://svc@db/svc',
  'postgres:///svc?host=/var/run/postgresql',
  'postgres://%2Fvar%2Frun/svc',
  'postgres://db:5432/svc?application_name=a@b',
  'postgres://svc:p%40@[::1]:5432/svc?sslmode=require',
])('%s is an address of PostgreSQL', (url) => {
  expect(readConfig({ SVC_DATABASE_URL: url }, {}).databaseUrl).toBe(url)
})

test.each([
  [{ SVC_HEARTBEAT_MS: '90000' }, 'SVC_HEARTBEAT_MS (90000) must be shorter than SVC_LEASE_MS (90000, the default)'],
  [{ SVC_LEASE_MS: '20000' }, 'SVC_HEARTBEAT_MS (25000, the default) must be shorter than SVC_LEASE_MS (20000)'],
  [{ SVC_PING_MS: '45000' }, 'SVC_PING_MS (45000) must be shorter than SVC_DEAD_MS'],
  [{ SVC_DEAD_MS: '1000' }, 'SVC_PING_MS (20000, the default) must be shorter than SVC_DEAD_MS (1000)'],
  [{ SVC_OFFER_MS: '90000' }, 'SVC_OFFER_MS (90000) must be shorter than SVC_LEASE_MS'],
  [{ SVC_OFFER_MS: '5000', SVC_DISPATCH_TIMEOUT_MS: '5000' }, 'must be shorter than SVC_DISPATCH_TIMEOUT_MS (5000)'],
  [{ SVC_SESSION_IDLE_MS: '7200000', SVC_SESSION_MS: '3600000' }, 'must be no longer than SVC_SESSION_MS (3600000)'],
  [{ SVC_SESSION_IDLE_MS: '60000' }, 'SVC_SESSION_IDLE_MS (60000) must be longer than 60000'],
  [{ SVC_NO_PROGRESS_MS: '86400000' }, 'SVC_NO_PROGRESS_MS (86400000) must be no longer than SVC_RUN_TIMEOUT_MS'],
  [{ SVC_FIRST_EVENT_MS: '600001', SVC_NO_PROGRESS_MS: '600000' }, 'must be no longer than SVC_NO_PROGRESS_MS'],
  [{ SVC_FIRST_EVENT_MS: '10', SVC_RUN_TIMEOUT_MS: '9' }, 'must be no longer than SVC_RUN_TIMEOUT_MS (9)'],
  [{ SVC_RUN_TIMEOUT_MS: '86400001' }, 'SVC_RUN_TIMEOUT_MS (86400001) must be no longer than 86400000'],
  [{ SVC_OIDC_ISSUER: 'https://id.example.com' }, 'there is SVC_OIDC_ISSUER without SVC_OIDC_CLIENT_ID and'],
  [{ SVC_EMBEDDINGS_KEY: 'hush' }, 'there is SVC_EMBEDDINGS_KEY without SVC_EMBEDDINGS_URL and'],
  [
    {
      SVC_SANDBOX: 'kubernetes',
      SVC_SANDBOX_NAMESPACE: 'a',
      SVC_SANDBOX_BROKER_HOST: 'b',
      SVC_SANDBOX_IMAGE: `c@sha256:${'ab'.repeat(32)}`,
      SVC_SANDBOX_WARM: '1',
    },
    'SVC_SANDBOX_WARM cannot be set with SVC_SANDBOX=kubernetes, since',
  ],
  [{ SVC_SANDBOX_WARM: '5' }, 'SVC_SANDBOX_WARM (5) must be at most SVC_SANDBOX_MAX (4), since'],
  [{ SVC_GITHUB_APP_ID: '1' }, 'there is SVC_GITHUB_APP_ID without SVC_GITHUB_APP_KEY_FILE'],
  [
    { SVC_GITHUB_TOKEN: 'hush', SVC_GITHUB_APP_ID: '1', SVC_GITHUB_APP_KEY_FILE: '/k' },
    'SVC_GITHUB_TOKEN and SVC_GITHUB_APP_ID are both set',
  ],
] as [Record<string, string>, string][])('%j contradicts itself or a default, and is refused', (env, said) => {
  const [sentence, ...others] = refused(env)
  expect(others).toEqual([])
  expect(sentence).toContain(said)
  expect(sentence).toMatch(/ Example: [A-Z_]+=/)
  expect(sentence).not.toContain('hush')
})

test('the example in a contradiction can be used', () => {
  for (const env of [{ SVC_LEASE_MS: '20000' }, { SVC_DEAD_MS: '1000' }, { SVC_OFFER_MS: '600000' }]) {
    const [, example = ''] = /Example: (.*)$/.exec(refused(env)[0] ?? '') ?? []
    const settings = Object.fromEntries(example.split(' with ').map((each) => each.split('=') as [string, string]))
    expect(refused(settings), example).toEqual([])
  }
})

test('what is shorter by default gives way', () => {
  expect(refused({ SVC_RUN_TIMEOUT_MS: '1800000', SVC_LEASE_MS: '30000' })).toEqual([])
  expect(readConfig({ SVC_SESSION_MS: '3600000' }, {}).sessions).toEqual({ totalMs: 3_600_000, idleMs: 3_600_000 })
})

test('a name that no program of ours reads is told, with the one that was meant, and never its value', () => {
  const env = { SVC_PUBLICURL: 'hush', svc_port: '1', SVC_COMPLETELY_ELSE: 'x', SVC_STATE_DIR: '/s', SVC_TOKEN: 't' }
  expect(readConfig(env, {}).unknownNames).toEqual([
    'SVC_COMPLETELY_ELSE is no setting and is ignored.',
    'SVC_PUBLICURL is no setting and is ignored. Did you mean SVC_PUBLIC_URL?',
    'svc_port is no setting and is ignored. Did you mean SVC_PORT?',
  ])
})

test('the variables of svc, of the device manager and of runs are known', () => {
  const root = join(import.meta.dirname, '../..')
  const read = ['cli', 'device-manager', 'shared/runs'].flatMap((part) =>
    readdirSync(join(root, part), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
      .flatMap((name) => readFileSync(join(root, part, name), 'utf8').match(/\bSVC_[A-Z]+(?:_[A-Z]+)*\b/g) ?? []),
  )
  const known: readonly string[] = [...variableNames, ...namesOfOthers]
  expect([...new Set(read)].filter((name) => !known.includes(name))).toEqual([])
})

test("the operator's commands need no keys of a bucket, and a server does", () => {
  const env = { SVC_FILES_URL: 's3://bucket/prefix' }
  expect(readOperatorConfig(env, {})).not.toHaveProperty('files')
  expect(refused(env)[0]).toContain('SVC_FILES_URL needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY')
})
