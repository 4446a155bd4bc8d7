import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isTriedHere } from '../../kit/replicas.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { makeTask } from '../facts/kit/tasks.ts'
import { as, base64, startFilesServer, upload, type FilesServer } from './files-kit.ts'

// Files: their bytes, versions, types, and their end.

let server: TestServer
let stored: FilesServer['stored'], cut: FilesServer['cut']
let member: Person
beforeAll(async () => {
  ;({ server, stored, cut } = await startFilesServer())
  member = await server.addPerson('member')
})
afterAll(() => server.stop())

const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const get = async (path: string, headers: Record<string, string> = {}) => {
  const { url } = await server.ok(path)
  return fetch(url, { headers })
}
const codeOf = async (path: string, options: Parameters<TestServer['call']>[1] = {}) =>
  outcomeOf(await server.call(path, options))

test('an uploaded file is shown, read and downloaded', async () => {
  const content = 'Grüße, 世界\n'
  const file = await upload(server, { name: 'Grüße.md', content, description: 'A greeting', token: member.token })
  expect(file).toMatchObject({
    object: 'file',
    id: expect.stringMatching(/^file_[0-9A-Za-z]{16}$/),
    name: 'Grüße.md',
    contentType: 'text/markdown',
    sizeBytes: Buffer.byteLength(content),
    description: 'A greeting',
    ownerUserId: member.userId,
    createdBy: { type: 'user', id: member.userId, name: 'member' },
    visibility: 'company',
    sha256: sha256(content),
    textPreview: content,
    revisionCount: 1,
    deletedAt: null,
  })
  expect((await server.ok(`/files/${file.id}?expand[]=content`)).content).toBe(content)
  expect(await server.ok(`/files/${file.id}`)).not.toHaveProperty('content')
  const answer = await get(`/files/${file.id}/download`)
  expect([answer.status, await answer.text()]).toEqual([200, content])
  const [listed] = (await server.ok('/files')).data
  expect(Object.keys(listed).toSorted()).toEqual(
    ['contentType', 'createdAt', 'description', 'id', 'name', 'object', 'sizeBytes', 'updatedAt'].toSorted(),
  )
})

test('bytes that the storage has in part are told as its trouble, and not as a short file', async () => {
  const file = await upload(server, { content: 'All of these words.' })
  const [{ blob_id: blobId }] = await server.database.root('files').where({ id: file.id }).select('blob_id')
  const { url } = await server.ok(`/files/${file.id}/download`)
  cut(blobId, 6)
  expect(await codeOf(`/files/${file.id}?expand[]=content`)).toBe('503 storage_unavailable')
  for (const headers of [{}, { range: 'bytes=0-3' }, { range: 'bytes=9-' }])
    expect((await fetch(url, { headers })).status).toBe(503)
})

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

const typed: [name: string, content: string | Uint8Array, contentType: string, isText: boolean][] = [
  ['photo', png, 'image/png', false],
  ['photo.png', 'no picture', 'image/png', true],
  ['photo.txt', png, 'text/plain', false],
  ['report.PDF', 'no PDF', 'application/pdf', true],
  ['clip.ts', Uint8Array.of(0x47, 0, 1, 2), 'video/mp2t', false],
  ['main.ts', 'export const a = 1\n', 'text/plain', true],
  ['page.html', '<!doctype html><p>Hi</p>', 'text/html', true],
  ['picture.svg', '<svg xmlns="http://www.w3.org/2000/svg"/>', 'image/svg+xml', true],
  ['a.json', '{"a":1}', 'application/json', true],
  ['README', 'Read me.', 'text/plain', true],
  ['data.bin', Uint8Array.of(0, 1, 0, 0), 'application/octet-stream', false],
  ['data', Uint8Array.of(0, 1, 2, 3), 'application/octet-stream', false],
  [
    'sheet.xlsx',
    Uint8Array.of(0x50, 0x4b, 3, 4, 0, 0),
    'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
    false,
  ],
  ['empty.txt', '', 'text/plain', true],
]
// A type is found out from the name and the bytes alone, whichever replica has them.
test.each(isTriedHere ? typed : typed.slice(0, 1))(
  '%s has the type of its name, else of its bytes',
  async (name, content, contentType, isText) => {
    const file = await upload(server, { name, content })
    expect([file.contentType, file.textPreview !== null]).toEqual([contentType, isText])
    const sent = await upload(server, { name, content, contentType: 'text/x-other' })
    expect(sent.contentType).toBe('text/x-other')
  },
)

