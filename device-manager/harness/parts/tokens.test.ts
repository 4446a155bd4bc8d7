import { describe, expect, it } from 'vitest'
import { runEventSchemas } from '../../../shared/runs/events.ts'
import { merged, specOf } from '../../../test/kit/harness-recordings.ts'
import { acpDialogue } from '../acp/dialogue.ts'
import type { HarnessDialogue } from '../adapter.ts'
import { claudeDialogue } from '../claude/dialogue.ts'
import { codexDialogue } from '../codex/dialogue.ts'
import { cursorDialogue } from '../cursor/dialogue.ts'
import { opencodeDialogue } from '../opencode/dialogue.ts'

/** What says how much a run used goes into the report of its end, which nobody can read where one number is wrong. */
const most = Number.MAX_SAFE_INTEGER
const wrong = [1.5, -1, 1e300, most, '7', null, {}]

const claudeModels = (n: unknown) => ({
  m: { inputTokens: n, outputTokens: n, cacheReadInputTokens: n, cacheCreationInputTokens: n, costUSD: n },
})
const claudeUsage = (n: unknown) => ({
  input_tokens: n,
  output_tokens: n,
  cache_creation_input_tokens: n,
  cache_read_input_tokens: n,
})
const claude = (n: unknown) => [
  { type: 'assistant', message: { id: `m-${String(n)}`, content: [], usage: claudeUsage(n) } },
  { type: 'result', subtype: 'success', queued_turn_count: 1, usage: claudeUsage(n), total_cost_usd: n },
  { type: 'result', subtype: 'success', queued_turn_count: 1, model_usage_since_last_result: claudeModels(n) },
  { type: 'result', subtype: 'success', queued_turn_count: 1, modelUsage: claudeModels(n) },
]
const codex = (n: unknown) => {
  const last = { inputTokens: n, cachedInputTokens: 0, cacheWriteInputTokens: n, outputTokens: n }
  return [{ method: 'thread/tokenUsage/updated', params: { threadId: 't', turnId: 'u', tokenUsage: { last } } }]
}
const codexBegin = [
  { id: 2, result: { thread: { id: 't' } } },
  { id: 3, result: { turn: { id: 'u' } } },
]
const acpBegin = [
  { id: 1, result: { protocolVersion: 1, agentCapabilities: {} } },
  { id: 2, result: { sessionId: 's' } },
]
const acp = (n: unknown) => [
  { id: 3, result: { stopReason: 'end_turn', usage: { inputTokens: n, outputTokens: n, cachedReadTokens: n } } },
]
const cursor = (n: unknown) => {
  const usage = { inputTokens: n, outputTokens: n, cacheReadTokens: n, cacheWriteTokens: n }
  return [{ type: 'result', subtype: 'success', is_error: false, result: 'x', usage }]
}
const opencodeBegin = [
  { stdout: JSON.stringify({ svc: 'ready', directory: '/w', servers: [] }) },
  { answer: { id: 1, status: 200, body: { id: 's', directory: '/w' } } },
]
const opencode = (n: unknown) => {
  const tokens = { input: n, output: n, reasoning: n, cache: { read: n, write: n } }
  const part = {
    id: `p-${String(n)}`,
    sessionID: 's',
    messageID: 'm',
    type: 'step-finish',
    reason: 'stop',
    cost: n,
    tokens,
  }
  return [{ event: { type: 'message.part.updated', properties: { part } } }]
}

describe.each<[string, () => HarnessDialogue, readonly object[], (n: unknown) => readonly object[]]>([
  ['claude', () => claudeDialogue(specOf()), [], claude],
  ['codex', () => codexDialogue(specOf()), codexBegin, codex],
  ['acp', () => acpDialogue(specOf()), acpBegin, acp],
  ['cursor', () => cursorDialogue(specOf()), [], cursor],
  ['opencode', () => opencodeDialogue(specOf()), opencodeBegin, opencode],
])('what %s says that it used', (_, make, begin, linesOf) => {
  const used = (lines: readonly object[]) => {
    const dialogue = make()
    dialogue.open()
    const outputs = [...begin, ...lines].map((line) => dialogue.push(Buffer.from(`${JSON.stringify(line)}\n`)))
    return merged(outputs).events.flatMap((event) => (event.kind === 'usage' ? [event.data] : []))
  }

  it.each(wrong)('is told in whole numbers that can be counted, also where it says %o', (n) => {
    for (const usage of used([...linesOf(n), ...linesOf(n)]))
      expect(runEventSchemas.usage.safeParse(usage).error, JSON.stringify(usage)).toBeUndefined()
  })

  it('is told', () => {
    expect(used(linesOf(7)).at(-1)).toMatchObject({ outputTokens: expect.any(Number) })
  })
})
