import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import { endReport } from '../../kit/end-report.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { repeats } from '../../kit/forms.ts'
import { waitFor } from '../../kit/programs.ts'
import { TestServer, type Person } from '../../kit/server.ts'
import { makePlugin, tracker } from '../facts/kit/plugins.ts'
import { evil, inPool } from '../facts/kit/recipe.ts'
import { endingRoutes, hostileValues, makeThings, sharpRoutes, unknownIds } from './collected.ts'
import { filled, poolNameOf } from './fuzz-pool.ts'
import { readDocument, routeIdOf, type OpenApiDocument, type Operation } from './openapi-document.ts'
import { fitting, type ValueSource } from './schema-values.ts'

/**
 * People with bad intent walk at random over all writes of the API beside somebody else's device and agents: a member, a
 * member who owns agents, an agent's run that one of them woke, a person who was removed, and a stranger who owns another workspace.
 * Afterwards no program that they named was offered to that device, no secret was granted, and no role was gained.
 *
 * Beside them works a guarded admin, whose device is the default one and takes nobody else's work. They close, move, watch and
 * comment on what there is, as people do who mean nothing by it: their device gets neither the words nor the programs of others. The
 * member's own device lies about runs that it was never offered, and gets the work of no one else's private agent, nor of one with
 * secrets. The admin's agents that read skills, one of them private, get no skill that somebody else wrote, whole or in part.
 * TAKEOVER_SEED repeats a walk, TAKEOVER_STEPS sets its length.
 */
const seed = Number(process.env['TAKEOVER_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const steps = repeats('TAKEOVER_STEPS', { short: 300, long: 600 })

const actors = ['member', 'owner of agents', 'run', 'removed', 'stranger'] as const
type Actor = (typeof actors)[number]
type Ids = Record<string, string>
const settings = { SVC_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'), SVC_ALLOW_HOSTS: '127.0.0.1' }
const ownCommand = 'victims-own-command'
const closedCommand = 'victims-private-command'
const guardedCommand = 'guarded-own-command'
/** Stands in each text that a hostile person writes. */
const hostileWords = 'words of somebody hostile'
const texts = ['title', 'description', 'body', 'prompt', 'text', 'reason', 'comment', 'firstMessage']
/** The body with the mark in its texts, wherever they stand. */
function marked(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(marked)
  if (body === null || typeof body !== 'object') return body
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      texts.includes(name) && typeof value === 'string' ? `${value} ${hostileWords}`.slice(0, 900) : marked(value),
    ]),
  )
}

const key = () => ({ 'Idempotency-Key': crypto.randomUUID() })

interface Step {
  actor: Actor
  /** At which of the writes. */
  target: number
  params: Record<string, string>
  body: unknown
  /** Whether the request is about the victim's things, or about the actor's own. */
  isAtVictim: boolean
}

/** Says what names something in a body, and what somebody who wants a foreign machine would put there. */
const named: ValueSource['named'] = {
  ...hostileValues,
  newOwnerId: fc.constantFrom('<victimId>', '<memberId>', '<ownerId>'),
}

/** Says whether the operation would end the walk for the actor. */
const isLeft = (operation: Operation) => endingRoutes[routeIdOf(operation)] === 'caller'

function writesOf({ paths }: OpenApiDocument) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method, operation]) => method !== 'get' && !isLeft(operation))
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
}

function stepsOver(writes: ReturnType<typeof writesOf>, source: ValueSource): fc.Arbitrary<Step> {
  const bodies = writes.map(({ operation }) => {
    const schema = operation.requestBody?.content?.['application/json']?.schema
    return schema === undefined ? fc.constant(undefined) : fitting(source, schema)
  })
  const all = writes.map((_, at) => at)
  const sharp = all.filter((at) => sharpRoutes.includes(routeIdOf(writes[at]!.operation)))
  // Those that say what runs, where and with what are walked over as often as all others together.
  const target = fc.oneof(fc.constantFrom(...sharp), fc.constantFrom(...all))
  return target.chain((at) =>
    fc.record({
      actor: fc.constantFrom(...actors),
      target: fc.constant(at),
      params: fc.constant(paramsOf(writes[at]!.path)),
      body: bodies[at]!,
      isAtVictim: fc.boolean(),
    }),
  )
}

