import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench } from './context.ts'
import { atMost, compare, quantile } from './measure.ts'
import { fileCame, startStandInStack } from './stand-in.ts'
import { size } from './sizes.ts'

const calls = size(200, 5)
const allowedMs = 5

/**
 * From the question about a tool call to the answer, as the harness sees it, through the real daemon and its run host. Every call is
 * allowed by a rule: of the shell, and in turn of files in a folder, for which links are looked up.
 */
export const callCheck: Bench = {
  name: 'call-check',
  about: 'time that the check of a tool call adds to one which a rule allows',
  async run(context) {
    const stack = await startStandInStack(context, { name: 'call-check' })
    try {
      mkdirSync(join(stack.home, 'notes'))
      for (let at = 0; at < calls; at++) writeFileSync(join(stack.home, 'notes', `${at}.txt`), 'note\n')
      const agent = await stack.claudeAgent(['Bash(echo hello:*)', 'Read(notes/**)'])
      const rounds: number[][] = []
      for (let round = 0; round < context.rounds; round++) {
        const { runPublicId, at } = await stack.order(agent, { do: 'calls', count: calls })
        await fileCame(`${at}.times`)
        await stack.ended(runPublicId)
        rounds.push(JSON.parse(readFileSync(`${at}.times`, 'utf8')) as number[])
      }
      const common = { unit: 'ms', peerIs: 'allowed', target: atMost(1), rounds: context.rounds }
      const peer = () => Promise.resolve([allowedMs])
      const at = (round: number) => rounds[round] ?? []
      return [
        await compare({
          ...common,
          name: 'a tool call allowed by rule, median',
          ours: (round) => Promise.resolve(at(round)),
          peer,
        }),
        await compare({
          ...common,
          name: 'a tool call allowed by rule, 95th percentile',
          ours: (round) => Promise.resolve([quantile(at(round), 0.95)]),
          peer,
        }),
      ]
    } finally {
      await stack.end()
    }
  },
}
