import { expect, test } from 'vitest'
import { uploadsIn } from './s3-uploads.ts'

const [first, second] = [
  { Key: 'a/blb_1', UploadId: 'u1', Initiated: '2026-11-01T00:00:00Z' },
  { Key: 'a/blb_1', UploadId: 'u2' },
]
const named = (Upload: unknown) => ({ ListMultipartUploadsResult: { Bucket: 'b', IsTruncated: 'false', Upload } })

test.each([
  [['u1'], named(first)],
  [['u1', 'u2'], named([first, second])],
  [[], named(undefined)],
  [[], { ListMultipartUploadsResult: '' }],
  [[], { Error: { Code: 'NotImplemented' } }],
  [[], 'no XML'],
  [[], null],
])('the uploads %j are named', (ids, listed) => {
  expect(uploadsIn(listed).map(({ UploadId }) => UploadId)).toEqual(ids)
})