if (isTriedHere)
  test('text within an answer has its caps, and what is no text has none', async () => {
    const { token } = await server.agentCaller()
    const large = await upload(server, { content: 'x'.repeat(51_201) })
    const most = await upload(server, { content: 'x'.repeat(51_200) })
    expect((await server.ok(`/files/${most.id}?expand[]=content`, as(token))).content).toHaveLength(51_200)
    expect(await codeOf(`/files/${large.id}?expand[]=content`, as(token))).toBe('400 expand.content_too_large')
    expect((await server.ok(`/files/${large.id}?expand[]=content`)).content).toHaveLength(51_201)
    const larger = await upload(server, { content: 'x'.repeat(1_048_577) })
    expect(await codeOf(`/files/${larger.id}?expand[]=content`)).toBe('400 expand.content_too_large')
    expect(larger.textPreview).toHaveLength(500)
    const picture = await upload(server, { content: png })
    expect(await server.ok(`/files/${picture.id}?expand[]=content`)).not.toHaveProperty('content')
  })

test('each version can be downloaded while the file is active', async () => {
  const { id } = await upload(server, { content: 'one' })
  const { body } = await server.call(`/files/${id}/replace`, {
    body: { contentBase64: base64('two!') },
    token: member.token,
  })
  expect(body).toMatchObject({ revisionCount: 2, sizeBytes: 4, sha256: sha256('two!'), textPreview: 'two!' })
  const { data } = await server.ok(`/files/${id}/revisions`)
  expect(data).toMatchObject([
    { version: 2, sizeBytes: 4, author: { type: 'user', id: member.userId, name: 'member' } },
    { version: 1, sizeBytes: 3, sha256: sha256('one'), author: { id: server.owner.userId } },
  ])
  for (const [at, content] of ['two!', 'one'].entries())
    expect(await (await get(`/files/${id}/revisions/${data[at].id}/download`)).text()).toBe(content)
  const { data: page, nextCursor } = await server.ok(`/files/${id}/revisions?limit=1`)
  const rest = await server.ok(`/files/${id}/revisions?limit=1&after=${nextCursor}`)
  expect([...page, ...rest.data].map(({ version }: { version: number }) => version)).toEqual([2, 1])
  await server.ok('/files/bulk-delete', { body: { fileIds: [id] } })
  expect(await codeOf(`/files/${id}/revisions/${data[1].id}/download`)).toBe('404 resource_not_found')
})

test('versions that are written at the same time all come to be, each with its own number', async () => {
  const { id } = await upload(server, { content: '0' })
  const replies = await Promise.all(
    Array.from({ length: 6 }, (_, at) =>
      server.call(`/files/${id}/replace`, { body: { contentBase64: base64(`version ${at}`) } }),
    ),
  )
  const good = replies.filter(({ status }) => status === 200)
  expect(good.length).toBeGreaterThan(0)
  expect(replies.filter(({ status }) => status !== 200).map(outcomeOf)).toEqual(
    replies.filter(({ status }) => status !== 200).map(() => '503 transient_conflict'),
  )
  const { data } = await server.ok(`/files/${id}/revisions`)
  expect(data.map(({ version }: { version: number }) => version)).toEqual(
    Array.from({ length: good.length + 1 }, (_, at) => good.length + 1 - at),
  )
  const file = await server.ok(`/files/${id}`)
  expect(await (await get(`/files/${id}/download`)).text()).toMatch(/^version \d$/)
  expect([file.revisionCount, file.sha256]).toEqual([good.length + 1, data[0].sha256])
})

