import { afterAll, beforeAll, expect, test } from 'vitest'
import { mostCountedRuns } from '../../../shared/api/costs.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { made } from './tasks-kit.ts'

// What runs cost, one by one and added up.

let server: TestServer
let device: FakeDevice
let member: Person
beforeAll(async () => {
  server = await TestServer.start()
  device = await FakeDevice.connect(server)
  member = await server.addPerson('member')
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
})

const costs = (query = '', token?: string) =>
  server.ok(`/costs${query === '' ? '' : `?${query}`}`, token === undefined ? {} : { token })

/** A run that has cost this; null: nobody knows. */
async function ranFor(agentId: string, costUsd: string | null, body: object = {}): Promise<string> {
  const { runPublicId } = await server.ok(`/agents/${agentId}/runs`, { body })
  const run = await device.take()
  if (costUsd !== null)
    await run.events({
      kind: 'usage',
      data: { costUsd, inputTokens: 100, outputTokens: 7, cacheReadTokens: 5, model: 'opus' },
    })
  await run.end()
  return runPublicId as string
}

test('a run tells its money, tokens and time; what nobody knows is null', async () => {
  const agent = await server.createAgent()
  const runId = await ranFor(agent.id, '0.25')
  expect(await server.ok(`/runs/${runId}/cost`)).toEqual({
    runId,
    costUsd: '0.25',
    model: 'opus',
    inputTokens: 100,
    outputTokens: 7,
    cacheReadTokens: 5,
    cacheWriteTokens: 0,
    durationMs: expect.any(Number),
    isFinal: true,
  })
  const waiting = await server.startRun(agent.id)
  expect(await server.ok(`/runs/${waiting}/cost`)).toMatchObject({ costUsd: null, durationMs: 0, isFinal: false })
  await (await device.take()).end()
  expect(outcomeOf(await server.call('/runs/run_0000000000000000/cost'))).toBe('404 resource_not_found')
})

test('runs are added up by agent, project, task and day, and those without a figure are counted', async () => {
  const [one, two] = [await server.createAgent(), await server.createAgent()]
  const project = await server.ok('/projects', { body: { name: 'Shop', prefix: 'SHOP' } })
  const task = await made(server, '/tasks', { title: 'Log in', projectId: project.id })
  await ranFor(one.id, '0.1', { taskId: task.id })
  await ranFor(one.id, '0.2')
  await ranFor(two.id, null)
  const byAgent = await costs()
  const of = (rows: { id: string | null }[], id: string | null) => rows.find((row) => row.id === id)
  expect(byAgent).toMatchObject({ by: 'agent', leftOut: 0 })
  expect(of(byAgent.data, one.id)).toMatchObject({
    name: one.handle,
    runs: 2,
    runsWithoutCost: 0,
    costUsd: '0.3',
    inputTokens: 200,
  })
  expect(of(byAgent.data, two.id)).toMatchObject({ name: two.handle, runs: 1, runsWithoutCost: 1, costUsd: null })
  expect(byAgent.data.at(-1).costUsd).toBeNull()
  const byProject = await costs('by=project')
  expect(of(byProject.data, project.id)).toMatchObject({ name: 'SHOP Shop', runs: 1, costUsd: '0.1' })
  expect(of(byProject.data, null)).toMatchObject({ name: 'no project' })
  expect(of((await costs('by=task')).data, task.id)).toMatchObject({ name: `${task.key} Log in`, costUsd: '0.1' })
  const byDay = await costs('by=day&timezone=Europe/Berlin')
  expect(byDay.data.map(({ id }: { id: string }) => /^\d{4}-\d\d-\d\d$/.test(id))).not.toContain(false)
  for (const each of [byProject, byDay]) expect(each.total).toEqual(byAgent.total)
  // None were made before there were any.
  const before = await costs('since=2020-01-01T00:00:00Z&until=2020-02-01T00:00:00Z')
  expect(before).toMatchObject({ since: '2020-01-01T00:00:00.000Z', total: { runs: 0, costUsd: null }, data: [] })
  for (const query of ['by=wish', 'timezone=Mars/Olympus', 'timezone=%2B01:00', 'since=lately'])
    expect(outcomeOf(await server.call(`/costs?${query}`)), query).toMatch(/^4\d\d /)
})

test('they are of the runs that the caller sees, and a private project has a name for its owner alone', async () => {
  const hidden = await server.createAgent({ visibility: 'private' })
  const runId = await ranFor(hidden.id, '5')
  const idsFor = async (token?: string) => (await costs('', token)).data.map(({ id }: { id: string }) => id)
  expect(await idsFor()).toContain(hidden.id)
  expect(await idsFor(member.token)).not.toContain(hidden.id)
  expect(outcomeOf(await server.call(`/runs/${runId}/cost`, { token: member.token }))).toBe('404 resource_not_found')
  const [mine, theirs] = [await costs(), await costs('', member.token)]
  expect(mine.total.runs - theirs.total.runs).toBe(1)
  const foreign = await server.addPerson('owner', 'elsewhere')
  expect((await costs('', foreign.token)).total.runs).toBe(0)
})

test('of more runs than are added up the newest are, and it says from when on they are all there', async () => {
  const foreign = await server.addPerson('owner', 'busy')
  const agent = await server.createAgent({}, foreign.token)
  await server.ok(`/agents/${agent.id}/runs`, { body: {}, token: foreign.token })
  const root = server.database.root
  const row = (await root('runs').where({ workspace_id: foreign.workspaceId }).first()) as Record<string, unknown>
  const first = Date.now() - 3_600_000
  const many = Array.from({ length: mostCountedRuns + 10 }, (_, at) => ({
    ...row,
    id: `run_${String(at).padStart(16, '0')}`,
    created_at: first + at,
    ended_at: first + at,
    cost_usd: '0.001',
  }))
  for (let at = 0; at < many.length; at += 500) await root('runs').insert(many.slice(at, at + 500))
  const { since, total } = await costs('', foreign.token)
  expect(total).toMatchObject({ runs: mostCountedRuns, runsWithoutCost: 1 })
  // Of the ones that were made, the run that is there and all but eleven are among them.
  expect(Date.parse(since)).toBe(first + 11)
  expect(total.costUsd).toBe('19.999')
})
