import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { NotDispatchedReason } from '../../../control-plane/run/wakes/admission.ts'
import type { GateReason } from '../../../shared/api/agent-runs.ts'
import type { ExitReason } from '../../../shared/runs/exit-reasons.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { TestServer, type Person } from '../../kit/server.ts'
import { made, task } from '../resources/tasks-kit.ts'

/**
 * Each reason for which a queued run waits, and each for which a wake becomes no run: it is brought about here, or by the test that
 * is named, or it is said why nothing brings it about.
 */
type Cause<Reason> =
  | ((scene: Scene) => Promise<Reason | string | null>)
  /** `says`: what the test expects, where the reason itself is shown to nobody. */
  | { shownIn: string; says?: string }
  | { never: string }

interface Scene {
  person: Person
  agentId: string
  start: (body?: Record<string, unknown>) => Promise<{ runPublicId?: string; reason?: string }>
  gateOf: (runId: string | undefined) => Promise<string | null>
  connect: () => Promise<FakeDevice>
}

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

let scenes = 0
async function sceneOf(): Promise<Scene> {
  const person = await server.addPerson('owner', `reason-${++scenes}`)
  const { token } = person
  const agentId = (await server.createAgent({ harness: 'claude' }, token)).id as string
  return {
    person,
    agentId,
    start: (body = {}) => server.ok(`/agents/${agentId}/runs`, { body, token }),
    gateOf: async (runId) => {
      const { gateReason, gateDescription } = await server.ok(`/runs/${runId}`, { token })
      const why = await server.ok(`/runs/${runId}/why`, { token })
      expect(why).toMatchObject({ state: 'waits', reason: gateReason, because: gateDescription })
      return gateReason
    },
    connect: () => FakeDevice.connect(server, { token }),
  }
}

const withoutClaude = async ({ connect }: Scene): Promise<FakeDevice> => {
  const device = await connect()
  const claude = { installed: false, version: null, signedIn: null, message: null }
  device.send({ type: 'readiness', providerReadiness: { harnesses: { claude } }, capturedAt: 1 })
  await device.beat()
  return device
}

async function whileThere(
  device: FakeDevice,
  look: (device: FakeDevice) => Promise<string | null>,
): Promise<string | null> {
  try {
    return await look(device)
  } finally {
    await device.disconnect()
  }
}

const gates: Record<GateReason, Cause<GateReason>> = {
  no_device: async ({ start, gateOf }) => gateOf((await start()).runPublicId),
  capacity: async ({ connect, start, gateOf, person }) =>
    whileThere(await connect(), async (device) => {
      const body = { maxConcurrentRuns: 1 }
      await server.ok(`/devices/${device.identity.deviceId}`, { method: 'PATCH', body, token: person.token })
      await start()
      await device.take()
      return gateOf((await start({ prompt: 'Next.' })).runPublicId)
    }),
  task_locked: async ({ connect, start, gateOf, person }) =>
    whileThere(await connect(), async (device) => {
      const { key } = await task(server, {}, person.token)
      await start({ taskId: key })
      await device.take()
      return gateOf((await start({ taskId: key, prompt: 'Next.' })).runPublicId)
    }),
  no_ready_route: async (scene) =>
    whileThere(await withoutClaude(scene), async () => scene.gateOf((await scene.start()).runPublicId)),
  pinned_route_not_ready: async (scene) =>
    whileThere(await withoutClaude(scene), async ({ identity: { deviceId } }) => {
      const { token } = scene.person
      const folder = await server.ok('/folders', { body: { deviceId, displayName: 'f', rootPath: '/f' }, token })
      const body = { defaultFolderId: folder.shortId }
      await server.ok(`/agents/${scene.agentId}`, { method: 'PATCH', body, token })
      return scene.gateOf((await scene.start()).runPublicId)
    }),
  governance_refused: { shownIn: 'test/api/resources/trust-causes.test.ts' },
  rate_limit: async ({ connect, start, gateOf }) =>
    whileThere(await connect(), async (device) => {
      await start()
      await (await device.take()).end('rate_limited' satisfies ExitReason)
      return gateOf((await start({ prompt: 'Next.' })).runPublicId)
    }),
  provider_overloaded: { shownIn: 'test/api/dispatch/circuits.test.ts' },
}

const refusals: Record<NotDispatchedReason, Cause<NotDispatchedReason>> = {
  agent_inactive: { shownIn: 'test/api/resources/agent-runs.test.ts' },
  agent_tombstoned: { shownIn: 'test/api/resources/agent-runs.test.ts' },
  workspace_agents_paused: { shownIn: 'test/api/resources/agent-runs.test.ts' },
  folder_bind_failed: { shownIn: 'test/api/resources/agent-runs.test.ts' },
  budget_blocked: { shownIn: 'test/api/resources/approvals-budget.test.ts' },
  timer_all_tasks_hitl_paused: {
    shownIn: 'test/api/resources/automation-fires.test.ts',
    says: 'wait for a person',
  },
  task_hitl_open: { shownIn: 'test/api/resources/questions.test.ts' },
  task_blocked_dependency: { shownIn: 'test/api/resources/tasks-wakes.test.ts' },
  task_not_started: { shownIn: 'test/api/resources/tasks-wakes.test.ts' },
  task_already_finished: async ({ start, person }) => {
    const { id, key } = await task(server, {}, person.token)
    await made(server, `/tasks/${id}/transition`, { status: 'done' }, person.token)
    return (await start({ taskId: key })).reason ?? null
  },
  task_unassigned: async ({ start, person }) => {
    const other = await server.createAgent({}, person.token)
    const { key } = await task(server, { assignee: other.id }, person.token)
    return (await start({ taskId: key, source: 'assignment' })).reason ?? null
  },
  route_gate_declined: async ({ agentId, person: { token } }) => {
    await server.ok(`/agents/${agentId}/config`, {
      method: 'PUT',
      body: { config: { runtime: { triggers: { wakeOnHook: false } } } },
      token,
    })
    const body = { name: 'Hook', prompt: 'Go.', agentId, trigger: { type: 'webhook' } }
    const { id, webhookUrl } = await made(server, '/automations', body, token)
    await server.call(new URL(webhookUrl).pathname, { base: '', token: null, body: { once: 1 } })
    const [skip] = (await server.ok(`/automations/${id}/skips`, { token })).data
    // A skip says in words what the documents give no field for.
    expect(skip).toMatchObject({ reason: 'not_admitted', message: expect.stringContaining('not to be woken by') })
    return 'route_gate_declined'
  },
  dispatch_build_failed: {
    never:
      'a workspace that goes takes its wakes along, and the sweep that compacts sessions tells nobody of what it leaves',
  },
}

const shows = (file: string, text: string) =>
  readFileSync(join(import.meta.dirname, '../../..', file), 'utf8').includes(text)

describe.each([
  ['a run waits', gates],
  ['a wake becomes no run', refusals],
] as const)('%s', (_, causes) => {
  const possible = Object.entries<Cause<string>>(causes).flatMap(([reason, cause]) =>
    'never' in cause ? [] : [[reason, cause] as const],
  )
  test.each(possible)('%s', async (reason, cause) => {
    if (typeof cause === 'function') expect(await cause(await sceneOf())).toBe(reason)
    else expect(shows(cause.shownIn, cause.says ?? reason)).toBe(true)
  })
})