const paramsOf = (path: string): Record<string, string> =>
  Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name!, inPool(poolNameOf(path, name!))]))

/**
 * Things of one person, as the writes name them, and work for their agent. No device and no folder: what runs, runs on the
 * victim's device or nowhere.
 */
async function thingsOf(server: TestServer, person: Person, agentId: string): Promise<Ids> {
  const keeper = { server, person, agentId, colleague: person, liveRunId: null }
  const ids = await makeThings(keeper, { without: ['devices', 'folders'] })
  const assigned = { body: { assignee: agentId, force: true }, token: person.token, headers: key() }
  await server.ok(`/tasks/${ids['taskId']}/assign`, assigned)
  return ids
}

/** Takes what is offered to the device, as a real one would, and ends it. */
async function takeAll(device: FakeDevice, see: (spec: RunSpec, secrets: string[]) => unknown): Promise<void> {
  while (device.pending.includes('run.offer')) {
    const offer = await device.next('run.offer')
    // One that was cancelled meanwhile is withdrawn.
    const start = await device.accept(offer)
    see(offer.spec, Object.keys(start?.secrets ?? {}))
    if (start === null) continue
    const { runId, fence } = offer
    device.send({ type: 'run.ended', runId, fence, report: endReport({ exitReason: 'completed', eventCount: 0 }) })
    await device.next('run.closed')
  }
}

type Skills = NonNullable<RunSpec['skills']>

/** An admin whose device is the default one and takes nobody else's work, and who does harmless things with what others made. */
async function guardedAdmin(server: TestServer) {
  const admin = await server.addPerson('admin')
  const { token } = admin
  const device = await FakeDevice.connect(server, { token })
  await server.ok(`/devices/${device.identity.deviceId}`, {
    method: 'PATCH',
    body: { isWorkspaceDefault: true, runsBy: 'owner', maxConcurrentRuns: 10 },
    token,
  })
  const agent = await server.createAgent({ harness: 'command', command: guardedCommand }, token)
  const offers: { prompt: string; command: unknown }[] = []
  const readers = [
    await server.createAgent({ harness: 'claude', command: null }, token),
    await server.createAgent({ harness: 'claude', command: null, visibility: 'private' }, token),
  ]
  const skills: { given: Skills; leftOut: number }[] = []
  const own = `Of the admin ${crypto.randomUUID()}.`
  let ownHash: string | null = null
  /** As the admin wrote it, whatever others made of it since. */
  const ownSkill = async () => {
    const bundle = { files: [{ path: 'SKILL.md', content: own }] }
    return (await send('/skills', { slug: `own-${crypto.randomUUID()}`, name: own, description: own, bundle })).body
  }
  const send = (path: string, body: unknown) => server.call(path, { body, token, headers: key() })
  const pick = <T>(from: readonly T[], at: number): T | undefined => from[at % Math.max(from.length, 1)]
  async function work(round: number): Promise<void> {
    const chore = (await send('/tasks', { title: `Chore ${crypto.randomUUID()}`, force: true })).body.id
    const all: { id: string }[] = (await server.ok('/tasks?limit=100', { token })).data
    const others = all.filter(({ id }) => id !== chore)
    const one = pick(others, round)
    if (one !== undefined) {
      // What others do beside it, too: each of them has a task wait for this one, or puts it below theirs, in the walk.
      await send(`/tasks/${one.id}/dependencies`, { dependsOnTaskId: chore, type: 'blocks' })
      await send(`/tasks/${pick(others, round + 1)!.id}/watchers`, { type: 'agent', id: agent.id })
      if (round % 2 === 0) await send(`/tasks/${own}/move`, { parentTaskId: pick(others, round + 2)!.id })
      await send(`/tasks/${pick(others, round + 3)!.id}/comments`, { body: 'Fine.' })
      if (round % 3 === 0) await send(`/tasks/${pick(others, round + 4)!.id}/transition`, { status: 'done' })
    }
    await send(`/tasks/${chore}/transition`, { status: 'done' })
    // Every person may delete an agent that they see.
    await send(`/agents/${agent.id}/restore`, {})
    const { body } = await send(`/agents/${agent.id}/runs`, { prompt: `By myself ${crypto.randomUUID()}` })
    const kinds = [body.kind]
    ownHash ??= (await ownSkill()).bundleHash
    for (const { id } of readers) {
      await send(`/agents/${id}/restore`, {})
      kinds.push((await send(`/agents/${id}/runs`, {})).body.kind)
    }
    if (kinds.includes('queued')) await waitFor(() => device.pending.includes('run.offer'), 'an offer of my own work')
    await takeAll(device, ({ agent: { id }, prompt, harness, command, skills: given, skillsLeftOut }) => {
      const isReader = readers.some((reader) => reader.id === id)
      offers.push({ prompt, command: harness === 'command' ? command : isReader ? guardedCommand : null })
      if (isReader) skills.push({ given: given ?? [], leftOut: (skillsLeftOut ?? []).length })
    })
    // Others turn it off, change or delete it.
    if (round % 4 === 0) await ownSkill()
  }
  const isOwn = ({ bundleHash, description }: Skills[number]) => bundleHash === ownHash && description === own
  return { offers, work, skills, isOwn }
}

