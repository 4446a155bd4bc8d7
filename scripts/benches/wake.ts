import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { spawn } from 'node-pty'
import type { RunDetail, RunTimings } from '../../shared/api/runs.ts'
import { delay, waitFor } from '../../test/kit/programs.ts'
import type { Bench, Context } from './context.ts'
import { atMost, compare, quantile, type Result } from './measure.ts'
import { processFigures, startDevice, startServer, type BenchDevice, type BenchServer } from './stack.ts'
import { size } from './sizes.ts'

/**
 * From the moment the wake's request is sent to the harness's first instruction, against node-pty spawning the same
 * program. The program is `/bin/sh`, which writes a line into a named pipe that this process reads; both sides pay for
 * the shell's start and the pipe alike.
 */
export const wake: Bench = {
  name: 'wake',
  about: 'request sent to first instruction of the harness, through a warm run host',
  async run(context) {
    const pipe = openPipe(join(context.scratch, 'wake-pipe'))
    const results: Result[] = []
    try {
      results.push(...(await measureOn(context, pipe, { name: 'SQLite', databaseUrl: null })))
      const cluster = await context.postgres()
      if (cluster) results.push(...(await measureOn(context, pipe, { name: 'PostgreSQL', databaseUrl: cluster.url })))
    } finally {
      pipe.close()
    }
    return results
  },
}

const wakesPerRound = size(6, 1)

async function measureOn(
  context: Context,
  pipe: Pipe,
  database: { name: string; databaseUrl: string | null },
): Promise<Result[]> {
  const server = await startServer(context, { name: `wake-${database.name}`, databaseUrl: database.databaseUrl })
  const device = await startDevice(context, { server, name: `wake-${database.name}-device` })
  try {
    const withFolder = await folderOf(server, device, makeRepository(join(context.scratch, `repo-${database.name}`)))
    const results: Result[] = []
    for (const [where, defaultFolderId] of [
      ['no folder', undefined],
      ['git folder', withFolder],
    ] as const) {
      const agent = await createAgent(server, pipe, { where, defaultFolderId })
      results.push(await measureAgent(context, { pipe, server, device, agent, name: `${database.name}, ${where}` }))
    }
    return results
  } finally {
    await device.end()
    await server.end()
  }
}

async function measureAgent(
  { rounds }: Context,
  {
    pipe,
    server,
    device,
    agent,
    name,
  }: { pipe: Pipe; server: BenchServer; device: BenchDevice; agent: string; name: string },
): Promise<Result> {
  // Once before, so that what is compiled at the first use is compiled.
  await wakeOnce(server, { device, pipe, agent })
  const cpu = { server: 0, daemon: 0, wakes: 0 }
  const told: RunTimings[] = []
  return compare({
    goal: 1,
    name: `wake to first instruction (${name})`,
    unit: 'ms',
    peerIs: 'bare node-pty',
    // The goal is for a run without a change-set; with one, git takes its time before the harness may start.
    ...(name.endsWith('git folder') ? {} : { target: atMost(2) }),
    rounds,
    note: () =>
      `processor time per run: server ${each(cpu.server)}, daemon ${each(cpu.daemon)}, host ${middle('hostCpuMs', told)} ms; ${spansOf(told)}`,
    async ours() {
      const samples: number[] = []
      const daemon = () => processFigures(device.program.pid).cpuMs ?? Number.NaN
      const before = { server: await server.cpuMs(), daemon: daemon() }
      for (let i = 0; i < wakesPerRound; i++) samples.push(await wakeOnce(server, { device, pipe, agent, told }))
      cpu.server += (await server.cpuMs()) - before.server
      cpu.daemon += daemon() - before.daemon
      cpu.wakes += wakesPerRound
      return samples
    },
    async peer() {
      const samples: number[] = []
      for (let i = 0; i < wakesPerRound; i++) samples.push(await spawnOnce(pipe))
      return samples
    },
  })

  function each(ms: number): string {
    return `${(ms / cpu.wakes).toFixed(1)} ms`
  }
}

