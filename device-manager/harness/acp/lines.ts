import { jsonLine } from '../parts/json-lines.ts'

/** The prompt of the run has the id `prompt`, and what a person adds has the ids after it. */
export const acpRequestIds = { authenticate: 0, initialize: 1, session: 2, prompt: 3 } as const

export const requestLine = (id: number, method: string, params: unknown): string =>
  jsonLine({ jsonrpc: '2.0', id, method, params })

/** The first request. svc offers the program neither files nor terminals: it works with its own tools. */
export function initializeLine(): string {
  const clientCapabilities = { fs: { readTextFile: false, writeTextFile: false }, terminal: false }
  const clientInfo = { name: 'svc', title: 'svc', version: '1' }
  return requestLine(acpRequestIds.initialize, 'initialize', { protocolVersion: 1, clientCapabilities, clientInfo })
}

/** Sends texts to the session as its prompt number `count`, counted from 0. */
export function promptLine(sessionId: string | null, count: number, texts: readonly string[]): string {
  const prompt = texts.map((text) => ({ type: 'text', text }))
  return requestLine(acpRequestIds.prompt + count, 'session/prompt', { sessionId, prompt })
}

/** Asks the program to end its turn. */
export const cancelLine = (sessionId: string | null): string =>
  jsonLine({ jsonrpc: '2.0', method: 'session/cancel', params: { sessionId } })

/** The answer to a request of the program that svc does not know. */
export function unknownMethodLine(id: number | string | null, method: string): string {
  const error = { code: -32_601, message: `svc does not answer ${method.slice(0, 200)}.` }
  return jsonLine({ jsonrpc: '2.0', id, error })
}
