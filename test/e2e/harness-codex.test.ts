import { isLong } from '../kit/forms.ts'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { waitFor } from '../kit/programs.ts'
import { fetchHarness } from '../kit/real-harness.ts'
import { makeRepo } from '../kit/system-scenario.ts'
import { claudeDriver, codexDriver } from './harness/drivers.ts'
import { longCases } from './harness/long-cases.ts'
import { approvedCase, shortCases } from './harness/short-cases.ts'
import { skillCases } from './harness/skill-cases.ts'
import { stageFor } from './harness/stage.ts'

const stageOf = stageFor(codexDriver)
test('its first start was made apart, behind a wall where there is one, so that its runs begin with databases', async () => {
  const all = join(stageOf().device.stateDir, 'first-starts')
  const kept = await waitFor(
    () => (existsSync(all) ? readdirSync(all).find((name) => /^codex-[\d.]+$/.test(name)) : null),
    'a first start of codex is kept',
  )
  const names = readdirSync(join(all, kept))
  expect(names).toContain('state_5.sqlite')
  expect(names.filter((name) => !/\.sqlite(-wal)?$/.test(name))).toEqual([])
})

// Recordings stand for the rest of the cases in the short form.
if (isLong) {
  shortCases(stageOf, codexDriver)
  longCases(stageOf, codexDriver)
  skillCases(stageOf)
} else approvedCase(stageOf, codexDriver)

test('a task that the real claude began, and whose provider fails, is finished by the real codex', async ({ skip }) => {
  const { api, device, system, stub, binDir, modelUrl } = stageOf()
  const claude = fetchHarness(claudeDriver.program)
  if ('missing' in claude) {
    process.stderr.write(`\n*** NOT TESTED: the real claude is not available here. ${claude.missing}\n\n`)
    return skip(claude.missing)
  }
  // Its person installs claude beside codex.
  claudeDriver.install(device.homeDir, { binDir: claude.binDir, modelUrl: `${stub.url}/s/claude` })
  codexDriver.install(device.homeDir, { binDir, modelUrl })
  await device.control({ op: 'refresh' })
  const folder = join(system.root, 'Builder')
  makeRepo(folder)
  const { publicId } = device.identity
  const { shortId } = await api.addFolder({ displayName: 'Builder', rootPath: folder, deviceId: publicId })
  const agent = await api.createAgent({
    name: 'Builder',
    harness: 'claude',
    fallbackHarness: 'codex',
    model: 'claude-opus-4-5',
    defaultFolderId: shortId,
  })
  const failures = Array.from({ length: 20 }, () => ({ error: { status: 529, retryAfter: 0 } }))
  await stub.script({
    claude: { steps: [{ text: 'I begin.', tool: claudeDriver.shell('echo claude >> who.txt') }, ...failures] },
    run: { steps: [{ text: 'I go on.', tool: codexDriver.shell('echo codex >> who.txt') }, { text: 'Done.' }] },
  })
  const { key } = await api.insist<{ key: string }>('/tasks', { title: 'Build it', assignee: agent.id })
  const runs = async () => (await api.call<{ data: { id: string }[] }>('GET', `/runs?task=${key}`)).data
  const first = await waitFor(async () => (await runs())[0]?.id, 'the assignment wakes a run')
  expect((await api.waitForRun(first, 'failed')).harness.id).toBe('claude')
  const successor = await waitFor(async () => (await api.run(first)).successorRunId, 'a run follows')
  const done = await api.waitForRun(successor, 'succeeded')
  expect(done).toMatchObject({ harness: { id: 'codex' }, task: { id: key }, parentRunId: first })
  expect(readFileSync(join(folder, 'who.txt'), 'utf8')).toBe('claude\ncodex\n')
  const asked = (await stub.requests()).find(({ scenario }) => scenario === 'run')
  expect(JSON.stringify(asked?.body)).toContain('Go on where you stopped')
})