test('a deleted file loses its current bytes at once; files deleted together keep theirs and come back', async () => {
  const before = stored().length
  const [one, two] = [await upload(server, { token: member.token }), await upload(server, { token: member.token })]
  const task = await makeTask({ server })
  await server.ok(`/files/${two.id}/relations`, { body: { entityType: 'task', entityId: task.key, role: 'spec' } })
  expect((await server.call(`/files/${one.id}`, { method: 'DELETE', token: member.token })).status).toBe(204)
  await server.plane.sweeper.runAll()
  expect(stored()).toHaveLength(before + 1)
  expect(await codeOf(`/files/${one.id}/restore`, { method: 'POST' })).toBe('422 restore_r2_gone')
  const unknown = 'file_0000000000000000'
  const { results } = await server.ok('/files/bulk-delete', { body: { fileIds: [two.id, two.id, unknown, 'x'] } })
  expect(results).toEqual([
    { fileId: two.id, ok: true },
    { fileId: two.id, ok: false, code: 'file_not_found' },
    { fileId: unknown, ok: false, code: 'file_not_found' },
    { fileId: 'x', ok: false, code: 'file_not_found' },
  ])
  for (const path of [`/files/${two.id}`, `/files/${two.id}/download`, `/files/${two.id}/relations`])
    expect([path, await codeOf(path)]).toEqual([path, '404 resource_not_found'])
  expect((await server.ok(`/files/${two.id}?includeDeleted=true`)).deletedAt).not.toBeNull()
  expect(await codeOf(`/files/${two.id}?includeDeleted=true&expand[]=content`)).toBe('400 kind_mismatch')
  const deleted = (await server.ok('/files?status=deleted')).data
  expect(deleted.slice(0, 2)).toMatchObject([{ id: two.id }, { id: one.id }])
  // Those that were deleted together can be brought back for ten minutes.
  const { deletedAt } = await server.ok(`/files/${two.id}?includeDeleted=true`)
  expect(Date.parse(deleted[0].restorableUntil) - Date.parse(deletedAt)).toBe(10 * 60_000)
  expect(deleted[1].restorableUntil).toBeNull()
  const other = await server.addPerson('member')
  expect(await codeOf(`/files/${two.id}/restore`, { method: 'POST', ...as(other.token) })).toBe('403 restore_forbidden')
  const restored = await server.ok(`/files/${two.id}/restore`, { method: 'POST', ...as(member.token) })
  expect(restored.deletedAt).toBeNull()
  expect(await codeOf(`/files/${two.id}/restore`, { method: 'POST', ...as(other.token) })).toBe('409 not_deleted')
  expect((await server.ok(`/files/${two.id}/relations`)).data).toEqual([])
  expect(await (await get(`/files/${two.id}/download`)).text()).toBe('Some notes.')
})

test('ten minutes after its deletion nothing is left of a file', async () => {
  const before = stored().length
  const { id } = await upload(server, {})
  await server.ok(`/files/${id}/replace`, { body: { contentBase64: base64('two') } })
  await server.ok('/files/bulk-delete', { body: { fileIds: [id] } })
  server.world.advance(10 * 60_000 - 5_000)
  await server.plane.sweeper.runAll()
  expect(stored()).toHaveLength(before + 2)
  server.world.advance(6_000)
  await server.plane.sweeper.runAll()
  expect(await codeOf(`/files/${id}?includeDeleted=true`)).toBe('404 resource_not_found')
  expect(await codeOf(`/files/${id}/restore`, { method: 'POST' })).toBe('404 resource_not_found')
  expect(stored().length).toBeLessThanOrEqual(before)
})

test('a removed workspace takes its bytes along', async () => {
  const before = stored().length
  const stranger = await server.addPerson('owner', 'shortlived')
  await upload(server, { token: stranger.token })
  expect(stored()).toHaveLength(before + 1)
  const { name, id } = await server.ok('/workspaces', as(stranger.token))
  const reply = await server.call(`/workspaces/${id}`, {
    method: 'DELETE',
    body: { confirmName: name },
    token: stranger.token,
  })
  expect(reply.status).toBeLessThan(300)
  await expect.poll(() => server.database.root('workspaces').where({ id })).toEqual([])
  await server.plane.sweeper.runAll()
  expect(stored()).toHaveLength(before)
})

