import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ToolAsk } from '../../../device-manager/harness/adapter.ts'
import { isLong } from '../../kit/forms.ts'
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
} from '../../kit/harness-cases.ts'
import { acpMachine, driveAcp, qwenCommand } from '../../kit/real-acp.ts'
import { claudeMachine, driveClaude } from '../../kit/real-claude.ts'
import { codexMachine, driveCodex } from '../../kit/real-codex.ts'
import {
  fetchHarness,
  fileOf,
  type DrivenRun,
  type DriveOptions,
  type Fetched,
  type HarnessMachine,
} from '../../kit/real-harness.ts'
import { driveOpencode, opencodeMachine } from '../../kit/real-opencode.ts'
import { startStubLlm, type StubLlm } from '../../kit/stub-llm.ts'

// Plays the cases that every harness has with the real programs, so that all of them end the same. `RECORD_CASES=1` keeps what each
// program writes as a recording, which conformance.test.ts reads.

interface Started {
  machine: HarnessMachine
  run: DrivenRun
}
type Start = (url: string, binDir: string, options: Pick<DriveOptions, 'decide' | 'onOutput'>) => Started
const starts: Readonly<Record<RealHarness, Start>> = {
  claude(baseUrl, binDir, options) {
    const machine = claudeMachine({ binDir, baseUrl, apiKey: 'dummy' })
    return { machine, run: driveClaude({ machine, version: '2.1.329', ...options }) }
  },
  codex(baseUrl, binDir, options) {
    const machine = codexMachine({ binDir, baseUrl })
    return { machine, run: driveCodex({ machine, version: '0.169.0', ...options }) }
  },
  opencode(baseUrl, binDir, options) {
    const machine = opencodeMachine({ binDir, baseUrl })
    return { machine, run: driveOpencode({ machine, ...options }) }
  },
  qwen(baseUrl, binDir, options) {
    const machine = acpMachine(binDir)
    const spec = { harness: 'command', protocol: 'acp', command: qwenCommand(baseUrl) } as const
    return { machine, run: driveAcp({ machine, ...options, spec }) }
  },
}

/** What waits for a minute or several, almost without a processor: played at the same time, in the long form. */
const slow: Partial<Record<RealHarness, readonly CaseName[]>> = {
  codex: ['refused'],
  opencode: ['dropped', 'refused'],
  qwen: ['dropped', 'refused', 'overloaded', 'unavailable', 'rate_limit'],
}
/** What is quick; recordings stand for the others. Each of these takes a second, of opencode and Qwen Code three. */
const quick: Readonly<Record<RealHarness, readonly CaseName[]>> = {
  claude: ['cut_off', 'unknown_tool'],
  codex: caseNames.filter((name) => slow.codex?.includes(name) !== true),
  opencode: ['cut_off'],
  qwen: ['denied'],
}

let stub: StubLlm
const found = new Map<RealHarness, Fetched>()
beforeAll(async () => {
  stub = await startStubLlm()
  for (const harness of realHarnesses) {
    const fetched = fetchHarness(harness)
    found.set(harness, fetched)
    if ('missing' in fetched) process.stderr.write(`\n*** NOT TESTED: ${harness} is not here. ${fetched.missing}\n\n`)
  }
})
afterAll(async () => {
  await stub?.stop()
})

const isPlayed = (harness: RealHarness, name: CaseName) => notAsOthers[harness]?.[name] === undefined

describe.each(realHarnesses)('with the real %s', (harness) => {
  const played = caseNames.filter((name) => isPlayed(harness, name) && slow[harness]?.includes(name) !== true)

  it.for<CaseName>(isLong ? played : quick[harness])('%s ends as with the others', (name, context) => {
    const fetched = found.get(harness)!
    return 'missing' in fetched ? context.skip(fetched.missing) : play(harness, name, fetched.binDir)
  })
})

