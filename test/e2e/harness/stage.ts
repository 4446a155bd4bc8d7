import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import type { RunEvent } from '../../../shared/api/run-events.ts'
import type { RunDetail } from '../../../shared/api/runs.ts'
import { goneMs, wholeLog } from '../../kit/invariants.ts'
import { nothingNames, waitFor } from '../../kit/programs.ts'
import { fetchHarness } from '../../kit/real-harness.ts'
import { startStubLlm, type StubLlm, type StubRequest, type StubScenario, type StubStep } from '../../kit/stub-llm.ts'
import type { TestApi } from '../../kit/system-api.ts'
import type { TestDevice } from '../../kit/system-device.ts'
import { makeRepo } from '../../kit/system-scenario.ts'
import { TestSystem } from '../../kit/system.ts'
import type { HarnessDriver } from './drivers.ts'

/** A real harness through the whole system; only the model's server is scripted. */
export interface Stage {
  driver: HarnessDriver
  system: TestSystem
  api: TestApi
  device: TestDevice
  stub: StubLlm
  binDir: string
  modelUrl: string
}

export interface StagedAgent {
  id: string
  /** Its default folder: a repository of its own. */
  folder: string
}

/** Declares the set-up of a file of tests of one program; the tests ask for the stage when they run. */
export const stageFor = (driver: HarnessDriver): (() => Stage) => stagesFor([driver]).stageOn(driver)

/** What a file of tests has on its one device. */
export interface Stages {
  /** Declares, in the group of a program's tests, that they are skipped where it cannot be had. */
  stageOn: (driver: HarnessDriver) => () => Stage
  systemOf: () => TestSystem
}

/**
 * Declares one system for a file of tests, on whose device all of these programs are installed. `installMore`: a program that can be
 * had everywhere.
 */
export function stagesFor(drivers: readonly HarnessDriver[], installMore?: (home: string) => void): Stages {
  const missing = new Map<HarnessDriver, string>()
  const stages = new Map<HarnessDriver, Stage>()
  let system: TestSystem | null = null
  let stop = async () => {}
  beforeAll(async () => {
    const all = drivers.map((driver) => ({ driver, found: fetchHarness(driver.program) }))
    const found = all.flatMap(({ driver, found: each }) => ('binDir' in each ? [{ driver, binDir: each.binDir }] : []))
    for (const { driver, found: each } of all)
      if ('missing' in each) {
        missing.set(driver, each.missing)
        process.stderr.write(`\n*** NOT TESTED: the real ${driver.program} is not available here. ${each.missing}\n\n`)
      }
    if (found.length === 0 && installMore === undefined) return
    const stub = await startStubLlm()
    // So that a device soon notices that its server is back.
    const deviceEnv = { SVC_RECONNECT_MIN_MS: '100', SVC_RECONNECT_MAX_MS: '500' }
    const started = await TestSystem.start({ devices: 0, device: { isWalled: true }, deviceEnv })
    system = started
    stop = async () => {
      await started.stop()
      await stub.stop()
    }
    const device = started.makeDevice()
    for (const { driver, binDir } of found) {
      const modelUrl = `${stub.url}/s/${driver.program}`
      stages.set(driver, { driver, system: started, api: started.api, device, stub, binDir, modelUrl })
      driver.install(device.homeDir, { binDir, modelUrl })
    }
    installMore?.(device.homeDir)
    await device.enrol(started.api, started.server.url)
    await device.start()
  })
  afterAll(() => stop())
  const stageOn = (driver: HarnessDriver) => {
    beforeEach((context) => {
      const note = missing.get(driver)
      if (note !== undefined) context.skip(note)
    })
    return () => {
      const stage = stages.get(driver)
      if (stage === undefined) throw new Error(`the stage of ${driver.program} is not there`)
      return stage
    }
  }
  return { stageOn, systemOf: () => system! }
}

/** An agent on this harness. `config`: of the agent, such as `permissions` and `runtime`. */
export async function newAgent(
  { driver, system, api, modelUrl, device: usual }: Stage,
  name: string,
  { config, device = usual, ...fields }: Record<string, unknown> & { device?: TestDevice } = {},
): Promise<StagedAgent> {
  const folder = join(system.root, name)
  makeRepo(folder)
  const { publicId } = device.identity
  const { shortId } = await api.addFolder({ displayName: name, rootPath: folder, deviceId: publicId })
  const own = { ...driver.agentFields(modelUrl), ...fields, harness: driver.harness }
  const agent = await api.createAgent({ name, defaultFolderId: shortId, ...own })
  if (config !== undefined) await api.call('PUT', `/agents/${agent.id}/config`, { config })
  return { id: agent.id, folder }
}

export const withTools = (tools: Record<string, unknown>) => ({ config: { permissions: { tools } } })

/** Sets what the model says to the next requests that bring tools, in this order. */
export const says = (
  { stub, driver }: Stage,
  steps: readonly StubStep[],
  more: Partial<StubScenario> = {},
): Promise<void> => stub.script({ [driver.program]: { steps, ...more } })

/** What the program's model was asked. */
export const requestsOf = async ({ stub, driver }: Stage): Promise<StubRequest[]> =>
  (await stub.requests()).filter(({ scenario }) => scenario === driver.program)

/** Their bodies, as JSON. */
export const asked = async (stage: Stage): Promise<string[]> =>
  (await requestsOf(stage)).map(({ body }) => JSON.stringify(body))

export function dataOf(events: readonly RunEvent[], kind: string): Record<string, unknown>[] {
  return events.filter((event) => event.kind === kind).map(({ data }) => data)
}

export interface EndedRun {
  run: RunDetail
  events: RunEvent[]
  sessionId: unknown
}

/** Waits for the end of a run, and looks whether its log is whole and nothing of it lives. */
export async function ended({ api }: Stage, runId: string, exitReason: string): Promise<EndedRun> {
  const run = await waitFor(
    async () => {
      const now = await api.run(runId)
      return ['succeeded', 'failed', 'cancelled'].includes(now.status) ? now : null
    },
    `${runId} ends`,
    // A program takes seconds to start; questions that come more often than that take them from it.
    { ms: 240_000, everyMs: 250 },
  )
  const events = await api.events(runId)
  if (run.exitReason !== exitReason)
    throw new Error(`${runId}: ${run.exitReason}, not ${exitReason}: ${JSON.stringify({ run, events }, null, 1)}`)
  wholeLog(events, exitReason)
  await nothingNames(runId, goneMs)
  return { run, events, sessionId: dataOf(events, 'session')[0]?.['sessionId'] }
}

/** Starts a run of the agent and sees it to that end. */
export async function plays(
  stage: Stage,
  agent: StagedAgent,
  { prompt = 'Do it.', taskId, exitReason = 'completed' }: { prompt?: string; taskId?: string; exitReason?: string },
): Promise<EndedRun> {
  const { runPublicId } = await stage.api.call<{ runPublicId: string }>('POST', `/agents/${agent.id}/runs`, {
    prompt,
    ...(taskId !== undefined && { taskId }),
  })
  return ended(stage, runPublicId, exitReason)
}

/** The run that follows this one. */
export const successorOf = ({ api }: Stage, runId: string): Promise<string> =>
  waitFor(async () => (await api.run(runId)).successorRunId, 'a run follows', { ms: 60_000 })
