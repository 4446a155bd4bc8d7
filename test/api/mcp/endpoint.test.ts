import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { codeOf, TestServer, type AgentCaller } from '../../kit/server.ts'

let server: TestServer
const clients: Client[] = []
beforeAll(async () => {
  server = await TestServer.start({ settings: { SVC_STREAM_CHECK_MS: '50' } })
})
afterAll(async () => {
  for (const client of clients) await client.close()
  await server.stop()
})

const path = '/mcp'

async function connect(token: string, mode: 'auto' | 'legacy' = 'auto'): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  const url = new URL(`${server.plane.localUrl}/api/v1${path}`)
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit }))
  clients.push(client)
  return client
}

interface Told {
  isError: boolean
  text: string
}
async function use(client: Client, name: string, args: Record<string, unknown> = {}): Promise<Told> {
  const result = await client.callTool({ name, arguments: args })
  const [content] = result.content as { type: string; text: string }[]
  return { isError: result.isError === true, text: content!.text }
}
const json = ({ isError, text }: Told) => {
  expect(isError, text).toBe(false)
  return JSON.parse(text) as Record<string, unknown>
}
const code = ({ isError, text }: Told): unknown => {
  expect(isError, text).toBe(true)
  return (JSON.parse(text) as { error: { code: string } }).error.code
}

/** One message as a client of 2025-11-25 sends it, without the help of one. */
const message = (method: string, params: object = {}, token: string | null = server.owner.token) =>
  server.ask(`/api/v1${path}`, {
    method: 'POST',
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    headers: {
      ...(token !== null && { authorization: `Bearer ${token}` }),
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
    },
  })

describe.each(['auto', 'legacy'] as const)('a client that speaks %s', (mode) => {
  it('lists the same tools in the same order for everybody', async () => {
    const owner = await connect(server.owner.token, mode)
    const member = await connect((await server.addPerson('member')).token, mode)
    const { tools } = await owner.listTools()
    expect(tools).toEqual((await member.listTools()).tools)
    const names = tools.map(({ name }) => name)
    expect(names.slice(-2)).toEqual(['find_routes', 'call_route'])
    expect(names).toContain('task_create')
    expect(names.length).toBeGreaterThan(20)
    expect(new Set(names).size).toBe(names.length)
    for (const { inputSchema } of tools) expect(inputSchema.type).toBe('object')
  })

  it('makes a task, finds it again and changes it', async () => {
    const client = await connect(server.owner.token, mode)
    const { id } = json(await use(client, 'task_create', { title: `By a tool that speaks ${mode}` }))
    expect(json(await use(client, 'task_get', { id }))).toMatchObject({ id, title: `By a tool that speaks ${mode}` })
    expect(json(await use(client, 'task_list', { ids: [id], include: ['description'] }))).toMatchObject({
      data: [{ id }],
    })
    const changed = { route: 'tasks.update', arguments: { id, title: 'By another' } }
    expect(json(await use(client, 'call_route', changed))).toMatchObject({ id, title: 'By another' })
  })

  it('finds routes that have no tool of their own, with what they take', async () => {
    const client = await connect(server.owner.token, mode)
    const { text } = await use(client, 'find_routes', { words: 'pause an automation' })
    const found = JSON.parse(text) as { route: string; arguments: { required: string[] } }[]
    expect(found[0]).toMatchObject({ route: 'automations.pause', arguments: { required: ['automationId'] } })
  })
})

