import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Bench } from './context.ts'
import { connectDevice, endRun, takeRun } from './device-socket.ts'
import { atMost, compare, type Result } from './measure.ts'
import { startServer } from './stack.ts'

const run = promisify(execFile)

/** From the start of the process to its exit, the request to a server on loopback included. */
export const cliStart: Bench = {
  name: 'cli',
  about: "start of `svc`, against `node -e ''`",
  async run(context) {
    const server = await startServer(context, { name: 'cli' })
    const home = join(context.scratch, 'cli-home')
    mkdirSync(home)
    const device = await connectDevice(server, 'cli')
    const agent = await server.call<{ id: string }>('POST', '/agents', {
      name: 'Caller',
      harness: 'command',
      command: 'true',
    })
    const { runId, token } = await takeRun(server, { device, agentId: agent.id })
    const env = {
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      SVC_CONFIG_DIR: home,
      SVC_API_URL: server.url,
      SVC_TOKEN: token,
      SVC_RUN_ID: runId,
    }
    const main = join(context.dist, 'cli/main.js')
    const node =
      (...args: string[]) =>
      () =>
        timed(args, env)
    const results: Result[] = []
    try {
      const made = await run(process.execPath, [main, 'task', 'create', '--title', 'Be read'], { env })
      const { key } = JSON.parse(made.stdout) as { key: string }
      for (const [name, args, limit] of [
        ['svc --version', ['--version'], 1.5],
        ['svc run output (in a run)', ['run', 'output', '--data', '{"ok":true}'], 1.5],
        ['svc task get (in a run)', ['task', 'get', key], 1.5],
        ['svc comment add (in a run)', ['comment', 'add', key, '--body', 'Read.'], 1.5],
        ['svc run list (in a run)', ['run', 'list'], 1.8],
        ['svc --help', ['--help'], 2.8],
        ['svc run create --help', ['run', 'create', '--help'], 2.8],
      ] as const) {
        await node(main, ...args)()
        results.push(
          await compare({
            goal: 17,
            name,
            unit: 'ms',
            peerIs: "node -e ''",
            target: atMost(limit),
            rounds: context.rounds,
            ours: node(main, ...args),
            peer: node('-e', ''),
          }),
        )
      }
      // A question ends its run, so each is asked in a run of its own.
      const asker = await server.call<{ id: string }>('POST', '/agents', {
        name: 'Asker',
        harness: 'command',
        command: 'true',
      })
      const ask = async () => {
        const samples: number[] = []
        for (let i = 0; i < samplesEach; i++) {
          const asking = await takeRun(server, { device, agentId: asker.id })
          const own = { ...env, SVC_TOKEN: asking.token, SVC_RUN_ID: asking.runId }
          samples.push(...(await timed([main, 'question', 'ask', 'Which one?'], own, 1)))
          await endRun(device, asking, 0)
        }
        return samples
      }
      await ask()
      results.push(
        await compare({
          goal: 17,
          name: 'svc question ask (in a run)',
          unit: 'ms',
          peerIs: "node -e ''",
          target: atMost(1.5),
          rounds: context.rounds,
          ours: ask,
          peer: node('-e', ''),
        }),
      )
      return results
    } finally {
      await device.close()
      await server.end()
    }
  },
}

const samplesEach = 5

async function timed(args: readonly string[], env: Record<string, string>, times = samplesEach): Promise<number[]> {
  const samples: number[] = []
  for (let i = 0; i < times; i++) {
    const start = performance.now()
    await run(process.execPath, [...args], { env })
    samples.push(performance.now() - start)
  }
  return samples
}
