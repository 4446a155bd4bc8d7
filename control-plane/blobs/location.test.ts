import { expect, test } from 'vitest'
import { readLocation } from './location.ts'

const keys = { keyId: 'key', secret: 'secret' }

test('a folder and a bucket are read', () => {
  expect(readLocation('file:///srv/svc%20files', keys)).toEqual({ kind: 'disk', folder: '/srv/svc files' })
  expect(readLocation('s3://my-bucket/a/b/?region=eu-central-1', keys)).toEqual({
    kind: 's3',
    endpoint: 'https://s3.eu-central-1.amazonaws.com',
    bucket: 'my-bucket',
    prefix: 'a/b',
    region: 'eu-central-1',
    ...keys,
  })
  expect(readLocation('s3://bucket?endpoint=http://127.0.0.1:9000/', keys)).toMatchObject({
    endpoint: 'http://127.0.0.1:9000',
    prefix: '',
  })
})

test.each([
  ['files', 'must be a URL'],
  ['https://bucket', 'must begin with s3:// or file://'],
  ['file://host/folder', 'names a host'],
  ['s3://bucket?endpiont=x', 'has no parameter endpiont'],
  ['s3:///prefix', 'must name a bucket: s3://bucket/prefix'],
  ['s3://bucket/a b', 'has a prefix with other characters than letters, digits, . _ - /'],
  ['s3://bucket?endpoint=nowhere', 'has an endpoint that is no URL'],
  ['s3://bucket?endpoint=ftp://host', 'has an endpoint that is no URL'],
])('%s %s', (text, sentence) => {
  expect(readLocation(text, keys)).toBe(sentence)
})

test('a bucket needs its keys', () => {
  expect(readLocation('s3://bucket', { keyId: 'key', secret: undefined })).toMatch(/^needs AWS_ACCESS_KEY_ID/)
})
