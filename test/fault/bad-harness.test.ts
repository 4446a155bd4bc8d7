import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RunEvent } from '../../shared/api/run-events.ts'
import type { RunDetail } from '../../shared/api/runs.ts'
import { isLong } from '../kit/forms.ts'
import { checkInvariants, goneMs, wholeLog } from '../kit/invariants.ts'
import { nothingNames, waitFor } from '../kit/programs.ts'
import { makeRepo, printedLines, scenario, type Scenario } from '../kit/system-scenario.ts'
import { TestSystem } from '../kit/system.ts'

// Harnesses that behave badly: each run has a named ending, and neither the daemon nor another run notices.

let system: TestSystem
let program: string
let agentId: string
/** Runs all the while. */
let beside: Scenario
let besideId: string
let daemonPid: number
/** Each of them takes its time: they run at once. */
const slow = ['silence', ...(isLong ? ['longLine'] : [])]
const begun = new Map<string, string>()

const source = readFileSync(join(import.meta.dirname, '../kit/bad-claude.mjs'), 'utf8')
/** By a shell: the first line of a script cannot name a program whose path has a blank. */
const install = (text: string) => {
  writeFileSync(`${program}.mjs`, text)
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${program}.mjs' "$@"\n`)
  chmodSync(program, 0o755)
}

beforeAll(async () => {
  system = await TestSystem.start({
    devices: 0,
    device: { isWalled: true },
    serverEnv: { SVC_FIRST_EVENT_MS: '10000' },
  })
  const device = system.makeDevice()
  const bin = join(device.homeDir, 'bin')
  mkdirSync(bin)
  program = join(bin, 'claude')
  install(source)
  writeFileSync(join(device.homeDir, '.profile'), `export PATH='${bin}':"$PATH"\n`)
  await device.enrol(system.api, system.server.url)
  await system.api.call('PATCH', `/devices/${device.identity.deviceId}`, { maxConcurrentRuns: 10 })
  await device.start()
  daemonPid = device.program.pid
  const folder = join(system.root, 'bad')
  makeRepo(folder)
  const { publicId } = device.identity
  const { shortId } = await system.api.addFolder({ displayName: 'bad', rootPath: folder, deviceId: publicId })
  agentId = (await system.api.createAgent({ name: 'Bad', harness: 'claude', defaultFolderId: shortId })).id
  const tools = { defaultMode: 'strict', allow: ['Bash(echo allowed)'] }
  await system.api.call('PUT', `/agents/${agentId}/config`, { config: { permissions: { tools } } })
  beside = await scenario(system, { steps: ['lines=50', 'touch=GATES/half', 'await=GATES/end', 'lines=50'] })
  besideId = await beside.start()
  await beside.reached('half')
  for (const how of slow) begun.set(how, await start(how))
})
afterAll(() => system?.stop())

async function ended(runId: string): Promise<{ run: RunDetail; events: RunEvent[] }> {
  const run = await waitFor(
    async () => {
      const now = await system.api.run(runId)
      return ['succeeded', 'failed', 'cancelled'].includes(now.status) ? now : null
    },
    `${runId} ends`,
    { ms: 100_000, about: () => system.device.log },
  )
  await nothingNames(runId, goneMs)
  const events = await system.api.events(runId)
  wholeLog(events, String(run.exitReason))
  return { run, events }
}
const mark = () => join(system.root, 'stays')
const start = async (how: string, taskId?: string) => {
  const body = { prompt: `do ${how} ${mark()}`, ...(taskId !== undefined && { taskId }) }
  return (await system.api.insist<{ runPublicId: string }>(`/agents/${agentId}/runs`, body)).runPublicId
}
const play = async (how: string) => ended(begun.get(how) ?? (await start(how)))
const dataOf = (events: readonly RunEvent[], kind: string): Record<string, unknown>[] =>
  events.filter((event) => event.kind === kind).map(({ data }) => data)
const words = (events: readonly RunEvent[]) => dataOf(events, 'text').map(({ text }) => text)

