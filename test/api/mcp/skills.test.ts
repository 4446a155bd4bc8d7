import { createHash } from 'node:crypto'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { z } from 'zod'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { TestServer, type Person } from '../../kit/server.ts'
import { makePluginSkill } from '../facts/kit/plugins.ts'
import { makeSkill, newBundle } from '../facts/kit/skills.ts'

// Skills of a workspace as MCP serves them to the harness of a person.

let server: TestServer, member: Person, owner: Client
const clients: Client[] = []
beforeAll(async () => {
  server = await TestServer.start()
  member = await server.addPerson('member')
  owner = await connect(server.owner.token)
})
afterAll(async () => {
  for (const client of clients) await client.close()
  await server.stop()
})

async function connect(token: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  const url = new URL(`${server.plane.localUrl}/api/v1/mcp`)
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit }))
  clients.push(client)
  return client
}

const listed = z.looseObject({
  skills: z.array(
    z.looseObject({
      uri: z.string(),
      resources: z.array(z.object({ uri: z.string(), digest: z.string(), size: z.number() })),
    }),
  ),
  nextCursor: z.string().optional(),
})
async function list(client = owner) {
  const found: z.infer<typeof listed>['skills'] = []
  for (let cursor: string | undefined, more = true; more;) {
    const params = cursor === undefined ? {} : { cursor }
    const page = await client.request({ method: 'skills/list', params }, listed)
    found.push(...page.skills)
    cursor = page.nextCursor
    more = cursor !== undefined
  }
  return found
}

it('lists those that are on, page by page, each file with its digest', async () => {
  const made = []
  for (let count = 0; count < 25; count++) made.push(await makeSkill({ server }))
  const off = await makeSkill({ server })
  await server.ok(`/skills/${off.id}`, { method: 'PATCH', body: { enabledByDefault: false } })
  const slugs = (await list()).map(({ uri }) => /^skill:\/\/([^/]+)\/SKILL\.md$/.exec(uri)?.[1])
  expect(slugs).toEqual(made.toReversed().map(({ slug }) => slug))
  const [first] = await list()
  for (const { uri, digest, size } of first!.resources) {
    const { contents } = await owner.readResource({ uri })
    const [content] = contents as { text?: string; blob?: string }[]
    const bytes = content!.text === undefined ? Buffer.from(content!.blob!, 'base64') : Buffer.from(content!.text)
    expect([uri, size, `sha256:${createHash('sha256').update(bytes).digest('hex')}`]).toEqual([
      uri,
      bytes.length,
      digest,
    ])
  }
})

it.each([
  'skill://no-such/SKILL.md',
  'skill://%2e%2e/SKILL.md',
  'skill:///SKILL.md',
  'skill://x/../../etc/passwd',
  'file:///etc/passwd',
])('serves nothing at %s', async (uri) => {
  await expect(owner.readResource({ uri })).rejects.toThrow('Resource not found')
})

it('serves one that is off to nobody, and none to another workspace', async () => {
  const { id, slug } = await makeSkill({ server })
  const uri = `skill://${slug}/SKILL.md`
  expect((await owner.readResource({ uri })).contents).toHaveLength(1)
  const stranger = await connect((await server.addPerson('owner', 'elsewhere')).token)
  await expect(stranger.readResource({ uri })).rejects.toThrow('Resource not found')
  expect(await list(stranger)).toEqual([])
  await server.ok(`/skills/${id}`, { method: 'PATCH', body: { enabledByDefault: false } })
  await expect(owner.readResource({ uri })).rejects.toThrow('Resource not found')
})

it('serves those of a plugin beside one of the same slug, as long as the plugin is on', async () => {
  const { id, slug, pluginId, pluginName } = await makePluginSkill({ server })
  await server.ok(`/skills/${id}`, { method: 'PATCH', body: { enabledByDefault: true } })
  await server.ok('/skills', { body: { slug, name: 'Own', bundle: newBundle() } })
  const uris = (await list()).map(({ uri }) => uri).filter((uri) => uri.includes(slug))
  expect(uris.toSorted()).toEqual([`skill://${pluginName}/${slug}/SKILL.md`, `skill://${slug}/SKILL.md`].toSorted())
  await server.database.root('plugins').where({ id: pluginId }).update({ enabled: 0 })
  await expect(owner.readResource({ uri: `skill://${pluginName}/${slug}/SKILL.md` })).rejects.toThrow(
    'Resource not found',
  )
})

it('serves no skills to an agent, which has those that were placed for its run', async () => {
  const { token } = await server.agentCaller({}, { token: member.token })
  const agent = await connect(token)
  expect(agent.getServerCapabilities()?.resources).toBeUndefined()
  await expect(agent.request({ method: 'skills/list', params: {} }, listed)).rejects.toThrow('Method not found')
})
