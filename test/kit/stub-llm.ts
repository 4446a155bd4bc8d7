import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { join } from 'node:path'

/** One reply of the scripted model server; stub-llm.mjs says what each field does. */
export interface StubStep {
  text?: string
  thinking?: string
  tool?: StubTool
  tools?: readonly StubTool[]
  usage?: { input?: number; output?: number; cacheRead?: number; cacheWrite?: number }
  stopReason?: string
  error?: {
    status: number
    type?: string
    code?: string
    message?: string
    retryAfter?: number
    resetsAt?: number
    headers?: Readonly<Record<string, string>>
  }
  hang?: boolean
  drop?: boolean
  /** Events until the connection is cut. */
  cutAfter?: number
  delayMs?: number
  /** Between the events of an answer. */
  chunkDelayMs?: number
}
export type StubTool =
  | { kind: 'shell'; command: string }
  | { kind: 'write'; path: string; content: string }
  /** A tool by its name; `namespace`: that of codex. A freeform tool takes a text as its input. */
  | { name: string; namespace?: string; input: Record<string, unknown> | string }
export interface StubScenario {
  steps: readonly StubStep[]
  /** Go before the steps: the first whose regular expression is found in the last message answers. */
  rules?: readonly (StubStep & { when: string })[]
  /** Go before both: what each request for this model gets. */
  models?: Readonly<Record<string, StubStep>>
  loop?: boolean
}
export interface StubRequest {
  method: string
  path: string
  scenario: string
  body: Record<string, unknown>
}

export interface StubLlm {
  url: string
  script(scenarios: Record<string, StubScenario>): Promise<void>
  requests(): Promise<StubRequest[]>
  stop(): Promise<void>
}

/** Starts stub-llm.mjs on a free port of loopback. */
export async function startStubLlm(): Promise<StubLlm> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'stub-llm.mjs')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  const first = await lines[Symbol.asyncIterator]().next()
  const { url } = JSON.parse(String(first.value)) as { url: string }
  return {
    url,
    async script(scenarios) {
      const reply = await fetch(`${url}/__stub/script`, { method: 'PUT', body: JSON.stringify({ scenarios }) })
      if (!reply.ok) throw new Error(`stub-llm did not take the script: ${reply.status}`)
    },
    requests: async () => (await (await fetch(`${url}/__stub/requests`)).json()) as StubRequest[],
    async stop() {
      child.kill('SIGTERM')
      await exited
    },
  }
}
