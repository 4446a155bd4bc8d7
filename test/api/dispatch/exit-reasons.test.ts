import { idFrom } from '../../../shared/lib/ids.ts'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { step, type RunEvent, type RunState } from '../../../device-manager/run/machine.ts'
import { exitReasonNames, exitReasons, type ExitReason } from '../../../shared/runs/exit-reasons.ts'
import { Stage } from '../contract/stage.ts'
import { runSpecFixture } from '../../kit/run-spec.ts'

/**
 * Each way a run can end: what the control plane ends by itself is brought about here; what a device reports is told
 * here by a device, and the test that brings it about on a real one is named; what nothing causes has its reason.
 */
type Cause =
  | { endedBy: (stage: Stage) => Promise<string> }
  /** A test of the device whose text has the reason. */
  | { reportedIn: string }
  | { never: string }

const hour = 3_600_000
const day = 24 * hour

/** A run on the stage's device, which the device goes on with. */
async function working(stage: Stage): Promise<{ runId: string; agentId: string }> {
  const { runId, agentId } = stage.live
  return { runId, agentId }
}

/** Lets this much time pass, with all that happens by time. */
async function after(stage: Stage, ms: number): Promise<void> {
  stage.server.world.advance(ms)
  await stage.server.plane.sweeper.runAll()
}

const causes: Readonly<Record<ExitReason, Cause>> = {
  completed: { reportedIn: 'test/fault/delivery.test.ts' },
  approval_requested: { reportedIn: 'test/fault/ask.test.ts' },
  question_asked: {
    async endedBy({ server, live }) {
      await server.ok('/questions', {
        token: live.token,
        body: { prompt: 'Which one?' },
        headers: { 'idempotency-key': crypto.randomUUID() },
      })
      await live.end('question_asked')
      return live.runId
    },
  },
  interrupted: {
    async endedBy(stage) {
      return stage.cancelledRun()
    },
  },
  agent_paused: {
    async endedBy(stage) {
      const { agentId, runId } = await stage.caller()
      await stage.server.ok(`/agents/${agentId}`, { method: 'PATCH', body: { status: 'running' } })
      return runId
    },
  },
  company_paused: {
    async endedBy(stage) {
      const runId = await stage.queuedRun()
      await stage.server.ok(`/workspaces/${stage.owner.workspaceId}/pause-agents`, { method: 'POST' })
      return runId
    },
  },
  cloud_disabled: {
    async endedBy(stage) {
      return stage.server.startRun(await stage.agent({ environment: 'cloud' }))
    },
  },
  billing_locked: { never: 'nothing is billed, so no plan is unpaid' },
  duplicate_trigger: {
    async endedBy(stage) {
      const { server } = stage
      const assignee = await stage.agent()
      const key = () => ({ headers: { 'idempotency-key': crypto.randomUUID() } })
      const { id } = await server.ok('/tasks', { body: { title: 'Do', assignee }, ...key() })
      const runs = async () => (await server.ok(`/runs?task=${id}`)).data as { id: string }[]
      await expect.poll(async () => (await runs()).length).toBe(1)
      await server.ok(`/tasks/${id}/assign`, { body: { assignee: await stage.agent() }, ...key() })
      return (await runs()).at(-1)!.id
    },
  },
  timeout: {
    async endedBy(stage) {
      const { runId } = await working(stage)
      await after(stage, day)
      return runId
    },
  },
  budget_exceeded: { reportedIn: 'device-manager/run-host/watchdog.test.ts' },
  no_progress: { reportedIn: 'test/process/run-host/ending.test.ts' },
  gate_timeout: {
    async endedBy(stage) {
      const runId = await stage.queuedRun()
      await after(stage, day + hour)
      return runId
    },
  },
  dispatch_timeout: {
    async endedBy(stage) {
      const { server, owner } = stage
      const { deviceId } = await stage.enrolled()
      // A device whose replica is gone without a word: it counts as connected, and takes nothing.
      const beat = () =>
        server.database
          .root('devices')
          .where({ device_id: deviceId })
          .update({ replica_id: 'gone', link_instance: 'gone', last_heartbeat_at: server.world.now() })
      await beat()
      const runId = await server.startRun(await stage.agent({}, owner.token))
      await server.plane.sweeper.runAll()
      server.world.advance(11 * 60_000)
      await beat()
      await server.plane.sweeper.runAll()
      return runId
    },
  },
  dispatch_error: { reportedIn: 'test/api/dispatch/exit-reasons.test.ts' },
  harness_start_failed: { reportedIn: 'test/process/run-host/ending.test.ts' },
  runner_lost: {
    async endedBy(stage) {
      const { runId } = await working(stage)
      await stage.device.disconnect()
      await after(stage, 2 * hour)
      return runId
    },
  },
  sandbox_lost: { never: 'there are no sandboxes: a wake for the cloud is declined' },
  crashed: { reportedIn: 'test/fault/host-death.test.ts' },
  rate_limited: { reportedIn: 'device-manager/harness/claude/dialogue.test.ts' },
  circuit_breaker: {
    async endedBy(stage) {
      const { server, device, worker } = stage
      const agentId = await stage.agent({ harness: 'claude', command: null }, worker.token)
      let last = ''
      for (let i = 0; i < 3; i++) {
        await server.ok(`/agents/${agentId}/runs`, { body: {}, token: worker.token })
        const run = await device.take()
        await run.end('error', { providerFailed: true })
        last = run.runId
      }
      return last
    },
  },
  error: { reportedIn: 'test/process/run-host/ending.test.ts' },
  agent_deleted: {
    async endedBy(stage) {
      const { agentId, runId } = await stage.caller()
      await stage.server.ok(`/agents/${agentId}`, { method: 'DELETE' })
      return runId
    },
  },
  invalid_task: { never: 'a task that cannot be read is refused before there is a run' },
  zombie_pre_lease_backfill: { never: 'closes runs of a time before leases, of which there are none' },
  zombie_undispatched: { never: 'runs that nobody takes end as gate_timeout or dispatch_timeout' },
  migration_backfill: { never: 'no migration has closed runs' },
}

