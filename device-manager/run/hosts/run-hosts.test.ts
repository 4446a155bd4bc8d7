import { idFrom, type RunId } from '../../../shared/lib/ids.ts'
import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { realWorld } from '../../../shared/lib/world.ts'
import type { HostRequest } from '../../run-host/wire/protocol.ts'
import { RunHosts, type RunHostsOptions } from './run-hosts.ts'
import type { RunState } from '../machine.ts'

const runId = idFrom<RunId>('run_1')
const state = {
  runId,
  fence: 1,
  phase: 'accepted',
  spec: { folder: null, harness: 'command', mcpServers: {} },
  hostId: null,
}

class FakeHost {
  readonly hostId: string
  readonly record: { hostId: string }
  readonly sent: HostRequest['type'][] = []
  isOpen = true
  private events: { lost(): void } | null = null

  constructor(hostId: string) {
    this.hostId = hostId
    this.record = { hostId }
  }

  attach(events: { lost(): void }): void {
    this.events = events
  }

  send({ type }: HostRequest): boolean {
    this.sent.push(type)
    return this.isOpen
  }

  die(): void {
    this.isOpen = false
    this.events?.lost()
  }
}

test('a start that comes while a host that died is replaced goes to the new one', async () => {
  const [first, second] = [new FakeHost('h1'), new FakeHost('h2')]
  const found = Promise.withResolvers<FakeHost>()
  const run = { ...state }
  const silent = { debug() {}, info() {}, warn() {}, error() {} }
  const options = {
    log: silent,
    world: realWorld,
    pool: {
      isStopped: false,
      records: { isAlive: () => false },
      warm() {},
      takeReady: () => first,
      take: () => found.promise,
    },
    surroundings: {
      env: () => ({}),
      homeDir: tmpdir(),
      shell: '/bin/sh',
      svcBinDir: null,
      versionOf: () => null,
      tooOld: () => null,
      wall: () => null,
    },
    find: () => run,
    mayLaunch: () => true,
    said() {},
    handle: (_: string, event: { type: string; hostId?: string }) => {
      if (event.type === 'host_taken') run.hostId = event.hostId as never
    },
    // The machine gives the run to another host, since nothing was launched.
    lost: () => {
      run.hostId = null
      hosts.prepare(run as unknown as RunState)
    },
  }
  const hosts = new RunHosts(options as unknown as RunHostsOptions)
  run.hostId = hosts.reserve(runId) as never
  hosts.prepare(run as unknown as RunState)
  await expect.poll(() => first.sent).toEqual(['assign'])
  first.die()
  await expect.poll(() => run.hostId).toBe(null)
  hosts.keepStart(runId, { type: 'start', token: 't', apiUrl: 'http://127.0.0.1', secrets: {} })
  hosts.start(runId)
  found.resolve(second)
  await expect.poll(() => second.sent).toEqual(['assign', 'start'])
})

test('a run of a harness that is too old ends with the sentence that says so, a gate of a workflow goes on', async () => {
  const handled: unknown[] = []
  const host = new FakeHost('h1')
  const begin = (spec: object) => {
    const run = { ...state, spec: { folder: null, harness: 'codex', mcpServers: {}, ...spec } }
    const hosts = new RunHosts({
      log: { debug() {}, info() {}, warn() {}, error() {} },
      world: realWorld,
      pool: { isStopped: false, records: { isAlive: () => false }, warm() {}, takeReady: () => host },
      surroundings: {
        env: () => ({}),
        homeDir: tmpdir(),
        shell: '/bin/sh',
        svcBinDir: null,
        versionOf: () => '0.20.0',
        tooOld: (harness: string) => (harness === 'codex' ? 'codex 0.20.0 is too old' : null),
        wall: () => null,
      },
      find: () => run,
      handle: (_: string, event: object) => handled.push(event),
    } as unknown as RunHostsOptions)
    hosts.reserve(runId)
    hosts.prepare(run as unknown as RunState)
  }
  begin({})
  const stop = { exitReason: 'harness_start_failed', message: 'codex 0.20.0 is too old' }
  await expect.poll(() => handled).toEqual([{ type: 'prepare_failed', stop }])
  expect(host.sent).toEqual(['discard'])
  for (const spec of [{ gate: { command: 'true' } }, { harness: 'claude' }]) {
    host.sent.length = 0
    begin(spec)
    await expect.poll(() => host.sent).toEqual(['assign'])
  }
})
