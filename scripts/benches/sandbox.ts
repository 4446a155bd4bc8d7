import { once } from 'node:events'
import { waitFor } from '../../test/kit/programs.ts'
import type { TestEngine } from '../../test/kit/sandbox-engine.ts'
import type { Bench, Context } from './context.ts'
import { atMost, compare, type Result } from './measure.ts'
import { createCloudAgent, engineFor, image, openCloud } from './sandbox-stage.ts'
import { processFigures } from './stack.ts'
import { size } from './sizes.ts'

/** Cloud runs, each time against the engine alone: a sandbox is a container of the same image, and what it takes beside that is ours. */
export const sandbox: Bench = {
  name: 'sandbox',
  about: 'cloud runs: wake to first byte against a bare docker run, and memory of the runner',
  async run(context) {
    const engine = await engineFor(context)
    if (engine === null) return []
    try {
      return [
        await measureWake(context, { engine, name: 'cold', warm: 0, goal: 1.5 }),
        await measureWake(context, { engine, name: 'warm', warm: 1, goal: 0.3 }),
        await measureMemory(context, engine),
      ]
    } finally {
      await engine.stop()
    }
  },
}

const wakesPerRound = size(3, 1)

async function measureWake(
  context: Context,
  { engine, name, warm, goal }: { engine: TestEngine; name: string; warm: number; goal: number },
): Promise<Result> {
  const env: Record<string, string> = warm === 0 ? {} : { SVC_SANDBOX_WARM: String(warm) }
  const stage = await openCloud(context, { engine, name: `sandbox-${name}`, env })
  try {
    const agentId = await createCloudAgent(stage, { name: 'Cloudy', command: 'echo here' })
    const once = async () => {
      await stage.quiet(warm)
      const given = await stage.containers()
      const { ms } = await stage.wake(agentId, 'here')
      // It would be taken for the one that is made in its place.
      const isGone = async () => !(await stage.containers()).some((id) => given.includes(id))
      await waitFor(isGone, 'the end of a container that a run was given', { ms: 60_000 })
      return ms
    }
    // What is read from the disk for the first time is read.
    await once()
    return await compare({
      name: `wake to first byte (${name})`,
      unit: 'ms',
      peerIs: 'bare docker run',
      target: atMost(goal),
      rounds: context.rounds,
      ours: () => times(wakesPerRound, once),
      async peer() {
        await stage.quiet(warm)
        return times(wakesPerRound, () => runBare(engine))
      },
    })
  } finally {
    await stage.quiet(warm)
    await stage.end()
  }
}

async function times(count: number, measure: () => Promise<number>): Promise<number[]> {
  const samples: number[] = []
  for (let done = 0; done < count; done++) samples.push(await measure())
  return samples
}

/** Until the first byte of what it says. */
async function runBare(engine: TestEngine): Promise<number> {
  const sentAt = performance.now()
  const child = engine.spawn('run', '--rm', '--network', 'none', '--entrypoint', 'echo', image, 'here')
  const over = once(child, 'close')
  await once(child.stdout, 'data')
  const ms = performance.now() - sentAt
  await over
  return ms
}

/** All processes of a sandbox but its harness, which is a `sleep`. */
async function measureMemory(context: Context, engine: TestEngine): Promise<Result> {
  const stage = await openCloud(context, { engine, name: 'sandbox-memory', env: {} })
  try {
    const agentId = await createCloudAgent(stage, { name: 'Sleeper', command: 'echo here; exec sleep 600' })
    return await compare({
      name: 'memory of the runner in a sandbox',
      unit: 'MiB',
      peerIs: 'bare node',
      rounds: Math.min(context.rounds, 3),
      async ours() {
        const { runId } = await stage.wake(agentId, 'here')
        await stage.quiet(1)
        const rss = await memoryIn(engine, await engine.docker('ps', '--quiet', '--filter', 'label=svc.server'))
        await stage.server.call('POST', `/runs/${runId}/cancel`, {})
        await stage.quiet(0)
        return [rss]
      },
      async peer() {
        const idle = ['--entrypoint', 'node', image, '-e', 'setInterval(() => {}, 1e6)']
        const id = await engine.docker('run', '--rm', '--detach', '--init', '--network', 'none', ...idle)
        await stage.quiet(1)
        const rss = await memoryIn(engine, id)
        await engine.docker('kill', id)
        await stage.quiet(0)
        return [rss]
      },
    })
  } finally {
    await stage.end()
  }
}

async function memoryIn(engine: TestEngine, id: string): Promise<number> {
  const [, ...lines] = (await engine.docker('top', id, '-eo', 'pid,comm')).split('\n')
  const own = lines.map((line) => line.trim().split(/\s+/)).filter(([, name]) => name !== 'sleep')
  return own.reduce((sum, [pid]) => sum + processFigures(Number(pid)).rssBytes, 0) / 2 ** 20
}
