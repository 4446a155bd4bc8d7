import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../shared/api/index.ts'
import { Stage } from '../api/contract/stage.ts'
import { isLong } from '../kit/forms.ts'
import { insertSandbox } from '../../control-plane/resources/sandboxes/store.ts'
import { sandboxRow } from '../store/sandbox-rows.ts'
import { newPlugin } from '../api/facts/kit/plugins.ts'
import { waitFor } from '../kit/programs.ts'
import { makeHome, type Home } from './run-svc.ts'

// `svc api PATH --paginate` on every list of the contract that has pages, against a real server.

const paged = contract.filter(({ method, query }) => {
  const keys = Object.keys(query.shape)
  return method === 'GET' && pageKeyOf(keys) !== undefined
})
function pageKeyOf(keys: readonly string[]): string | undefined {
  return ['after', 'cursor', 'startingAfter'].find((key) => keys.includes(key))
}
/** In the short form one for each way to ask for the next page; that each list has all its pages, the tests of the API show. */
const shown = isLong
  ? paged
  : [...new Map(paged.map((route) => [pageKeyOf(Object.keys(route.query.shape)), route])).values()]

let stage: Stage
let home: Home
let env: Record<string, string>
let ids: Record<string, string>

beforeAll(async () => {
  stage = await Stage.start()
  home = makeHome()
  env = { SVC_TOKEN: stage.owner.token, SVC_API_URL: stage.server.url }
  ids = await fill()
})
afterAll(async () => {
  home.remove()
  await stage.stop()
})

const five = [1, 2, 3, 4, 5]

