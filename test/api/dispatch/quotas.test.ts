import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { enrol, FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'

// Runs that reach the limit of the account with which their harness is signed in.

const hour = 3_600_000

let server: TestServer
beforeEach(async () => {
  // The devices keep their leases over hours that pass at once.
  server = await TestServer.start({ settings: { SVC_LEASE_MS: String(30 * 24 * hour) } })
})
afterEach(() => server?.stop())

const claudeAgent = () => server.createAgent({ harness: 'claude', command: null })
const runOf = (runId: string) => server.ok(`/runs/${runId}`)
const later = (ms: number) => server.world.now() + ms
const iso = (at: number) => new Date(at).toISOString()

/** Lets time pass, and what happens by time happen. */
async function pass(ms: number): Promise<void> {
  server.world.advance(ms)
  await server.plane.sweeper.runAll()
}
async function beat(device: FakeDevice): Promise<void> {
  const claimState = { accepting: true, reason: null, message: null, activeRuns: 0 }
  device.send({ type: 'heartbeat', claimState })
  await device.next('heartbeat.ack')
}
const withCapacity = async (maxConcurrentRuns: number) => {
  const identity = await enrol(server)
  await server.ok(`/devices/${identity.deviceId}`, { method: 'PATCH', body: { maxConcurrentRuns } })
  return FakeDevice.connect(server, { identity })
}
/** The run that follows this one, once it is there. */
async function successorOf(runId: string): Promise<string> {
  const found = async () => (await runOf(runId)).successorRunId as string | null
  await expect.poll(found).toEqual(expect.any(String))
  return (await found())!
}
/** True when all that was asked for is done and nobody was made to follow the run. */
async function isLast(runId: string): Promise<boolean> {
  await server.plane.waker.sweep()
  return (await runOf(runId)).successorRunId === null
}

test('a run that reached the limit is followed by one that waits for the account, as all others of it do', async () => {
  const device = await FakeDevice.connect(server)
  const agent = await claudeAgent()
  await server.startRun(agent.id, { prompt: 'Paint the boat.', model: 'claude-opus-4-5', reasoningEffort: 'high' })
  const limited = await device.take()
  const resetsAt = later(5 * hour)
  await limited.end('rate_limited', { sessionId: 'ses-1', limitResetsAt: resetsAt })

  expect((await device.next('config.changed')).limits).toEqual([{ harness: 'claude', resetsAt }])
  const { devices } = await server.ok('/devices')
  expect(devices).toMatchObject([
    {
      limits: [
        {
          reason: 'rate_limit',
          provider: 'claude',
          access: 'sign_in',
          since: expect.any(String),
          until: iso(resetsAt),
        },
      ],
    },
  ])
  const successor = await successorOf(limited.runId)
  const waits = {
    status: 'queued',
    gateReason: 'rate_limit',
    gateDescription: expect.stringContaining(iso(resetsAt)),
  }
  expect(await runOf(successor)).toMatchObject({ ...waits, triggerSource: 'manual', parentRunId: limited.runId })
  const other = await server.startRun((await claudeAgent()).id)
  expect(await runOf(other)).toMatchObject(waits)
  // Another harness has another account.
  await server.startRun((await server.createAgent()).id)
  const free = await device.take()
  expect(free.spec.harness).toBe('command')
  await free.end()

  await pass(5 * hour - 1_000)
  expect(device.pending).not.toContain('run.offer')
  await pass(1_000)
  expect(await server.ok('/devices')).toMatchObject({ devices: [{ limits: [] }] })
  const first = await device.take()
  expect(first.runId).toBe(successor)
  expect(first.spec).toMatchObject({
    resumeSessionId: 'ses-1',
    harness: 'claude',
    model: 'claude-opus-4-5',
    reasoningEffort: 'high',
    prompt: expect.stringMatching(/Go on where you stopped.*Paint the boat\.$/s),
  })
  await first.end()
  expect((await device.take()).runId).toBe(other)
})

test('the account opens over a minute, oldest first', async () => {
  const device = await withCapacity(3)
  await server.startRun((await claudeAgent()).id)
  const limited = await device.take()
  await limited.end('rate_limited', { limitResetsAt: later(hour) })
  const waiting = [await successorOf(limited.runId)]
  for (let i = 0; i < 3; i++) {
    server.world.advance(1)
    waiting.push(await server.startRun((await claudeAgent()).id))
  }
  await pass(hour)
  const started = [await device.take()]
  await server.plane.sweeper.runAll()
  expect(device.pending).not.toContain('run.offer')
  for (let i = 0; i < 2; i++) {
    await pass(20_000)
    started.push(await device.take())
    expect(device.pending).not.toContain('run.offer')
  }
  await pass(20_000)
  expect(started.map((run) => run.runId)).toEqual(waiting.slice(0, 3))
  expect((await runOf(waiting[3]!)).gateReason).toBe('capacity')
})

test('a limit is waited for once, and three in a row at most', async () => {
  const device = await FakeDevice.connect(server)
  const { id } = await claudeAgent()
  const limit = async (run: FakeRun, limitResetsAt: number) => {
    await run.end('rate_limited', { limitResetsAt })
    return run.runId
  }
  const again = async (runId: string, resetsAt: number) => {
    const successor = await successorOf(runId)
    await pass(resetsAt - server.world.now())
    const run = await device.take()
    expect(run.runId).toBe(successor)
    return run
  }
  await server.startRun(id)
  let [run, resetsAt] = [await device.take(), 0]
  for (let i = 0; i < 3; i++) {
    resetsAt = later(hour)
    run = await again(await limit(run, resetsAt), resetsAt)
  }
  expect(await isLast(await limit(run, later(hour)))).toBe(true)

  await pass(hour)
  await server.startRun(id)
  const fresh = await device.take()
  resetsAt = later(hour)
  const same = await again(await limit(fresh, resetsAt), resetsAt)
  expect(await isLast(await limit(same, resetsAt))).toBe(true)
})

test('where nobody says when the limit is over, nothing follows', async () => {
  const device = await FakeDevice.connect(server)
  await server.startRun((await claudeAgent()).id)
  const limited = await device.take()
  await limited.end('rate_limited')
  expect(await isLast(limited.runId)).toBe(true)
  // Nor where it is said of a run that ended otherwise.
  await server.startRun((await claudeAgent()).id)
  const failed = await device.take()
  await failed.end('error', { limitResetsAt: later(hour) })
  expect(await isLast(failed.runId)).toBe(true)
  await server.startRun((await claudeAgent()).id)
  await device.take()
})

test('a run that waits for a limit outlasts the time that other gates have, and not much more', async () => {
  const device = await FakeDevice.connect(server)
  await server.startRun((await claudeAgent()).id)
  const limited = await device.take()
  // Longer than any window is: nobody is believed to be limited for a year.
  await limited.end('rate_limited', { limitResetsAt: later(365 * 24 * hour) })
  const successor = await successorOf(limited.runId)
  await pass(6 * 24 * hour)
  expect(await runOf(successor)).toMatchObject({ status: 'queued', gateReason: 'rate_limit' })
  server.world.advance(2 * 24 * hour)
  await beat(device)
  await server.plane.sweeper.runAll()
  expect((await device.take()).runId).toBe(successor)
})

test('an account is one on all devices of a person; a run goes to another one, where its session is not', async () => {
  const first = await FakeDevice.connect(server)
  const tell = async (device: FakeDevice, account: string) => {
    const harnesses = { claude: { installed: true, version: '2', signedIn: true, message: null, account } }
    device.send({ type: 'readiness', providerReadiness: { harnesses }, capturedAt: server.world.now() })
    const known = async () => {
      const { devices } = await server.ok('/devices')
      const told = devices.find(({ publicId }: { publicId: string }) => publicId === device.identity.publicId)
      return told.providerReadiness.harnesses?.claude.account
    }
    await expect.poll(known).toBe(account)
  }
  const second = await FakeDevice.connect(server)
  const [one, two] = ['1'.repeat(32), '2'.repeat(32)]
  for (const device of [first, second]) await tell(device, one)
  const isWorkspaceDefault = true
  await server.ok(`/devices/${first.identity.deviceId}`, { method: 'PATCH', body: { isWorkspaceDefault } })
  await server.startRun((await claudeAgent()).id, { prompt: 'Sail.' })
  const limited = await first.take()
  await limited.end('rate_limited', { sessionId: 'ses-1', limitResetsAt: later(hour) })
  const successor = await successorOf(limited.runId)
  expect(await runOf(successor)).toMatchObject({ gateReason: 'rate_limit' })
  await tell(second, two)
  await server.plane.sweeper.runAll()
  const moved = await second.take()
  expect(moved.runId).toBe(successor)
  expect(moved.spec).toMatchObject({ resumeSessionId: null, prompt: expect.stringMatching(/another device.*Sail\.$/s) })
})

test('a key that an agent brings has a limit of its own', async () => {
  const device = await FakeDevice.connect(server)
  const withKey = await claudeAgent()
  const body = { name: 'Key', value: 'sk-ant-1', envVarName: 'ANTHROPIC_API_KEY', agentId: withKey.id }
  const secret = await server.ok('/secrets', { body })
  await server.startRun((await claudeAgent()).id)
  const limited = await device.take()
  await limited.end('rate_limited', { limitResetsAt: later(hour) })
  await server.startRun(withKey.id)
  const run = await device.take()
  await run.events({ kind: 'session', data: { sessionId: 'ses-2' } })
  const access = { accessMode: 'byok', providerKeyId: secret.id, mode: 'full' }
  expect((await runOf(run.runId)).effectiveSettings).toMatchObject(access)
  await run.end('rate_limited', { limitResetsAt: later(2 * hour) })
  const successor = await successorOf(run.runId)
  await pass(hour)
  expect((await device.take()).runId).toBe(await successorOf(limited.runId))
  expect(await runOf(successor)).toMatchObject({ gateReason: 'rate_limit' })
})

test('a device that says its limit is reached stops nobody else’s agents that have the same key', async () => {
  const device = await FakeDevice.connect(server)
  const mine = await claudeAgent()
  const body = { name: 'Key', value: 'sk-ant-1', envVarName: 'ANTHROPIC_API_KEY', agentId: mine.id }
  const secret = await server.ok('/secrets', { body })
  const other = await server.addPerson('member')
  const theirs = await server.createAgent({ harness: 'claude', command: null }, other.token)
  await server.ok(`/secrets/${secret.id}/grants`, { body: { agentId: theirs.id } })
  const lying = await FakeDevice.connect(server, { identity: await enrol(server, { token: other.token }) })
  await server.startRun(theirs.id, {}, other.token)
  await (await lying.take()).end('rate_limited', { limitResetsAt: later(8 * 24 * hour) })
  const runId = await server.startRun(mine.id)
  expect((await device.take()).runId).toBe(runId)
})

const fallbackAgent = () =>
  server.createAgent({
    harness: 'claude',
    command: null,
    model: 'claude-opus-4-5',
    fallbackHarness: 'codex',
    backupModel: 'gpt-5.1-codex',
  })

test('with a fallback harness a limited run goes on there at once, as do those that wait', async () => {
  const device = await withCapacity(1)
  const agent = await fallbackAgent()
  await server.startRun(agent.id, { prompt: 'Paint the boat.' })
  const limited = await device.take()
  const waiting = await server.startRun(agent.id)
  await limited.end('rate_limited', { sessionId: 'ses-1', limitResetsAt: later(hour) })
  const first = await device.take()
  expect(first.runId).toBe(await successorOf(limited.runId))
  expect(first.spec).toMatchObject({
    harness: 'codex',
    model: 'gpt-5.1-codex',
    backupModel: null,
    resumeSessionId: null,
    prompt: expect.stringMatching(/worked on this before\. That.*Go on where you stopped.*Paint the boat\.$/s),
  })
  expect(await runOf(first.runId)).toMatchObject({ harness: { id: 'codex' }, gateReason: null })
  expect(await server.ok(`/runs/${first.runId}/manifest`)).toMatchObject({ harness: 'codex', model: 'gpt-5.1-codex' })
  await first.end()
  const second = await device.take()
  expect(second).toMatchObject({ runId: waiting, spec: { harness: 'codex' } })
  await second.end()
  // A new one is placed so, too, and one after the reset is not.
  await server.startRun(agent.id)
  const third = await device.take()
  expect(third.spec.harness).toBe('codex')
  await third.end()
  await pass(hour)
  await server.startRun(agent.id)
  expect((await device.take()).spec).toMatchObject({ harness: 'claude', model: 'claude-opus-4-5' })
})

test('a run that reaches the limit of the fallback, too, waits for its own harness', async () => {
  const device = await FakeDevice.connect(server)
  const agent = await fallbackAgent()
  await server.startRun(agent.id)
  const limited = await device.take()
  const resetsAt = later(hour)
  await limited.end('rate_limited', { limitResetsAt: resetsAt })
  const there = await device.take()
  await there.end('rate_limited', { limitResetsAt: later(5 * hour) })
  const successor = await successorOf(there.runId)
  expect(await runOf(successor)).toMatchObject({
    harness: { id: 'claude' },
    gateReason: 'rate_limit',
    gateDescription: expect.stringContaining(iso(resetsAt)),
  })
  await pass(hour)
  expect(await device.take()).toMatchObject({ runId: successor, spec: { harness: 'claude', model: 'claude-opus-4-5' } })
})

test('a fallback that could not hold the mode strict is none, nor is the own harness', async () => {
  const device = await FakeDevice.connect(server)
  const strict = await server.createAgent({
    harness: 'claude',
    command: null,
    fallbackHarness: 'cursor',
    toolPermissionMode: 'strict',
  })
  const same = await server.createAgent({ harness: 'claude', command: null, fallbackHarness: 'claude' })
  await server.startRun(same.id)
  const limited = await device.take()
  await limited.end('rate_limited', { limitResetsAt: later(hour) })
  for (const runId of [await successorOf(limited.runId), await server.startRun(strict.id)])
    expect(await runOf(runId)).toMatchObject({ harness: { id: 'claude' }, gateReason: 'rate_limit' })
  const body = { config: { runtime: { fallbackHarness: 'command' } } }
  expect(await server.call(`/agents/${same.id}/config`, { method: 'PUT', body })).toMatchObject({ status: 400 })
})

/** A device whose account does so many pieces of work in an hour, counted from the first one. */
interface Limited {
  device: FakeDevice
  atWork: { run: FakeRun; endsAt: number; isLimited: boolean }[]
  window: { endsAt: number; left: number }
}
const perWindow = 4
const capacity = 2
const workMs = 60_000

test('of 50 pieces of work and two limited accounts, no time is lost in which an account is free, nor work done twice', async () => {
  const accounts: Limited[] = []
  for (let i = 0; i < 2; i++)
    accounts.push({ device: await withCapacity(capacity), atWork: [], window: { endsAt: 0, left: perWindow } })
  const agent = await claudeAgent()
  const pieces: string[] = []
  for (let i = 0; i < 50; i++) pieces.push(await server.startRun(agent.id))
  const done = new Map<string, number>()
  const time = { usable: 0, used: 0 }
  let runs = 0

  const take = async (account: Limited) => {
    while (account.device.pending.includes('run.offer')) {
      const run = await account.device.take()
      const now = () => server.world.now()
      runs++
      if (now() >= account.window.endsAt) account.window = { endsAt: now() + hour, left: perWindow }
      const isLimited = account.window.left === 0
      if (!isLimited) account.window.left--
      account.atWork.push({ run, isLimited, endsAt: now() + (isLimited ? 1_000 : workMs) })
    }
  }
  const endDue = async (account: Limited) => {
    const at = server.world.now()
    const due = account.atWork.filter((each) => each.endsAt <= at)
    account.atWork = account.atWork.filter((each) => each.endsAt > at)
    for (const { run, isLimited } of due) {
      await (isLimited ? run.end('rate_limited', { limitResetsAt: account.window.endsAt }) : run.end())
      if (!isLimited) done.set(run.runId, (done.get(run.runId) ?? 0) + 1)
    }
  }
  const isOffered = async () =>
    (await server.database.root('runs').where({ lease_state: 'offered' }).whereNull('ended_at').first('id')) !==
    undefined
  /** The next moment at which something ends or an account has room again. */
  const nextMoment = () => {
    const moments = accounts.flatMap(({ atWork, window }) => [
      ...atWork.map(({ endsAt }) => endsAt),
      ...Array.from({ length: capacity }, (_, step) => window.endsAt + step * (60_000 / capacity)),
    ])
    const next = Math.min(...moments.filter((at) => at > server.world.now()))
    if (next === Infinity) throw new Error(`Nothing goes on after ${done.size} pieces, nor will an account have room.`)
    return next
  }
  while (done.size < pieces.length) {
    await server.plane.waker.sweep()
    await server.plane.sweeper.runAll()
    await server.plane.dispatcher.idle()
    // An offer that is made may still be on its way.
    while (await isOffered()) {
      for (const account of accounts) await take(account)
      await setImmediate()
    }
    const [now, next] = [server.world.now(), nextMoment()]
    const isFree = ({ window }: Limited) => now >= window.endsAt || window.left > 0
    if (accounts.some(isFree)) {
      time.usable += next - now
      if (accounts.some(({ atWork }) => atWork.length > 0)) time.used += next - now
    }
    await pass(next - now)
    for (const account of accounts) await endDue(account)
  }
  expect([...done.values()]).toEqual(pieces.map(() => 1))
  expect(time.used / time.usable).toBeGreaterThanOrEqual(0.95)
  // Each window was found used up by no more runs than the account's device takes at once.
  const windows = Math.ceil(pieces.length / (accounts.length * perWindow)) * accounts.length
  expect(runs - pieces.length).toBeLessThanOrEqual(windows * capacity)
})

test('how much of its limits an account has used is shown to the owner of its device, until each begins anew', async () => {
  const device = await FakeDevice.connect(server)
  const agent = await claudeAgent()
  const tell = async (limitsUsed: unknown) => {
    await server.startRun(agent.id)
    const run = await device.take()
    // As a device may write it that keeps to no schema.
    await run.end('completed', { limitsUsed: limitsUsed as [] })
    return run
  }
  const shown = async () => (await server.ok('/devices')).devices[0].limitsInUse
  const used = (windowMinutes: number, usedPercent: number, resetsAt: number) => ({
    windowMinutes,
    models: null,
    usedPercent,
    resetsAt,
  })
  const [soon, then] = [later(2 * hour), later(5 * 24 * hour)]
  expect(await shown()).toEqual([])
  await tell([used(300, 62, soon), used(10_080, 8, then)])
  const limit = { provider: 'claude', access: 'sign_in', models: null, toldAt: expect.any(String) }
  const week = { ...limit, limit: '7-day', windowMinutes: 10_080, usedPercent: 8, resetsAt: iso(then) }
  await expect
    .poll(shown)
    .toEqual([{ ...limit, limit: '5-hour', windowMinutes: 300, usedPercent: 62, resetsAt: iso(soon) }, week])
  // A run that is told of one limit takes nothing from what is known of the others.
  await tell([used(300, 64, soon)])
  await expect
    .poll(shown)
    .toEqual([{ ...limit, limit: '5-hour', windowMinutes: 300, usedPercent: 64, resetsAt: iso(soon) }, week])
  // It is nobody else's.
  const member = await server.addPerson('member')
  expect((await server.ok('/devices', { token: member.token })).devices).toEqual([])
  // What cannot be is left out, whatever came with it, and the run ends all the same.
  const odd = [
    used(300, -1, soon),
    used(300, 1e9, soon),
    used(300, 5, Date.parse('9999-12-31T23:59:59Z')),
    used(300, 5, later(-hour)),
    ...Array(1_000).fill(used(300, 5, later(-hour))),
  ]
  for (const told of [odd, 'much', { 0: 1 }, null]) {
    const run = await tell(told)
    await expect.poll(async () => (await runOf(run.runId)).status).toBe('succeeded')
  }
  expect(await shown()).toHaveLength(2)
  await pass(3 * hour)
  expect(await shown()).toEqual([week])
})