describe('a call of a tool', () => {
  let owner: Client, agent: Client, caller: AgentCaller
  beforeAll(async () => {
    owner = await connect(server.owner.token)
    caller = await server.agentCaller()
    agent = await connect(caller.token)
  })

  it('is made once for its key, however often it is sent', async () => {
    const args = { title: 'Once', idempotencyKey: 'once-and-for-all' }
    const [first, second] = [await use(owner, 'task_create', args), await use(owner, 'task_create', args)]
    expect(json(second)['id']).toBe(json(first)['id'])
    const other = await use(owner, 'task_create', { ...args, title: 'Another' })
    expect(code(other)).toBe('idempotency_key_reused')
    expect(code(await use(owner, 'task_create', { ...args, idempotencyKey: 'a b' }))).toBe('validation_error')
  })

  it('answers the code that the route answers', async () => {
    expect(code(await use(owner, 'task_get', { id: 'MAI-999' }))).toBe('task_not_found')
    expect(code(await use(owner, 'task_list', { status: 'no such' }))).toBe(
      codeOf(await server.call('/tasks?status=no%20such')),
    )
    expect(code(await use(owner, 'task_list', { unheardOf: 1 }))).toBe('validation_error')
    expect(code(await use(owner, 'task_create', { title: '' }))).toBe('validation_error')
    expect(code(await use(owner, 'call_route', { route: 'auth.me', arguments: { a: 1 } }))).toBe('route_not_found')
  })

  it.each(['', '.', '..', 7, null, undefined])('calls no other route for the id %s', async (id) => {
    const args = id === undefined ? {} : { id }
    expect(code(await use(owner, 'task_get', args))).toBe('validation_error')
  })

  it('of an id with slashes stays at its route', async () => {
    const direct = await server.call(`/tasks/${encodeURIComponent('../agents?x=1#')}`)
    expect(code(await use(owner, 'task_get', { id: '../agents?x=1#' }))).toBe(codeOf(direct))
  })

  it('is refused to an agent where only people may call', async () => {
    const direct = await server.call('/members', { token: caller.token })
    expect(code(await use(agent, 'call_route', { route: 'members.list' }))).toBe(codeOf(direct))
  })

  it('of an agent that needs a person answers the approval to wait for, and changes nothing', async () => {
    const { text } = await use(agent, 'call_route', { route: 'agents.create', arguments: { name: 'Made by an agent' } })
    expect(text).toMatch(/apr_[\s\S]*A person decides/)
    expect((await server.ok('/agents?q=Made%20by')).data).toEqual([])
  })

  it('does not offer what answers secrets, streams or takes bytes', async () => {
    for (const route of ['workspaces.export', 'webhooks.receive', 'skills.shares.share', 'files.download'])
      expect(code(await use(owner, 'call_route', { route, arguments: {} }))).toMatch(/route_not_found|validation_error/)
  })

  it('that is large takes the room of one, and its request to the API that of another', async () => {
    const bundle = {
      files: [
        { path: 'SKILL.md', content: '---\nname: large\ndescription: Large.\n---\nText.' },
        { path: 'large.txt', content: 'x'.repeat(13 * 1024 * 1024) },
      ],
    }
    const made = json(
      await use(owner, 'call_route', { route: 'skills.create', arguments: { slug: 'large', name: 'Large', bundle } }),
    )
    expect(made).toMatchObject({ slug: 'large' })
  })

  it('whose answer is too large says so', async () => {
    const body = 'x'.repeat(60_000)
    const { id } = json(await use(owner, 'task_create', { title: 'Long' }))
    for (let made = 0; made < 18; made++) await use(owner, 'comment_add', { taskId: id, body })
    const told = await use(owner, 'comment_list', { taskId: id, limit: 100 })
    expect(told).toMatchObject({ isError: true, text: expect.stringContaining('more than 1 MiB') as string })
    expect((await use(owner, 'comment_list', { taskId: id, limit: 5 })).isError).toBe(false)
  })
})

describe('the endpoint', () => {
  it('answers a client without sessions', async () => {
    expect((await message('tools/list')).status).toBe(200)
    const unknown = await message('tools/call', { name: 'no_such_tool', arguments: {} })
    expect(unknown.text).toMatch(/-32602/)
  })

  it('takes tokens alone, and not the cookie of a browser', async () => {
    expect((await message('tools/list', {}, null)).text).toContain('auth_missing')
    expect((await message('tools/list', {}, 'svc_pat_wrong')).status).toBe(401)
    const reply = await server.call(path, {
      token: null,
      body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      headers: { cookie: 'svc_session=anything', accept: 'application/json, text/event-stream' },
    })
    expect(codeOf(reply)).toBe('auth_missing')
  })

  it('stops taking a token as soon as its run is over', async () => {
    const { token, runId } = await server.agentCaller()
    expect((await message('tools/list', {}, token)).status).toBe(200)
    await server.ok(`/runs/${runId}/cancel`, { body: {} })
    expect((await message('tools/list', {}, token)).status).toBe(401)
  })

  it('refuses several messages at once, what is no JSON, and other methods', async () => {
    const one = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    const many = await server.call(path, {
      body: [one, one],
      headers: { accept: 'application/json, text/event-stream' },
    })
    expect(codeOf(many)).toBe('validation_error')
    const { status } = await server.ask('/api/v1/mcp', {
      method: 'POST',
      headers: { authorization: `Bearer ${server.owner.token}`, 'content-type': 'application/json' },
      body: '{',
    })
    expect(status).toBe(400)
    for (const method of ['GET', 'DELETE']) {
      const other = await server.ask('/api/v1/mcp', {
        method,
        headers: { authorization: `Bearer ${server.owner.token}` },
      })
      expect(other.status, method).toBe(405)
    }
  })

  it('ends what its reader listens to once they have lost the right', async () => {
    const { token, runId } = await server.agentCaller()
    const client = await connect(token)
    const listening = await client.listen({ toolsListChanged: true })
    await server.ok(`/runs/${runId}/cancel`, { body: {} })
    expect(await listening.closed).not.toBe('local')
  })
})
