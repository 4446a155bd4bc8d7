import { afterAll, beforeAll, expect, test } from 'vitest'
import { addUser } from '../../../control-plane/operator/people.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

test('the workspace is the caller’s, under both names, for people and agents', async () => {
  const token = await server.runToken(await server.startRun((await server.createAgent()).id))
  const workspace = await server.ok('/workspaces')
  expect(workspace).toMatchObject({
    id: server.owner.workspaceId,
    slug: 'main',
    status: 'active',
    issuePrefix: 'MAI',
    issueCounter: 0,
    agentsPaused: false,
    idleCompaction: { enabled: false, afterMinutes: 55, minTokens: 100_000 },
    sandboxSize: null,
    monthlyBudgetCents: null,
    oomResume: false,
    sandboxEgress: [],
    cloudEnabled: true,
  })
  expect(await server.ok('/companies')).toEqual(workspace)
  expect(await server.ok('/workspaces', { token })).toEqual(workspace)
  const { root } = server.database
  await root('workspaces')
    .where({ id: workspace.id })
    .update({ sandbox_size: 'large', default_reasoning_effort: 'high' })
  expect(await server.ok('/workspaces')).toMatchObject({ sandboxSize: 'large', defaultReasoningEffort: 'high' })
})

test('a person sees all workspaces it belongs to, with its role in each', async () => {
  const person = await server.addPerson('member')
  const { root } = server.database
  // They are listed in the order in which the person joined.
  server.world.advance(1)
  await root.transaction((tx) =>
    addUser(tx, server.world, { name: 'x', email: person.email, role: 'admin', workspace: 'second-home' }),
  )
  for (const path of ['/user/workspaces', '/user/companies'])
    expect(await server.ok(path, { token: person.token })).toEqual({
      object: 'list',
      data: [
        expect.objectContaining({ id: person.workspaceId, slug: 'main', role: 'member', companyName: 'Main' }),
        expect.objectContaining({
          slug: 'second-home',
          name: 'Second Home',
          role: 'admin',
          publicId: expect.stringMatching(/^ws_/),
          companyId: expect.any(String),
        }),
      ],
      hasMore: false,
      nextCursor: null,
      cursor: null,
    })
  const token = await server.runToken(await server.startRun((await server.createAgent()).id))
  expect(outcomeOf(await server.call('/user/workspaces', { token }))).toBe('403 http_exception')
})

test('members are the people of the workspace, first joined first; agents have no access', async () => {
  const owner = await server.addPerson('owner', 'team')
  server.world.advance(1)
  const second = await server.addPerson('member', 'team')
  expect((await server.ok('/members', { token: owner.token })).data).toEqual([
    { userId: owner.userId, name: 'owner', email: owner.email, role: 'owner' },
    { userId: second.userId, name: 'member', email: second.email, role: 'member' },
  ])
  const token = await server.runToken(await server.startRun((await server.createAgent()).id))
  expect(outcomeOf(await server.call('/members', { token }))).toBe('403 agent_no_workspace_access')
})
