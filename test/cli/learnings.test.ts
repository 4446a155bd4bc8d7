import { afterEach, beforeEach, expect, test } from 'vitest'
import { refusal, type Received } from './api-server.ts'
import { makeServedHome, signedIn, type ServedHome } from './served-home.ts'

let home: ServedHome
const id = (letter: string) => `lrn_${letter.repeat(16)}`

beforeEach(() => {
  home = makeServedHome()
})
afterEach(() => home.close())

const sent = () => home.api.received.filter(({ method }) => method === 'POST').map(({ body }) => body)

test('each source belongs to the bullet before it', async () => {
  const env = await home.inRun(() => ({ status: 201, body: { id: id('a') } }))
  const line = ['learning', 'add', '--topic', 'Releases', '--bullet', 'Tag first.', '--source', 'https://a.example/1']
  const end = await home.svc(
    [
      ...line,
      '--source=https://a.example/2',
      '--bullet=- Then write.',
      '--source',
      'pinework://run/run_1',
      '--entity',
      'tool:git',
    ],
    { env },
  )
  expect([end.status, end.stderr]).toEqual([0, ''])
  expect(sent()).toEqual([
    {
      topic: 'Releases',
      bullets: [
        { text: 'Tag first.', sources: ['https://a.example/1', 'https://a.example/2'] },
        { text: '- Then write.', sources: ['pinework://run/run_1'] },
      ],
      entities: [{ type: 'tool', name: 'git' }],
    },
  ])
})

test.each([
  ['no bullet', []],
  ['a source before any bullet', ['--source', 'https://a.example', '--bullet', 'x']],
  ['a bullet without a source', ['--bullet', 'x', '--source', 'https://a.example', '--bullet', 'y']],
  ['a tag without a name', ['--bullet', 'x', '--source', 'https://a.example', '--entity', 'tool:']],
])('%s is a mistake of the line', async (_, words) => {
  const env = await home.inRun(() => ({ status: 201, body: {} }))
  expect((await home.svc(['learning', 'add', '--topic', 'x', ...words], { env })).status).toBe(2)
  expect(home.api.received).toEqual([])
})

const approvals = { [id('a')]: 'apr_a', [id('b')]: 'apr_b', [id('c')]: 'apr_c' }

/** Learnings of which the second was decided about already. */
function decided({ method, path, query }: Received) {
  const days = { [id('a')]: '2026-03-03', [id('b')]: '2026-03-02', [id('c')]: '2026-02-28' }
  if (path.endsWith('/learnings')) {
    const ids = query.get('after') === null ? [id('a'), id('b')] : [id('c')]
    const data = ids.map((each) => ({ id: each, createdAt: `${days[each]}T00:00:00.000Z` }))
    return { body: { object: 'list', data, nextCursor: ids.length === 2 ? 'more' : null } }
  }
  if (method === 'POST') return path.includes('apr_b') ? refusal(409, 'approval_resolved') : { body: {} }
  const asked = path.split('/').at(-1)!
  const approvalId = approvals[asked]
  if (approvalId === undefined) return refusal(404, 'learning_not_found')
  return { body: { id: asked, approvalId, status: 'proposed' } }
}

test('one is accepted with a note, and shown', async () => {
  await signedIn(home, decided)
  const end = await home.svc(['learning', 'accept', id('a'), '--note', 'Good'])
  expect([end.status, JSON.parse(end.stdout)]).toMatchObject([0, { id: id('a') }])
  expect(home.api.received.map(({ method, path }) => `${method} ${path}`)).toEqual([
    `GET /api/v1/learnings/${id('a')}`,
    'POST /api/v1/approvals/apr_a/approve',
    `GET /api/v1/learnings/${id('a')}`,
  ])
  expect(sent()).toEqual([{ reason: 'Good' }])
})

test('of several each has its own outcome, and one that is refused stops none', async () => {
  await signedIn(home, decided)
  const end = await home.svc(['learning', 'reject', '--ids', `${id('b')},${id('x')},${id('a')}`])
  expect(end.status).toBe(1)
  expect(JSON.parse(end.stdout).data).toMatchObject([
    { id: id('b'), ok: false, status: null, error: { code: 'approval_resolved' } },
    { id: id('x'), ok: false, error: { code: 'learning_not_found' } },
    { id: id('a'), ok: true, status: 'rejected', error: null },
  ])
})

test('all that were proposed before a day are decided about, the oldest first', async () => {
  await signedIn(home, decided)
  const end = await home.svc(['learning', 'accept', '--all-proposed-before', '2026-03-02'])
  expect([end.status, JSON.parse(end.stdout).data]).toMatchObject([0, [{ id: id('c'), ok: true, status: 'accepted' }]])
  const asked = home.api.received.filter(({ path }) => path.endsWith('/learnings'))
  expect(asked.map(({ query }) => query.get('status'))).toEqual(['proposed', 'proposed'])
})

test('a line that names none, or in two ways, or a day that is none, is a mistake', async () => {
  await signedIn(home, decided)
  for (const words of [[], [id('a'), '--ids', id('b')], ['--all-proposed-before', 'yesterday'], ['--ids', ',']])
    expect((await home.svc(['learning', 'accept', ...words])).status).toBe(2)
  expect(home.api.received).toEqual([])
})

test('a run decides about none', async () => {
  const env = await home.inRun(() => ({ body: {} }))
  const end = await home.svc(['learning', 'accept', id('a')], { env })
  expect([end.status, end.stderr]).toEqual([1, expect.stringContaining('agent_cannot_resolve_approval')])
  expect(home.api.received).toEqual([])
})
