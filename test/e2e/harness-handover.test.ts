import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { wholeLog } from '../kit/invariants.ts'
import { waitFor } from '../kit/programs.ts'
import { fetchHarness } from '../kit/real-harness.ts'
import { startStubLlm } from '../kit/stub-llm.ts'
import { makeRepo } from '../kit/system-scenario.ts'
import { TestSystem } from '../kit/system.ts'
import { acpDriver, claudeDriver, codexDriver, opencodeDriver, type HarnessDriver } from './harness/drivers.ts'

const hands = [claudeDriver, codexDriver, opencodeDriver, acpDriver]

/** A folder on a device on which these programs are installed, each with a model of its own; skips where one cannot be had. */
async function placeFor(drivers: readonly HarnessDriver[], skip: (note: string) => never) {
  const binDirs = drivers.map(({ program }) => {
    const found = fetchHarness(program)
    if (!('missing' in found)) return found.binDir
    process.stderr.write(`\n*** NOT TESTED: the real ${program} is not available here. ${found.missing}\n\n`)
    return skip(found.missing)
  })
  const stub = await startStubLlm()
  onTestFinished(() => stub.stop())
  const system = await TestSystem.start({ devices: 0, device: { isWalled: true } })
  onTestFinished(() => system.stop())
  const { api } = system
  const device = system.makeDevice()
  const modelUrlOf = (program: string) => `${stub.url}/s/${program}`
  for (const [index, { install, program }] of drivers.entries())
    install(device.homeDir, { binDir: binDirs[index]!, modelUrl: modelUrlOf(program) })
  await device.enrol(api, system.server.url)
  await device.start()
  const folder = join(system.root, 'site')
  makeRepo(folder)
  const { publicId } = device.identity
  const { shortId } = await api.addFolder({ displayName: 'site', rootPath: folder, deviceId: publicId })
  return { api, device, folder, defaultFolderId: shortId, modelUrlOf, stub }
}

test('a task goes through the hands of agents of several real harnesses, and the last one finishes it', async ({
  skip,
}) => {
  const { api, device, folder, defaultFolderId, modelUrlOf, stub } = await placeFor(hands, skip)
  const agents: { id: string }[] = []
  for (const { program, harness, agentFields } of hands)
    agents.push(
      await api.createAgent({ ...agentFields(modelUrlOf(program)), name: `By ${program}`, harness, defaultFolderId }),
    )

  const scenarios = hands.map(({ program, shell }, index) => {
    const next = hands[index + 1]?.program
    const handOn =
      next === undefined
        ? 'svc task transition current --status done'
        : `svc task comment add current "${program} did its part" && svc task assign current --assignee @by-${next}`
    return [
      program,
      {
        steps: [
          { tool: shell(`svc task get current --include comments && echo ${program} >> hands.txt && ${handOn}`) },
          { text: 'My part is done.' },
        ],
      },
    ]
  })
  await stub.script(Object.fromEntries(scenarios))
  const assignee = { type: 'agent', id: agents[0]!.id }
  const { id, key } = await api.insist<{ id: string; key: string }>('/tasks', { title: 'Build it', assignee })
  const task = () => api.call<{ status: string; conditions: { type: string }[] }>('GET', `/tasks/${id}`)
  const handsPath = join(folder, 'hands.txt')
  const played = () => (existsSync(handsPath) ? readFileSync(handsPath, 'utf8') : '').split('\n')
  const about = () => device.log
  for (const { program } of hands)
    await waitFor(() => played().includes(program), `the part of ${program}`, { ms: 60_000, everyMs: 200, about })
  await waitFor(async () => {
    const { status, conditions } = await task()
    return status === 'done' && !conditions.some(({ type }) => type === 'active_run')
  }, 'the task is done and nobody works on it')
  expect(readFileSync(handsPath, 'utf8')).toBe(hands.map(({ program }) => `${program}\n`).join(''))
  const { data: runs } = await api.call<{ data: { id: string; harness: { id: string }; status: string }[] }>(
    'GET',
    `/runs?task=${key}`,
  )
  const inOrder = runs.toReversed()
  expect(inOrder.map(({ harness, status }) => [harness.id, status])).toEqual(
    hands.map(({ harness }) => [harness, 'succeeded']),
  )
  for (const run of inOrder) wholeLog(await api.events(run.id), 'completed')
  // Each read what the one before had said.
  const asked = await stub.requests()
  for (const [index, { program }] of hands.slice(1).entries()) {
    const last = asked.findLast(({ scenario }) => scenario === program)
    expect(JSON.stringify(last?.body)).toContain(`${hands[index]!.program} did its part`)
  }
}, 300_000)
