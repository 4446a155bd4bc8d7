import fc from 'fast-check'
import { expect, test } from 'vitest'
import { endReport } from '../../kit/end-report.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { repeats } from '../../kit/forms.ts'
import { waitFor } from '../../kit/programs.ts'
import { TestServer, type Person } from '../../kit/server.ts'
import { evil, inPool } from '../facts/kit/recipe.ts'
import { endingRoutes, hostileValues, makeThings, sharpRoutes, unknownIds } from './collected.ts'
import { filled, poolNameOf } from './fuzz-pool.ts'
import { readDocument, routeIdOf, type OpenApiDocument, type Operation } from './openapi-document.ts'
import { fitting, type ValueSource } from './schema-values.ts'

/**
 * People with bad intent walk at random over all writes of the API beside somebody else's device and agents: a member, a
 * member who owns agents, an agent's run that one of them woke, a person who was removed, and a stranger who owns another workspace.
 * Afterwards no program that they named was offered to that device, no secret was granted, and no role was gained.
 * TAKEOVER_SEED repeats a walk, TAKEOVER_STEPS sets its length.
 */
const seed = Number(process.env['TAKEOVER_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const steps = repeats('TAKEOVER_STEPS', { short: 300, long: 600 })

const actors = ['member', 'owner of agents', 'run', 'removed', 'stranger'] as const
type Actor = (typeof actors)[number]
type Ids = Record<string, string>
const settings = { SVC_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64') }
const ownCommand = 'victims-own-command'
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
  /** Whether the rules of the agent must allow the command of a gate. */
  const gates: boolean[] = []
  /** Takes what is offered, as the victim's device would, and ends it. */
  async function drain(): Promise<void> {
    while (device.pending.includes('run.offer')) {
      const { runId, fence, spec } = await device.next('run.offer')
      device.send({ type: 'run.accepted', runId, fence })
      const answers = ['run.start', 'run.withdrawn'] as const
      await waitFor(() => answers.some((type) => device.pending.includes(type)), 'the answer to an accepted offer')
      // One that was cancelled meanwhile is withdrawn.
      const isStarted = device.pending.includes('run.start')
      const secrets = isStarted ? (await device.next('run.start')).secrets : {}
      if (!isStarted) await device.next('run.withdrawn')
      const { harness, command, protocol, mcpServers, skillFolders, gate } = spec
      if (gate != null) gates.push(gate.needsRule)
      const ofCommand = harness === 'command' ? { commandOf: command, protocol } : { commandOf: null, protocol: null }
      offers.push({
        ...ofCommand,
        given: [...Object.keys(mcpServers), ...(skillFolders ?? [])],
        secrets: Object.keys(secrets),
      })
      if (!isStarted) continue
      device.send({ type: 'run.ended', runId, fence, report: endReport({ exitReason: 'completed', eventCount: 0 }) })
      await device.next('run.closed')
    }
  }
  const ids: Record<Actor | 'victim', Ids> = {
    victim: { ...(await thingsOf(server, victim, plain.id)), shortId: folder.shortId, id: device.identity.deviceId },
    member: await thingsOf(server, member, (await server.createAgent({ command: evil }, member.token)).id),
    'owner of agents': await thingsOf(server, owner, (await server.createAgent({ command: evil }, owner.token)).id),
    run: {},
    removed: {},
    stranger: await thingsOf(server, stranger, (await server.createAgent({ command: evil }, stranger.token)).id),
  }
  ids.removed = ids.member
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
    defaults: await root('workspaces').where({ id: victim.workspaceId }).select('default_device', 'mcp_servers'),
  })
  const before = await stateOf()
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
    const body: unknown = step.body === undefined ? undefined : filled(step.body, pool)
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
      await drain()
    }
  }
  await server.plane.sweeper.runAll()
  await drain()
  expect(await stateOf()).toEqual(before)
  expect(offers.length).toBeGreaterThan(1)
  const commands = new Set(offers.map(({ commandOf }) => JSON.stringify(commandOf)))
  expect([...commands].filter((text) => text !== 'null' && text !== JSON.stringify(ownCommand))).toEqual([])
  expect(gates.filter((needsRule) => !needsRule)).toEqual([])
  expect(offers.filter(({ protocol, given }) => protocol != null || given.length > 0)).toEqual([])
  expect(new Set(offers.flatMap(({ secrets }) => secrets))).toEqual(new Set(['OWN_KEY']))
  // Else the walk would say little.
  expect(done.removed).toBe(0)
  for (const actor of ['member', 'owner of agents', 'run', 'stranger'] as const)
    expect([actor, done[actor] > steps / 200]).toEqual([actor, true])
  expect(done.member + done['owner of agents']).toBeGreaterThan(steps / 20)
  await server.stop()
})
