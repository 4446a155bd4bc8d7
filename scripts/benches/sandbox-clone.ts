import { idFrom } from '../../shared/lib/ids.ts'
import { brokerPort } from '../../shared/device/sandbox.ts'
import { sandboxPlaces } from '../../shared/runs/sandbox-places.ts'
import { repoPath } from '../../shared/runs/repo.ts'
import { commitNoise, startGitServer } from '../../test/kit/git-server.ts'
import type { TestEngine } from '../../test/kit/sandbox-engine.ts'
import type { Bench, Context } from './context.ts'
import { compare, type Result } from './measure.ts'
import { createCloudAgent, engineFor, image, openCloud, type CloudStage } from './sandbox-stage.ts'
import { processFigures } from './stack.ts'

/** The same clone of the same image with the same limits; one has no network but its broker. With `--large` also of 1 GB. */
export const sandboxClone: Bench = {
  name: 'sandbox-clone',
  about: 'clones of 50 MB through the broker of a sandbox, against the same without it, and memory of the server',
  async run(context) {
    const engine = await engineFor(context)
    if (engine === null) return []
    try {
      return await measureClones(context, engine)
    } finally {
      await engine.stop()
    }
  },
}

const mebi = 2 ** 20

async function measureClones(context: Context, engine: TestEngine): Promise<Result[]> {
  const host = await startGitServer()
  const stage = await openCloud(context, {
    engine,
    name: 'sandbox-clone',
    env: { SVC_ALLOW_HOSTS: '127.0.0.1' },
  })
  try {
    const sizes = [{ label: '50 MB', files: 200, bytes: mebi / 4, rounds: context.rounds }]
    if (context.large) sizes.push({ label: '1 GB', files: 64, bytes: 16 * mebi, rounds: 1 })
    const results: Result[] = []
    for (const [at, { label, files, bytes, rounds }] of sizes.entries()) {
      await commitNoise(host.repo(`team/repo-${at}`), { files, bytes })
      results.push(await measureClone({ stage, url: `${host.url}/team/repo-${at}`, label, rounds }))
    }
    return results
  } finally {
    await stage.end()
    await host.close()
  }
}

async function measureClone({
  stage,
  url,
  label,
  rounds,
}: {
  stage: CloudStage
  url: string
  label: string
  rounds: number
}): Promise<Result> {
  const { engine, server } = stage
  const { id: defaultRepoId } = await server.call<{ id: string }>('POST', '/repos', { gitRemote: url })
  const broker = `http://127.0.0.1:${brokerPort}${repoPath(idFrom(defaultRepoId))}`
  const command = `cd .. && ${timedClone(broker)}; rm -rf clone`
  const agentId = await createCloudAgent(stage, { name: `Cloner of ${label}`, command, defaultRepoId })
  const memory = peakOf(server.program.pid)
  try {
    return await compare({
      name: `clone of ${label} through the broker`,
      unit: 'ms',
      peerIs: 'git clone without it',
      rounds,
      note: () => `memory of the server at most ${memory.peak()} MiB, before ${memory.before} MiB`,
      async ours() {
        await stage.quiet(0)
        return [tookIn((await stage.wake(agentId, 'took-')).text)]
      },
      async peer() {
        await stage.quiet(0)
        const volume = ['--volume', sandboxPlaces.work]
        const limits = ['--network', 'host', '--cpus', '1', '--memory', '2g', '--memory-swap', '2g', ...volume]
        const clone = ['--entrypoint', 'bash', image, '-c', timedClone(url)]
        return [tookIn(await engine.docker('run', '--rm', ...limits, ...clone))]
      },
    })
  } finally {
    memory.end()
  }
}

const timedClone = (url: string): string =>
  `from=$(date +%s%N); git clone --quiet ${url} clone && echo took-$((($(date +%s%N) - from) / 1000000))-ms`

const tookIn = (text: string): number => Number(/took-(\d+)-ms/.exec(text)?.[1] ?? Number.NaN)

/** The resident memory of a process, looked at four times a second. */
function peakOf(pid: number): { before: number; peak(): number; end(): void } {
  const now = () => Math.round(processFigures(pid).rssBytes / mebi)
  const before = now()
  let most = before
  const timer = setInterval(() => (most = Math.max(most, now())), 250)
  return { before, peak: () => most, end: () => clearInterval(timer) }
}
