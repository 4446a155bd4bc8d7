import { describe, expect, it } from 'vitest'
import {
  caseNames,
  denial,
  harnessCases,
  notAsOthers,
  realHarnesses,
  recordedAs,
  type CaseName,
  type HarnessCase,
  type RealHarness,
} from '../../test/kit/harness-cases.ts'
import { merged, recording, specOf } from '../../test/kit/harness-recordings.ts'
import type { HarnessOutcome, ProcessExit } from './adapter.ts'
import { adapterOfRun } from './registry.ts'

// The same cases for all harnesses, as cases-real.test.ts recorded them from the real programs.

const drivenBy = {
  claude: { harness: 'claude' },
  codex: { harness: 'codex' },
  opencode: { harness: 'opencode' },
  qwen: { harness: 'command', protocol: 'acp', command: 'qwen' },
} as const

const exits: Partial<Record<CaseName, ProcessExit>> = {
  killed: { exitCode: null, signal: 'SIGKILL', stoppedFor: null },
}
const left: ProcessExit = { exitCode: 0, signal: null, stoppedFor: null }
/** What a program wrote before it was killed is about something else. */
const log = '\u{1b}[31mERROR\u{1b}[0m something was wrong a while ago\n'

function play(harness: RealHarness, name: CaseName) {
  const { folder, prefix } = recordedAs[harness]
  const spec = specOf(drivenBy[harness])
  const dialogue = adapterOfRun(spec).dialogue(spec, { cwd: '/home/dev/work' })
  const lines = recording(folder, prefix + name.replaceAll('_', '-'))
    .toString()
    .split(/(?<=\n)/)
  const outputs = lines.flatMap((line) => {
    const output = dialogue.push(Buffer.from(line))
    const answers = (output.asks ?? []).map(({ askId, input }) =>
      JSON.stringify(input).includes('forbidden')
        ? dialogue.answer(askId, { behavior: 'deny', message: denial })
        : dialogue.answer(askId, { behavior: 'allow', rule: null }),
    )
    return [output, ...answers]
  })
  const stderr = dialogue.pushStderr(Buffer.from(log))
  const exit = exits[name] ?? left
  const output = merged([dialogue.open(), ...outputs, stderr, dialogue.end(exit)])
  return { ...output, outcome: dialogue.outcome(exit) satisfies HarnessOutcome }
}

describe.each(realHarnesses)('%s', (harness) => {
  it.each(caseNames.filter((name) => notAsOthers[harness]?.[name] === undefined))('%s', (name) => {
    const { exitReason, message, failure, losesSession }: HarnessCase = harnessCases[name]
    const { outcome, write } = play(harness, name)
    expect(outcome).toMatchObject({ exitReason, message: message && expect.stringMatching(message) })
    expect(outcome.failure).toBe(failure)
    expect(outcome.sessionId === null).toBe(losesSession === true)
    if (name === 'denied') expect(write).toContain(denial)
  })
})
