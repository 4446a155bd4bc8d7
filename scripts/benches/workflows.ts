import type { Bench, Context } from './context.ts'
import { atMost, compare, quantile, type Result } from './measure.ts'
import { advanceMs, bareReplayMs, makeJournal, startBareEngine } from './workflow-journal.ts'
import {
  databases,
  doOffered,
  flowEnded,
  programOf,
  startFlow,
  startWorkflowStack,
  storeProgram,
  type On,
  type WorkflowStack,
} from './workflow-stack.ts'
import { size } from './sizes.ts'

/** What a workflow costs above what it is made of: a step above the replay of its journal, a start above that of a run. */
export const workflows: Bench = {
  name: 'workflows',
  about: 'steps and starts of workflows, against a bare replay and a bare run',
  async run(context) {
    const results: Result[] = []
    for (const on of await databases(context)) {
      const stack = await startWorkflowStack(context, on)
      try {
        results.push(...(await steps(context, { on, stack })), await starts(context, { on, stack }))
      } finally {
        await stack.end()
      }
    }
    return results
  },
}

const journals = [
  { length: 10, samples: size(20, 1), target: 3 },
  { length: size(1_000, 50), samples: size(6, 1), target: 1.5 },
] as const

async function steps(context: Context, { on, stack }: { on: On; stack: WorkflowStack }): Promise<Result[]> {
  const engine = await startBareEngine(context)
  const results: Result[] = []
  await stack.root.raw('create table bench_commits (at bigint)')
  try {
    for (const { length, samples, target } of journals) {
      const journal = await makeJournal(engine, stack, length)
      const commits: number[] = []
      const ours = () => repeated(samples, () => advanceMs(stack, journal))
      const peer = async () => {
        commits.push(...(await repeated(samples, () => commitMs(stack))))
        return repeated(samples, () => bareReplayMs(engine, journal))
      }
      await ours()
      await peer()
      results.push(
        await compare({
          name: `step to next offer, ${length.toLocaleString('en')} steps (${on.name})`,
          unit: 'ms',
          peerIs: 'bare replay',
          target: atMost(target),
          rounds: context.rounds,
          // The end of the run and the step after it are two, each before anybody hears of it.
          note: () => `a bare commit ${quantile(commits, 0.5).toFixed(2)} ms`,
          ours,
          peer,
        }),
      )
    }
    return results
  } finally {
    await engine.end()
  }
}

async function commitMs({ root }: WorkflowStack): Promise<number> {
  const start = performance.now()
  await root('bench_commits').insert({ at: 1 })
  return performance.now() - start
}

const startsPerRound = size(30, 3)

async function starts({ rounds }: Context, { on, stack }: { on: On; stack: WorkflowStack }): Promise<Result> {
  const { server, device, agentId } = stack
  await storeProgram(server, programOf('one_step', `return await agent('Go.', { agent: '${agentId}' })`))
  const untilOffer = async (start: () => Promise<unknown>) => {
    const startedAt = performance.now()
    const reply = start()
    await device.peek('run.offer')
    const ms = performance.now() - startedAt
    await doOffered(device)
    return { ms, reply: await reply }
  }
  const ours = () =>
    repeated(startsPerRound, async () => {
      const { ms, reply } = await untilOffer(() => startFlow(server, 'one_step'))
      await flowEnded(stack, reply as string)
      return ms
    })
  const start = () => server.call('POST', `/agents/${agentId}/runs`, { prompt: 'Go.' })
  const peer = () => repeated(startsPerRound, async () => (await untilOffer(start)).ms)
  await ours()
  await peer()
  return compare({
    name: `start of a workflow to its first offer (${on.name})`,
    unit: 'ms',
    peerIs: 'run to offer',
    target: atMost(4),
    rounds,
    ours,
    peer,
  })
}

async function repeated(count: number, measured: () => Promise<number>): Promise<number[]> {
  const samples: number[] = []
  for (let at = 0; at < count; at++) samples.push(await measured())
  return samples
}