if (isTriedHere)
  test('bytes are given in ranges, once more only when they changed, and never to be run', async () => {
    const content = '0123456789'
    const { id } = await upload(server, { name: 'x".html', content, contentType: 'text/html' })
    const path = `/files/${id}/download`
    const whole = await get(path)
    expect(Object.fromEntries(whole.headers)).toMatchObject({
      'content-type': 'text/html',
      'content-disposition': `attachment; filename="x_.html"; filename*=UTF-8''x%22.html`,
      'x-content-type-options': 'nosniff',
      'content-security-policy': expect.stringContaining('sandbox'),
      'content-length': '10',
      etag: `"${sha256(content)}"`,
    })
    const part = async (range: string, more: Record<string, string> = {}) => {
      const answer = await get(path, { range, ...more })
      return [answer.status, answer.headers.get('content-range'), await answer.text()]
    }
    expect(await part('bytes=2-4')).toEqual([206, 'bytes 2-4/10', '234'])
    expect(await part('bytes=7-')).toEqual([206, 'bytes 7-9/10', '789'])
    expect(await part('bytes=-3')).toEqual([206, 'bytes 7-9/10', '789'])
    expect(await part('bytes=5-100')).toEqual([206, 'bytes 5-9/10', '56789'])
    expect((await part('bytes=10-')).slice(0, 2)).toEqual([416, 'bytes */10'])
    expect(await part('bytes=1-2,4-5')).toEqual([200, null, content])
    expect(await part('bytes=2-4', { 'if-range': '"other"' })).toEqual([200, null, content])
    expect((await get(path, { 'if-none-match': `"x", "${sha256(content)}"` })).status).toBe(304)
    for (const [name, body, isShown] of [
      ['a.png', png, true],
      ['a.txt', 'text', true],
      ['a.svg', '<svg xmlns="http://www.w3.org/2000/svg"/>', false],
      ['a.pdf', '%PDF-1.7', false],
    ] as const) {
      const file = await upload(server, { name, content: body })
      const disposition = (await get(`/files/${file.id}/download`)).headers.get('content-disposition')
      expect([name, disposition?.startsWith('inline')]).toEqual([name, isShown])
    }
  })

test('a signed URL is for one version of one file, and for 300 seconds', async () => {
  const [one, two] = [await upload(server, {}), await upload(server, { content: 'Others.' })]
  const { url, expiresAt } = await server.ok(`/files/${one.id}/download`)
  const other = await server.ok(`/files/${two.id}/download`)
  const seconds = (Date.parse(expiresAt) - server.world.now()) / 1_000
  expect(seconds).toBeGreaterThan(298)
  expect(seconds).toBeLessThanOrEqual(300)
  const altered = [
    url.replace(one.id, two.id),
    `${url}x`,
    url.replace(/expires=\d+/, (text: string) => text.replace(/\d$/, (digit) => String((Number(digit) + 1) % 10))),
    url.replace(/signature=[^&]+/, ''),
    url.replace(/\?.*/, ''),
    url.replace(/\?.*/, new URL(other.url).search),
  ]
  for (const each of altered) expect([each, (await fetch(each)).status]).toEqual([each, 403])
  // Only GET takes a range (RFC 9110, section 14.2).
  for (const headers of [{}, { range: 'bytes=0-1' }, { range: 'bytes=99-' }]) {
    const head = await fetch(url, { method: 'HEAD', headers })
    expect([head.status, head.headers.get('content-length')]).toEqual([200, '11'])
  }
  expect((await fetch(url, { method: 'POST' })).status).toBe(404)
  server.world.advance(301_000)
  expect((await fetch(url)).status).toBe(403)
  const fresh = await server.ok(`/files/${one.id}/download`)
  await server.ok('/files/bulk-delete', { body: { fileIds: [one.id] } })
  expect((await fetch(fresh.url)).status).toBe(404)
})
