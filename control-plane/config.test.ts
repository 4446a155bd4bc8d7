import { expect, test } from 'vitest'
import { readConfig } from './config.ts'

test('an empty port is no port, and not any free one', () => {
  expect(() => readConfig({ SVC_PORT: '' }, {})).toThrow('SVC_PORT')
  expect(() => readConfig({ SVC_PORT: ' ' }, {})).toThrow('SVC_PORT')
  expect(readConfig({ SVC_PORT: '0' }, {}).port).toBe(0)
  expect(readConfig({ SVC_PORT: '4401' }, { port: 0 }).port).toBe(0)
  expect(readConfig({}, {}).port).toBe(4400)
})

test.each([
  ['http://127.0.0.1:9000', true],
  ['http://127.1.2.3:9000', true],
  ['http://[::1]:9000', true],
  ['http://localhost:9000', true],
  ['http://127.example.com', false],
  ['http://127.0.0.1.example.com', false],
])('%s is on this machine: %s', (url, isHere) => {
  const read = () => readConfig({ SVC_GITHUB_API_URL: url }, {})
  if (isHere) expect(read().github.apiUrl).toBe(url)
  else expect(read).toThrow('begins with https://')
})

test('only where another replica can be, a server that ends tells of it for a while, unless it is told how long', () => {
  const drainMs = (env: Record<string, string>) => readConfig(env, {}).drainMs
  const shared = { SVC_DATABASE_URL: 'postgres://svc@db.example.com/svc' }
  expect(drainMs({})).toBe(0)
  expect(drainMs(shared)).toBe(5_000)
  expect(drainMs({ ...shared, SVC_DRAIN_MS: '0' })).toBe(0)
  expect(drainMs({ SVC_DRAIN_MS: '2000' })).toBe(2_000)
})

test('files move from another place only, however both are written', () => {
  const bucket = 's3://bucket/files'
  const keys = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' }
  const read = (files: string | undefined, other: string) =>
    readConfig(
      {
        ...keys,
        SVC_DATA_DIR: '/data',
        ...(files === undefined ? {} : { SVC_FILES_URL: files }),
        SVC_FILES_OTHER_URL: other,
      },
      {},
    ).otherFiles
  for (const [files, other] of [
    [undefined, 'file:///data/files'],
    ['file:///srv/files', 'file:///srv/files/'],
    [bucket, `${bucket}/?region=us-east-1`],
  ] as const)
    expect(() => read(files, other)).toThrow('another place than that of SVC_FILES_URL')
  expect(read(bucket, 'file:///data/files')).toEqual({ kind: 'disk', folder: '/data/files' })
  expect(read('file:///srv/files', bucket)).toMatchObject({ kind: 's3', bucket: 'bucket' })
  expect(read(bucket, 's3://bucket/other')).toMatchObject({ prefix: 'other' })
})