// claude/dialogue.test.ts shows in the short form what becomes of such a line.
if (isLong) {
  test('a line of 48 MB, which is longer than a message may be, is kept raw, and what follows is read', async () => {
    const { run, events } = await play('longLine')
    expect(run.exitReason).toBe('completed')
    expect(words(events)).toEqual(['The last words.'])
    const kept = dataOf(events, 'raw').map(({ text }) => String(text).length)
    expect(kept.reduce((sum, length) => sum + length, 0)).toBeGreaterThan(48 * 1024 * 1024)
  })
}

test('bytes that are no text, wrong JSON, two calls under one id, another session, and more after the result: each is taken for what it is; another version, which does not know what that one knew, has a named ending, and once it was looked at goes on with the session', async () => {
  const { id: taskId } = await system.api.insist<{ id: string }>('/tasks', { title: 'Two versions' })
  const { run, events } = await ended(await start('noText,wrongShape,asksTwice,otherSession,goesOn', taskId))
  expect(run.exitReason).toBe('completed')
  // Kept raw.
  expect(dataOf(events, 'raw').map(({ text, base64 }) => text ?? base64)).toEqual([
    Buffer.from([0xff, 0xfe, 0x80, 0x7b, 0xc3, 0x0a]).toString('base64'),
    '{"type":"assistant","message":7}\n',
    '[1,2]\n',
    '{"type":{}}\n',
    '{"type":"control_request"}\n',
    'null\n',
    expect.stringContaining('Of another session.'),
    expect.stringContaining('"subtype":"init"'),
    expect.stringContaining('Done elsewhere.'),
    expect.stringContaining('call-3'),
  ])
  const [answers, ...others] = words(events)
  // Neither of two calls under one id may run.
  expect(answers).toContain('"permissionDecision":"deny"')
  // The result counts, and what is said after it is kept.
  expect(others).toEqual(['The last words.', 'And one more thing.'])
  expect(dataOf(events, 'result')).toMatchObject([{ text: 'done' }])
  // Another session does not begin in the middle of a turn.
  expect(dataOf(events, 'session').map(({ sessionId }) => sessionId)).toEqual(['ses-1'])

  install(source.replace("const version = '2.1.329'", "const version = '2.1.197'"))
  expect((await ended(await start('end', taskId))).run).toMatchObject({
    exitReason: 'harness_start_failed',
    errorMessage: expect.stringContaining("unknown option '--system-prompt-snapshot"),
  })
  await system.device.control({ op: 'refresh' })
  const later = await ended(await start('end', taskId))
  expect(later.run.exitReason).toBe('completed')
  expect(dataOf(later.events, 'session')).toMatchObject([{ sessionId: 'ses-1', resumed: true }])
})

test('a harness that closes its input gets no answer, and left without a result; what forks away from it and its session is ended with the run', async () => {
  const { run, events } = await play('closesInput,forksAway')
  expect(run).toMatchObject({ exitReason: 'error', errorMessage: expect.stringContaining('without a result') })
  expect(words(events)).toEqual(['I hear nothing.'])
  await nothingNames(mark(), goneMs)
})

test('a question on its terminal is shown; nobody answers, and the run can be cancelled', async () => {
  const steps = ['text=Password for the vault:', 'touch=GATES/asked', 'read=1']
  const prompts = await scenario(system, { steps })
  const runId = await prompts.start()
  await prompts.reached('asked')
  await waitFor(
    async () =>
      words(await system.api.events(runId))
        .join('')
        .includes('Password for the vault:'),
    'it is shown',
  )
  await system.api.cancel(runId)
  expect((await ended(runId)).run.exitReason).toBe('interrupted')
})

// It was begun before all others, whose time its wait is.
test('a harness that never answers has failed to start', async () => {
  const { run } = await play('silence')
  expect(run.exitReason).toBe('harness_start_failed')
})

test('all the while the daemon was the same, and another run went its way', async () => {
  expect(system.device.program.pid).toBe(daemonPid)
  expect(system.device.isRunning).toBe(true)
  beside.open('end')
  const { output } = await checkInvariants(system, beside, besideId, { exitReason: 'completed' })
  expect(output.toString()).toContain(printedLines(50))
})
