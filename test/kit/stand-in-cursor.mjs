// Stands in for cursor-agent, which cannot be had without an account: it does what Cursor's pages say of `status`, of print
// mode (replays a recorded stream, then lingers) and of `acp` (asks before its one command).
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

const args = process.argv.slice(2)
const tell = (value) => process.stdout.write(`${JSON.stringify(value)}\n`)
if (args.includes('--version')) process.stdout.write('2026.07.20-standin\n')
else if (args[0] === 'status') tell({ status: 'authenticated', isAuthenticated: true })
else if (args.includes('acp')) acp()
else await print()

async function print() {
  for await (const _ of process.stdin);
  const stream = readFileSync(new URL('../fixtures/harness/cursor/success.jsonl', import.meta.url), 'utf8')
  for (const line of stream.split(/(?<=\n)/)) {
    process.stdout.write(line)
    await sleep(20)
  }
  await sleep(1_500)
}

function acp() {
  const command = 'echo hello > hello.txt'
  const sessionId = 'chat-1'
  let hasSignedIn = false
  let prompt = null
  const answer = (id, result) => tell({ jsonrpc: '2.0', id, result })
  const update = (fields) => tell({ jsonrpc: '2.0', method: 'session/update', params: { sessionId, update: fields } })
  const on = {
    initialize: (id) => answer(id, { protocolVersion: 1, agentCapabilities: { loadSession: true } }),
    authenticate(id) {
      hasSignedIn = true
      answer(id, {})
    },
    'session/new'(id) {
      if (hasSignedIn) return answer(id, { sessionId })
      tell({ jsonrpc: '2.0', id, error: { code: -32_000, message: 'Authentication required' } })
    },
    'session/prompt'(id) {
      prompt = id
      const toolCall = { toolCallId: 't1', kind: 'execute', status: 'pending', rawInput: { command } }
      update({ sessionUpdate: 'tool_call', title: 'Shell', ...toolCall })
      const options = ['allow_once', 'allow_always', 'reject_once'].map((kind) => ({
        optionId: kind,
        name: kind,
        kind,
      }))
      const params = { sessionId, toolCall, options }
      tell({ jsonrpc: '2.0', id: 'ask-1', method: 'session/request_permission', params })
    },
  }
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, result } = JSON.parse(line)
    if (method !== undefined) return on[method]?.(id)
    if (id !== 'ask-1') return
    const isAllowed = result.outcome.optionId === 'allow_once'
    if (isAllowed) spawnSync('/bin/sh', ['-c', command])
    update({ sessionUpdate: 'tool_call_update', toolCallId: 't1', status: isAllowed ? 'completed' : 'failed' })
    update({
      sessionUpdate: 'agent_message_chunk',
      content: { type: 'text', text: isAllowed ? 'Done.' : 'I may not.' },
    })
    answer(prompt, { stopReason: 'end_turn' })
  })
}
