import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { hostNodeFlags } from '../../device-manager/run-host/wire/node-flags.ts'
import { startTimeOf } from '../../device-manager/process/identity.ts'
import { HostConnection } from '../../device-manager/run/hosts/host-connection.ts'
import { hostRecord, type HostReply } from '../../device-manager/run-host/wire/protocol.ts'
import { hostPaths } from '../../device-manager/run-host/wire/record.ts'
import { placesIn } from '../../device-manager/setup/places.ts'
import { openSpool } from '../../device-manager/spool/spool.ts'
import { idFrom } from '../../shared/lib/ids.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { waitFor } from '../../test/kit/programs.ts'
import type { Bench, Context } from './context.ts'
import { atMost, compare } from './measure.ts'
import { processorMs } from './stack.ts'
import { size } from './sizes.ts'

const eachRound = size(5, 1)

/**
 * A run host that does not stand by is started for a run that waits. Processor time of its process, since wall time says little while
 * several start at once: until it has said hello, and until it has launched the run's program. Its code comes from the cache that a host
 * before it left, as on a device.
 */
export const hostStart: Bench = {
  name: 'host-start',
  about: 'processor time of a run host that is started for a run, against a bare node that starts',
  async run(context) {
    const places = placesIn(join(context.scratch, 'host-start'))
    mkdirSync(places.hosts, { recursive: true, mode: 0o700 })
    openSpool(places.spool).close()
    const side = (until: Until) => async () => {
      const samples: number[] = []
      for (let i = 0; i < eachRound; i++) samples.push(await startOne(context, { ...places, until }))
      return samples
    }
    const bare = async () => {
      const samples: number[] = []
      for (let i = 0; i < eachRound; i++) samples.push(await bareNode())
      return samples
    }
    const common = { unit: 'ms', peerIs: 'bare node', rounds: context.rounds, peer: bare }
    // A cache is written at the end of the first host that loads something.
    for (const until of ['hello', 'started', 'started'] as const) await startOne(context, { ...places, until })
    return [
      await compare({ ...common, name: 'a host until its hello', target: atMost(2), ours: side('hello') }),
      await compare({ ...common, name: 'a host until it has launched', target: atMost(2), ours: side('started') }),
    ]
  },
}

type Until = 'hello' | 'started'

async function startOne(
  { dist }: Context,
  { stateDir, compileCache, until }: ReturnType<typeof placesIn> & { until: Until },
): Promise<number> {
  const hostId = realWorld.id('h')
  const main = join(dist, 'device-manager/run-host/main.js')
  const child = spawn(
    process.execPath,
    [...hostNodeFlags, main, '--state-dir', stateDir, '--host-id', hostId, '--purpose', 'run'],
    {
      stdio: ['pipe', 'ignore', 'inherit'],
      env: { PATH: process.env['PATH'], HOME: stateDir, NODE_COMPILE_CACHE: compileCache },
      cwd: stateDir,
    },
  )
  const left = once(child, 'exit')
  const { record } = hostPaths(stateDir, hostId)
  const own = { pid: process.pid, startTime: startTimeOf(process.pid) ?? '' }
  const host = await waitFor(async () => openHost(record, own), `the host ${hostId} listens`, { everyMs: 5 })
  try {
    if (until === 'hello') {
      const used = processorMs(child.pid!)
      host.send({ type: 'discard' })
      return used
    }
    const replies = listen(host)
    host.send(assignmentIn(stateDir))
    await replies('prepared')
    host.send({ type: 'start', token: 'none', apiUrl: 'http://127.0.0.1:1', secrets: {} })
    await replies('started')
    return processorMs(child.pid!)
  } finally {
    await left
    rmSync(join(stateDir, 'runs'), { recursive: true, force: true })
  }
}

async function openHost(path: string, own: { pid: number; startTime: string }): Promise<HostConnection | null> {
  try {
    return await HostConnection.open(hostRecord.parse(JSON.parse(readFileSync(path, 'utf8'))), own, 5_000)
  } catch {
    return null
  }
}

function listen(host: HostConnection) {
  const came = new Map<string, () => void>()
  const said = new Set<string>()
  host.attach({
    reply({ type }: HostReply) {
      said.add(type)
      came.get(type)?.()
    },
    lost() {},
  })
  return async (type: HostReply['type']) => {
    if (!said.has(type)) await new Promise<void>((resolve) => came.set(type, resolve))
  }
}

function assignmentIn(stateDir: string): Parameters<HostConnection['send']>[0] {
  const long = 600_000
  return {
    type: 'assign',
    fence: 1,
    env: { PATH: '/usr/bin:/bin', HOME: stateDir },
    homeDir: stateDir,
    loginShell: '/bin/sh',
    svcBinDir: null,
    harnessVersion: null,
    wall: null,
    spec: {
      runId: idFrom(realWorld.id('run_')),
      workspaceId: idFrom('ws_1'),
      agent: { id: idFrom('agt_1'), handle: 'bench', name: 'Bench' },
      harness: 'command',
      folder: null,
      prompt: '',
      agentMd: '',
      model: null,
      backupModel: null,
      reasoningEffort: null,
      maxTurns: null,
      command: 'echo',
      permissions: { allow: [], ask: [], deny: [], defaultMode: 'full' },
      allowCalls: [],
      mcpServers: {},
      resumeSessionId: null,
      limits: { runMs: long, noProgressMs: long, firstEventMs: long, toolCalls: 1000, silentMs: long },
    },
  }
}

async function bareNode(): Promise<number> {
  const said = "require('node:fs').writeSync(1, 'up'); setInterval(() => {}, 1e9)"
  const child = spawn(process.execPath, ['-e', said], { stdio: ['ignore', 'pipe', 'inherit'] })
  const left = once(child, 'exit')
  await once(child.stdout, 'data')
  const used = processorMs(child.pid!)
  child.kill('SIGKILL')
  await left
  return used
}