async function onStage<T>(use: (stage: Stage) => Promise<T>): Promise<T> {
  const stage = await Stage.start()
  try {
    return await use(stage)
  } finally {
    await stage.stop()
  }
}

const ending = (exitReason: ExitReason) => ({
  status: exitReasons[exitReason],
  exitReason,
  errorCode: exitReasons[exitReason] === 'failed' ? exitReason : null,
  completedAt: expect.any(String),
  terminalAt: expect.any(String),
})

describe('what the control plane ends', () => {
  const ended = exitReasonNames.flatMap((name) => {
    const cause = causes[name]
    return 'endedBy' in cause ? [{ name, endedBy: cause.endedBy }] : []
  })
  test.each(ended)('$name', async ({ name, endedBy }) =>
    onStage(async (stage) => {
      const runId = await endedBy(stage)
      expect(await stage.server.ok(`/runs/${runId}`)).toMatchObject(ending(name))
    }),
  )
})

describe('what a device reports', () => {
  const reported = exitReasonNames.flatMap((name) => {
    const cause = causes[name]
    return 'reportedIn' in cause ? [{ name, file: cause.reportedIn }] : []
  })
  test.each(reported)('$name', async ({ name, file }) =>
    onStage(async ({ server, live }) => {
      await live.end(name)
      expect(await server.ok(`/runs/${live.runId}`)).toMatchObject(ending(name))
      expect(readFileSync(join(import.meta.dirname, '../../..', file), 'utf8')).toContain(`'${name}'`)
    }),
  )

  test('a run whose hosts die before they launch anything could not be started', () => {
    const spec = runSpecFixture(idFrom('run_0123456789abcdef'))
    const lost: RunEvent = { type: 'host_lost' }
    let state: RunState | null = null
    let effects: unknown[] = []
    for (const event of [{ type: 'offered', spec, fence: 1, at: 0 } as const, lost, lost, lost])
      [state, effects] = step(state, event)
    expect(state?.phase).toBe('ended')
    expect(effects).toEqual([
      { type: 'end_without_host', stop: { exitReason: 'dispatch_error', message: expect.any(String) } },
    ])
  })
})

describe('what has no cause here still has its status, should a device of another release report it', () => {
  const never = exitReasonNames.filter((name) => 'never' in causes[name])
  test.each(never)('%s', async (name) =>
    onStage(async ({ server, live }) => {
      await live.end(name)
      expect(await server.ok(`/runs/${live.runId}`)).toMatchObject(ending(name))
    }),
  )
})