if (isLong) {
  describe.concurrent('what is tried again for long', () => {
    const each = realHarnesses.flatMap((harness) => (slow[harness] ?? []).map((name) => [harness, name] as const))
    const tried = each.filter(([harness, name]) => isPlayed(harness, name))
    it.for(tried)('with the real %s, %s ends as with the others', { timeout: 600_000 }, ([harness, name], context) => {
      const fetched = found.get(harness)!
      return 'missing' in fetched ? context.skip(fetched.missing) : play(harness, name, fetched.binDir)
    })
  })
}

async function play(harness: RealHarness, name: CaseName, binDir: string): Promise<void> {
  const { script, exitReason, message, failure, losesSession }: HarnessCase = harnessCases[name]
  const scenario = `${harness}-${name}`
  if (script !== null) await stub.script({ [scenario]: script })
  // Nothing listens on the port of the discard service.
  const url = script === null ? 'http://127.0.0.1:9' : `${stub.url}/s/${scenario}`
  const written: Uint8Array[] = []
  const decide = ({ input }: ToolAsk) =>
    JSON.stringify(input).includes('forbidden')
      ? ({ behavior: 'deny', message: denial } as const)
      : ({ behavior: 'allow', rule: null } as const)
  const onOutput = (chunk: Uint8Array) => void written.push(Uint8Array.from(chunk))
  const { machine, run } = starts[harness](url, binDir, { decide, onOutput })
  try {
    if (name === 'killed') {
      await fileOf(run, join(machine.cwd, 'begun'))
      await run.event(({ kind }) => kind === 'tool_result')
      run.signal('SIGKILL')
    }
    const { outcome } = await run.done
    expect(outcome).toMatchObject({ exitReason, message: message && expect.stringMatching(message) })
    expect(outcome.failure).toBe(failure)
    expect(outcome.sessionId === null).toBe(losesSession === true)
    if (name === 'denied') {
      expect(existsSync(join(machine.cwd, 'forbidden.txt'))).toBe(false)
      expect(JSON.stringify((await requestsOf(scenario)).at(-1)?.body)).toContain(denial)
      expect(resultsOf(run)).toMatchObject([{ text: 'Then not.', isError: false }])
    }
    if (name === 'unknown_tool') {
      const calls = run.events.flatMap((event) => (event.kind === 'tool_call' ? [event.data] : []))
      // Of a call that it does not know, ACP tells no name.
      expect(calls).toMatchObject([{ name: harness === 'qwen' ? 'acp__other' : 'no_such_tool' }])
      const results = run.events.flatMap((event) => (event.kind === 'tool_result' ? [event.data] : []))
      expect(results).toMatchObject([{ toolCallId: calls[0]?.toolCallId, isError: true }])
    }
    if (process.env['RECORD_CASES'] === '1') record({ harness, name, machine, url }, Buffer.concat(written))
  } finally {
    await machine.remove()
  }
}

const requestsOf = async (scenario: string) =>
  (await stub.requests()).filter((request) => request.scenario === scenario && request.body['tools'] !== undefined)
const resultsOf = (run: DrivenRun) => run.events.flatMap((event) => (event.kind === 'result' ? [event.data] : []))

function record(
  { harness, name, machine, url }: { harness: RealHarness; name: CaseName; machine: HarnessMachine; url: string },
  bytes: Buffer,
): void {
  const { folder, prefix } = recordedAs[harness]
  const text = bytes
    .toString()
    .replaceAll(join(machine.home, '..'), '/home/dev')
    .replaceAll(new URL(url).host, '127.0.0.1:1')
  const lines = text.split('\n').map((line) => (line.length > 4_000 ? emptied(line) : line))
  const file = `${prefix}${name.replaceAll('_', '-')}.jsonl`
  writeFileSync(join(import.meta.dirname, '../../fixtures/harness', folder, file), lines.join('\n'))
}

/** Lists of models, commands and tools say nothing about a case. */
function emptied(line: string): string {
  try {
    return JSON.stringify(JSON.parse(line), (key, value: unknown) =>
      Array.isArray(value) && key !== 'content' && key !== 'options' ? [] : value,
    )
  } catch {
    return line
  }
}