/** Five rows for each list, and the ids that stand in paths. */
async function fill(): Promise<Record<string, string>> {
  const { server, device, worker } = stage
  const post = (path: string, body: unknown, token = server.owner.token) =>
    server.ok(path, { body, token, headers: { 'idempotency-key': crypto.randomUUID() } })
  const { id: agentId } = await server.createAgent({ name: 'Writer' })
  const task = await post('/tasks', { title: 'Paint' })
  const { id: channel } = await post('/conversations', { kind: 'channel', participants: [] })
  const { id: automationId } = await post('/automations', {
    name: 'Watch',
    trigger: { type: 'webhook' },
    agentId,
    prompt: 'Look',
  })
  const contentBase64 = 'eA=='
  const { id: fileId } = await post('/files', { name: 'pages.txt', contentBase64 })
  const { id: wikiId } = await post('/wiki/pages', { title: 'Linked', body: 'Words.' })
  const bundle = { files: [{ path: 'SKILL.md', content: 'Do it.' }] }
  const { id: skillId } = await post('/skills', { slug: 'notes', name: 'Notes', bundle })
  const links = five.map((n) => `[${n}](https://example.com/${n})`).join(' ')
  for (const n of five) {
    await post(`/wiki/pages/${wikiId}/revisions`, { body: `${links} ${n}` })
    await post('/wiki/pages', { title: `Linking ${n}`, body: '[[Linked]]' })
    const bullets = [{ text: 'Learn.', sources: ['https://example.com/'] }]
    await post('/skills', { slug: `skill-${n}`, name: 'Skill', bundle })
    await post(`/skills/${skillId}/share`, {})
    await post('/connections', { integrationId: 'deepwiki', ownerType: 'company', accountLabel: `Account ${n}` })
    await post('/mcp-servers', { name: `server${n}`, transport: 'http', url: 'https://mcp.example.com/' })
    await post('/plugins', newPlugin())
    await insertSandbox(server.database.root, sandboxRow(server.owner.workspaceId, { createdAt: n }))
    await post('/learnings', { topic: `Topic ${n}`, bullets })
    await post('/files', { name: `${n}.txt`, contentBase64 })
    await post(`/files/${fileId}/replace`, { contentBase64 })
    await post(`/files/${fileId}/relations`, { entityType: 'task', entityId: task.id, role: `role ${n}` })
    await server.ok(`/agents/${agentId}/config`, { method: 'PUT', body: { config: { runtime: { maxTurns: n } } } })
    await stage.queuedRun()
    await post('/projects', { name: `Project ${n}`, leadAgentId: agentId })
    await post('/tasks', { title: `Task ${n}` })
    await post(`/tasks/${task.id}`, { priority: n % 2 === 0 ? 'high' : 'low' })
    await post(`/tasks/${task.id}/comments`, { content: `Comment ${n}` })
    await post('/automations', { name: `A${n}`, trigger: { type: 'webhook' }, agentId, prompt: 'Look' })
    await post(`/automations/${automationId}/run`, {})
    await post('/approvals', { prompt: 'May I?' }, (await stage.caller()).token)
    await post('/questions', { prompt: 'Which?' }, (await stage.caller()).token)
    await post('/secrets', { name: `key-${n}`, provider: 'github', envVarName: `KEY_${n}`, value: 'x' })
    await post('/conversations', { kind: 'channel', title: `c${n}`, participants: [] })
    await post(`/conversations/${channel}/messages`, { content: `Message ${n}` })
    await post('/workflows/records', { source: `export const meta = { name: 'w${n}', title: 'W' }\nreturn ${n}` })
    await post('/workflows/runs', { workflow: `w${n}` })
    await stage.live.events({ kind: 'text', data: { text: `${n}` } })
  }
  await post(`/automations/${automationId}`, { status: 'paused' })
  const { webhookUrl } = await post(`/automations/${automationId}/rotate`, {})
  for (const n of five) await post(`/automation-hooks/${webhookUrl.split('/').at(-1)}`, { n })
  const talker = await server.createAgent({}, worker.token)
  const dm = await post(
    '/conversations',
    { kind: 'dm', participants: [{ type: 'agent', id: talker.id }] },
    worker.token,
  )
  await post(`/conversations/${dm.id}/messages`, { content: 'hello' }, worker.token)
  const run = await device.take()
  for (const n of five) await run.events({ kind: 'text', data: { text: `${n}` } })
  await run.end()
  const webhook = await post('/webhooks', { url: 'https://hooks.example.com/svc', events: ['*'] })
  for (const _ of five) await post(`/webhooks/${webhook.id}/ping`, {})
  // Each is tried once, in vain, and again in a while: until then they stay as they are.
  const tried = async () => {
    const { data } = await server.ok(`/webhooks/${webhook.id}/deliveries`)
    return data.every(({ attempts }: { attempts: number }) => attempts > 0)
  }
  await waitFor(tried, 'all deliveries are tried')
  return {
    webhookId: webhook.id,
    agentId,
    automationId,
    runId: stage.live.runId,
    skillId,
    taskId: task.id,
    'tasks.id': task.id,
    'files.id': fileId,
    'wiki.id': wikiId,
    dm: dm.id,
    'conversations.id': channel,
  }
}

function pathOf({ id, base, path }: (typeof paged)[number]): string {
  const values = id === 'conversations.events' ? { ...ids, 'conversations.id': ids['dm']! } : ids
  return (
    base + path.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[`${path.split('/')[1]}.${name}`] ?? values[name]!)
  )
}

test.each(shown.map((route) => [route.id, route] as const))('%s', async (id, route) => {
  const token = id === 'conversations.events' ? stage.worker.token : stage.owner.token
  const path = pathOf(route)
  const whole = await stage.server.ok(`${path}?limit=100`, { base: '', token })
  expect(whole.hasMore).toBe(false)
  expect(whole.data.length).toBeGreaterThan(4)
  const size = Math.ceil(whole.data.length / 3)
  const end = await home.svc(['api', `${path}?limit=${size}`, '--paginate'], { env: { ...env, SVC_TOKEN: token } })
  expect([end.status, end.stderr]).toEqual([0, ''])
  expect(JSON.parse(end.stdout)).toEqual(whole)
})
