import { join } from 'node:path'
import { delay } from '../../test/kit/programs.ts'
import { isCutOff, lastRelease, programsOf } from '../../test/skew/old-programs.ts'
import type { Bench } from './context.ts'
import { atMost, compare, type Result } from './measure.ts'
import { fileCame, memoryOf, pidOfRunHost, startStandInStack, type StandInStack } from './stand-in.ts'
import { writeFileSync } from 'node:fs'

const settleMs = 2_000

/** Says what one more run takes of the device's memory, beside its harness: its run host. Both releases run at the same time, with the same run. */
export const harnessMemory: Bench = {
  name: 'harness-memory',
  about: 'memory of the run host of a run that waits, against the last release',
  async run(context) {
    if (process.platform !== 'linux' || isCutOff(lastRelease)) {
      context.say('NOT MEASURED: it needs Linux, and the history up to the last release')
      return []
    }
    const before = await startStandInStack(context, { name: 'memory-before', dist: await programsOf(lastRelease) })
    const now = await startStandInStack(context, { name: 'memory-now' })
    const results: Result[] = []
    try {
      for (const kind of ['claude', 'command'] as const) {
        const agents = new Map([
          [before, await agentOf(before, kind)],
          [now, await agentOf(now, kind)],
        ])
        const measured = (stack: StandInStack) => async () => [await waiting(stack, agents.get(stack)!, kind)]
        results.push(
          await compare({
            name: `run host of a ${kind} run that waits`,
            unit: 'MB',
            peerIs: 'the last release',
            target: atMost(1.5),
            rounds: context.rounds,
            ours: measured(now),
            peer: measured(before),
          }),
        )
      }
      return results
    } finally {
      await now.end()
      await before.end()
    }
  },
}

const commandFile = (stack: StandInStack) => join(stack.home, 'command')

async function agentOf(stack: StandInStack, kind: 'claude' | 'command'): Promise<string> {
  if (kind === 'claude') return stack.claudeAgent()
  const at = commandFile(stack)
  const script = 'echo here; : >"$0.ready"; while [ ! -e "$0.go" ]; do sleep 0.1; done; rm "$0.go" "$0.ready"'
  const body = { name: 'Shell', harness: 'command', command: ['/bin/sh', '-c', script, at] }
  return (await stack.server.call<{ id: string }>('POST', '/agents', body)).id
}

async function waiting(stack: StandInStack, agent: string, kind: 'claude' | 'command'): Promise<number> {
  const { runPublicId, at } =
    kind === 'claude'
      ? await stack.order(agent, { do: 'wait' })
      : { ...(await stack.begin({ agent, prompt: 'Go.' })), at: commandFile(stack) }
  await fileCame(`${at}.ready`)
  await delay(settleMs)
  const { pss } = memoryOf(pidOfRunHost(stack.device))
  writeFileSync(`${at}.go`, '')
  await stack.ended(runPublicId)
  return pss
}
