import { delay } from '../../test/kit/programs.ts'
import type { Context } from './context.ts'
import { atMost, compare, quantile, type Result } from './measure.ts'
import { lagResolutionMs, serverProbe } from './server-probe.ts'
import { programOf, startSide, storeProgram, type On } from './workflow-stack.ts'
import { size } from './sizes.ts'

// How late the event loop of a server is while it takes programs as large as they may be, which workers check.

const sourceChars = 200_000
const checksAtOnce = 4
const checksPerRound = size(24, 4)

export async function lagOfChecks(context: Context, on: On): Promise<Result> {
  const probe = serverProbe(context, `checks-${on.name}`)
  const side = await startSide(context, { on, name: 'checks', nodeFlags: probe.nodeFlags })
  try {
    let made = 0
    const busy = async () => {
      const next = async () => {
        for (let left = checksPerRound / checksAtOnce; left > 0; left--)
          await storeProgram(side.server, largeProgram(`large_${made++}`))
      }
      await probe.lagP99()
      const startedAt = performance.now()
      await Promise.all(Array.from({ length: checksAtOnce }, next))
      const lastedMs = performance.now() - startedAt
      return { p99: await probe.lagP99(), lastedMs }
    }
    let { lastedMs } = await busy()
    const seen = { busy: [] as number[], idle: [] as number[] }
    return await compare({
      name: `event loop's lag p99 while programs are checked (${on.name})`,
      unit: 'ms',
      peerIs: 'idle',
      target: atMost(3),
      rounds: context.rounds,
      note: () =>
        `without the ${lagResolutionMs} ms of its timer: ${beyond(seen.busy)} ms, idle ${beyond(seen.idle)} ms`,
      async ours() {
        const { p99, lastedMs: took } = await busy()
        lastedMs = took
        seen.busy.push(p99)
        return [p99]
      },
      async peer() {
        await probe.lagP99()
        await delay(lastedMs)
        const p99 = await probe.lagP99()
        seen.idle.push(p99)
        return [p99]
      },
    })
  } finally {
    await side.end()
  }
}

const beyond = (values: readonly number[]) => (quantile(values, 0.5) - lagResolutionMs).toFixed(1)

/** As many characters as a program may have, of steps as people write them. */
function largeProgram(name: string): string {
  const head = programOf(name, "const { problem } = { problem: 'none' }")
  let lines = ''
  for (let at = 0; ; at++) {
    const line = `const part${at} = await agent(\`Do part ${at} of this: \${problem}\`, { label: 'part ${at}', phase: 'Work' })\n`
    if (head.length + lines.length + line.length > sourceChars) return (head + lines).padEnd(sourceChars)
    lines += line
  }
}