test(`nobody takes over a device (seed ${seed})`, { timeout: 600_000 }, async () => {
  const server = await TestServer.start({ settings })
  const document = await readDocument(server)
  const writes = writesOf(document)
  const [victim, member, owner, removed] = [
    await server.addPerson('member'),
    await server.addPerson('member'),
    await server.addPerson('member'),
    await server.addPerson('member'),
  ]
  const stranger = await server.addPerson('owner', 'elsewhere')
  const device = await FakeDevice.connect(server, { token: victim.token })
  const plain = await server.createAgent({ harness: null, command: null }, victim.token)
  const program = await server.createAgent({ harness: 'command', command: ownCommand }, victim.token)
  const folder = await server.ok('/folders', {
    body: { deviceId: device.identity.deviceId, displayName: 'f', rootPath: '/tmp' },
    token: victim.token,
  })
  const offers: { commandOf: unknown; protocol: unknown; given: string[]; secrets: string[] }[] = []
  /** Connections that runs were given. */
  const used: string[] = []
  /** Whether the rules of the agent must allow the command of a gate. */
  const gates: boolean[] = []
  const drain = () =>
    takeAll(device, ({ harness, command, protocol, mcpServers, skillFolders, gate, connectionVariables }, secrets) => {
      if (gate != null) gates.push(gate.needsRule)
      const byName = Object.entries(mcpServers).filter(([, server]) => !('connectionId' in server))
      const connections = Object.values(mcpServers).flatMap((server) =>
        server.type === 'stdio' || server.connectionId === undefined ? [] : [server.connectionId],
      )
      used.push(...connections, ...(connectionVariables ?? []).map(({ connectionId }) => connectionId))
      const ofCommand = harness === 'command' ? { commandOf: command, protocol } : { commandOf: null, protocol: null }
      offers.push({ ...ofCommand, given: [...byName.map(([name]) => name), ...(skillFolders ?? [])], secrets })
    })
  const guarded = await guardedAdmin(server)
  const spy = await FakeDevice.connect(server, { token: member.token })
  const closed = await server.createAgent({ visibility: 'private', command: closedCommand }, victim.token)
  /** What the member's device was offered. */
  const spied: string[] = []
  async function lieAndDrain(): Promise<void> {
    const [run] = await server.database.root('runs').whereNull('ended_at').where({ device: device.identity.publicId })
    if (run !== undefined) {
      spy.send({ type: 'run.accepted', runId: run.id, fence: run.fence })
      const report = endReport({ exitReason: 'completed', eventCount: 0 })
      spy.send({ type: 'run.ended', runId: run.id, fence: run.fence, report })
    }
    while (spy.pending.includes('run.offer')) {
      const { runId } = await spy.next('run.offer')
      const agent = await server.database
        .root('runs')
        .join('agents', 'agents.id', 'runs.agent_id')
        .where({ 'runs.id': runId })
        .first(
          'agents.owner_user_id as owner',
          'agents.id',
          'agents.visibility',
          'runs.created_at as at',
          'error_message',
        )
      // It was offered while the agent was the member's: giving it away cancels what waits.
      if (agent.error_message === 'The agent was given to another owner.') continue
      // Nor does it have what was granted after it.
      const grants = server.database.root('secret_grants').where({ agent_id: agent.id })
      const secrets = await grants.where('created_at', '<=', agent.at)
      if (agent.owner !== member.uuid && (agent.visibility === 'private' || secrets.length > 0)) spied.push(agent.id)
    }
  }
  const ids: Record<Actor | 'victim', Ids> = {
    victim: { ...(await thingsOf(server, victim, plain.id)), shortId: folder.shortId, id: device.identity.deviceId },
    member: {
      ...(await thingsOf(server, member, (await server.createAgent({ command: evil }, member.token)).id)),
      id: spy.identity.deviceId,
    },
    'owner of agents': await thingsOf(server, owner, (await server.createAgent({ command: evil }, owner.token)).id),
    run: {},
    removed: {},
    stranger: await thingsOf(server, stranger, (await server.createAgent({ command: evil }, stranger.token)).id),
  }
  ids.removed = ids.member
  // Admins alone install plugins. All know its id, which is theirs to name.
  const { id: pluginId } = await makePlugin({ server }, { servers: { tracker } })
  for (const name of ['victim', 'member', 'owner of agents'] as const) ids[name]['pluginId'] = pluginId
  // Of the victim alone, and all others know its id.
  const ownConnection = { id: ids.victim['connections.id'], owner: victim.uuid }
  await server.database
    .root('connections')
    .where({ id: ownConnection.id })
    .update({ owner_user_id: ownConnection.owner })
  ids.run = ids.member
  const people = {
    victimId: victim.userId,
    memberId: member.userId,
    ownerId: owner.userId,
    deviceId: device.identity.publicId,
  }
  await server.ok(`/workspaces/${victim.workspaceId}/leave`, { method: 'POST', token: removed.token })
  /** Every person may delete an agent that they see; its owner brings it back. */
  const restored = async (id: string) => server.call(`/agents/${id}/restore`, { method: 'POST', token: victim.token })
  /** Of a run of the victim's agent that the member woke; the last one when it takes no more wakes. */
  const runOf = async (last: string) => {
    await restored(plain.id)
    const { body } = await server.call(`/agents/${plain.id}/runs`, { body: {}, token: member.token })
    return body.runPublicId === undefined ? last : server.runToken(body.runPublicId)
  }
  const tokens: Record<Actor, string> = {
    member: member.token,
    'owner of agents': owner.token,
    run: await runOf(''),
    removed: removed.token,
    stranger: stranger.token,
  }
  const { root } = server.database
  const stateOf = async () => ({
    roles: await root('members')
      .where({ workspace_id: victim.workspaceId })
      .orderBy('user_id')
      .select('user_id', 'role'),
    // Of the victim's agents, and of the victim's secrets.
    grants: await root('secret_grants')
      .join('secrets', 'secrets.id', 'secret_grants.secret_id')
      .where((any) => void any.whereIn('agent_id', [plain.id, program.id]).orWhere('created_by', victim.userId))
      .orderBy(['secret_id', 'agent_id'])
      .select('secret_id', 'agent_id', 'env_var_name'),
    agents: await root('agents')
      .whereIn('id', [plain.id, program.id])
      .orderBy('id')
      .select('id', 'command', 'protocol', 'skill_folders', 'owner_user_id', 'tools', 'capabilities'),
    device: await root('devices')
      .where({ public_id: device.identity.publicId })
      .select('user_id', 'runs_by', 'removed_at'),
    plugins: await root('plugins').where({ workspace_id: victim.workspaceId }).orderBy('id'),
    pluginSkills: await root('skills')
      .where({ workspace_id: victim.workspaceId })
      .whereNotNull('plugin_id')
      .orderBy('id')
      .select('id', 'plugin_id', 'name', 'description', 'bundle_id'),
    servers: await root('mcp_servers')
      .whereIn('agent_id', [plain.id, program.id])
      .orWhere((of) => void of.where({ workspace_id: victim.workspaceId }).whereNull('agent_id'))
      .orderBy('id'),
    defaults: await root('workspaces').where({ id: victim.workspaceId }).select('default_device', 'mcp_servers'),
  })
  const before = await stateOf()
  const owned = before.servers.map(({ name }) => name as string)
  expect([owned.length, before.plugins.length, before.pluginSkills.length]).toEqual([2, 1, 1])
  const names = fc.constantFrom('me', 'main', inPool('agentId'), '<victimId>')
  const source: ValueSource = { document, known: names, named, matching: new Map() }
  const done: Record<Actor, number> = { member: 0, 'owner of agents': 0, run: 0, removed: 0, stranger: 0 }
  let at = 0
  for (const step of fc.sample(stepsOver(writes, source), { seed, numRuns: steps })) {
    const { method, path, operation } = writes[step.target]!
    const pool = { ...unknownIds, ...ids[step.actor], ...(step.isAtVictim ? ids.victim : {}), ...people }
    const address = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(filled(step.params[name] ?? '', pool)),
    )
    const body: unknown = step.body === undefined ? undefined : marked(filled(step.body, pool))
    const { status } = await server.ask(address, {
      method,
      headers: {
        authorization: `Bearer ${tokens[step.actor]}`,
        'content-type': 'application/json',
        accept: 'application/json',
        'idempotency-key': crypto.randomUUID(),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    // Some are for whoever knows an address, like the hook of an automation.
    if (status < 300 && operation.responses['401'] !== undefined) done[step.actor]++
    if (status === 401 && step.actor === 'run') tokens.run = await runOf(tokens.run)
    if (++at % 20 === 0) {
      // The victim works with their own agents meanwhile.
      for (const { id } of [plain, program]) {
        await restored(id)
        await server.call(`/agents/${id}/runs`, { body: { prompt: crypto.randomUUID() }, token: victim.token })
      }
      await server.call(`/agents/${closed.id}/runs`, { body: {}, token: victim.token })
      await guarded.work(at / 20)
      await drain()
      await lieAndDrain()
    }
  }
  await server.plane.sweeper.runAll()
  await guarded.work(0)
  // One on a task may wait behind a run of somebody whom no device serves.
  const isOver = async () => {
    await drain()
    const open = root('runs').whereNull('ended_at').whereNull('task_id')
    return (await open.whereIn('agent_id', [plain.id, program.id, closed.id]).first('id')) === undefined
  }
  await waitFor(isOver, 'the end of the runs of the victim that no task holds')
  await lieAndDrain()
  expect(spied).toEqual([])
  expect(guarded.offers.length).toBeGreaterThan(1)
  expect(guarded.offers.filter(({ command }) => command !== guardedCommand)).toEqual([])
  expect(guarded.offers.filter(({ prompt }) => prompt.includes(hostileWords))).toEqual([])
  expect(guarded.skills.flatMap(({ given }) => given.filter((skill) => !guarded.isOwn(skill)))).toEqual([])
  expect(guarded.skills.some(({ given }) => given.length > 0)).toBe(true)
  expect(guarded.skills.some(({ leftOut }) => leftOut > 0)).toBe(true)
  expect(await stateOf()).toEqual(before)
  const withConnection = await root('mcp_servers').whereLike('server', '%conn_%').select('server')
  expect(withConnection.filter(({ server: one }) => one.includes(ownConnection.id))).toEqual([])
  expect(offers.length).toBeGreaterThan(1)
  expect(new Set(offers.map(({ commandOf }) => commandOf))).toEqual(new Set([null, ownCommand, closedCommand]))
  expect(gates.filter((needsRule) => !needsRule)).toEqual([])
  expect(
    offers.filter(({ protocol, given }) => protocol != null || given.some((name) => !owned.includes(name))),
  ).toEqual([])
  expect(new Set(used)).toEqual(new Set([ownConnection.id]))
  expect(new Set(offers.flatMap(({ secrets }) => secrets))).toEqual(new Set(['OWN_KEY']))
  // Else the walk would say little.
  expect(done.removed).toBe(0)
  for (const actor of ['member', 'owner of agents', 'run', 'stranger'] as const)
    expect([actor, done[actor] > steps / 200]).toEqual([actor, true])
  expect(done.member + done['owner of agents']).toBeGreaterThan(steps / 20)
  await server.stop()
})