export async function wakeOnce(
  server: BenchServer,
  { device, pipe, agent, told = [] }: { device: BenchDevice; pipe: Pipe; agent: string; told?: RunTimings[] },
): Promise<number> {
  await device.whenWarm()
  const written = pipe.next()
  const sentAt = performance.now()
  const reply = server.call<{ runPublicId: string }>('POST', `/agents/${agent}/runs`, { prompt: 'Go.' })
  const ms = (await written) - sentAt
  const { runPublicId } = await reply
  // Asked once, as a rule: each question costs the server a part of what the run does, and is not of the run.
  await delay(250)
  await waitFor(
    async () => {
      const { status, timings } = await server.call<RunDetail>('GET', `/runs/${runPublicId}`)
      if (status === 'succeeded') told.push(timings)
      return status === 'succeeded'
    },
    'the run ended',
    { everyMs: 100 },
  )
  return ms
}

/** The middle of each step of these runs, in the order of the steps. */
function spansOf(told: readonly RunTimings[]): string {
  const steps = [
    ['offered', 'offeredMs'],
    ['claimed', 'claimedMs'],
    ['wall', 'wallMs'],
    ['base', 'baseMs'],
    ['launched', 'launchedMs'],
    ['first output', 'firstOutputMs'],
    ['ended', 'endedMs'],
    ['reported', 'reportedMs'],
    ['stored', 'storedMs'],
  ] as const
  return `ms since asked: ${steps.map(([name, field]) => `${name} ${middle(field, told)}`).join(', ')}`
}

function middle(field: keyof RunTimings, told: readonly RunTimings[]): string {
  const known = told.flatMap(({ [field]: ms }) => ms ?? [])
  return known.length === 0 ? '-' : quantile(known, 0.5).toFixed(1)
}

async function spawnOnce(pipe: Pipe): Promise<number> {
  const written = pipe.next()
  const sentAt = performance.now()
  const [file, ...args] = pipe.command
  const pty = spawn(file, args, {
    name: 'xterm-256color',
    cols: 120,
    rows: 40,
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    encoding: null,
  })
  const ended = new Promise<void>((resolve) => pty.onExit(() => resolve()))
  const ms = (await written) - sentAt
  await ended
  return ms
}

export async function createAgent(
  server: BenchServer,
  pipe: Pipe,
  { where, defaultFolderId }: { where: string; defaultFolderId: string | undefined },
): Promise<string> {
  const folder = defaultFolderId === undefined ? {} : { defaultFolderId }
  const body = { name: `Waker ${where}`, harness: 'command', command: pipe.command, ...folder }
  return (await server.call<{ id: string }>('POST', '/agents', body)).id
}

async function folderOf(server: BenchServer, device: BenchDevice, rootPath: string): Promise<string> {
  const body = { displayName: 'repo', rootPath, deviceId: device.publicId }
  return (await server.call<{ shortId: string }>('POST', '/folders', body)).shortId
}

function makeRepository(path: string): string {
  mkdirSync(path)
  for (let i = 0; i < 200; i++) writeFileSync(join(path, `file-${i}.txt`), `line ${i}\n`)
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=b', '-c', 'user.email=b@localhost', ...args], { cwd: path, stdio: 'pipe' })
  git('init', '--quiet')
  git('add', '.')
  git('commit', '--quiet', '-m', 'Begin')
  return path
}

export interface Pipe {
  command: [string, ...string[]]
  /** `performance.now()` when the next byte came, or the last of so many. */
  next(count?: number): Promise<number>
  close(): void
}

export function openPipe(path: string): Pipe {
  execFileSync('mkfifo', [path])
  // Both ends, so that it never ends.
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const socket = new Socket({ fd, readable: true, writable: false })
  let arrived: (at: number) => void = () => {}
  let left = 0
  socket.on('data', (bytes: Buffer) => {
    left -= bytes.length
    if (left <= 0) arrived(performance.now())
  })
  return {
    command: ['/bin/sh', '-c', 'echo >"$0"', path],
    next(count = 1) {
      left = count
      return new Promise((resolve) => (arrived = resolve))
    },
    close() {
      socket.destroy()
      try {
        closeSync(fd)
      } catch {
        // Closed with its socket.
      }
    },
  }
}
