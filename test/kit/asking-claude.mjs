#!/usr/bin/env node
// Stands in for a claude program that makes one call in each run, and asks before. The file `ask` of its folder says what: it is a
// name, and the call appends a line to that file. Without an answer it makes no call, and ends with whoever could give one.
import { appendFileSync, readFileSync } from 'node:fs'
import { begin, next, say } from './claude-talk.mjs'

await begin('asking')
const name = readFileSync('ask', 'utf8').trim()
const call = { type: 'tool_use', id: `toolu_${name}`, name: 'Bash', input: { command: `make ${name}` } }
await say({ type: 'assistant', message: { id: 'm1', content: [call] } })
await say({
  type: 'control_request',
  request_id: 'ask-1',
  request: {
    subtype: 'hook_callback',
    callback_id: 'gate',
    input: {
      hook_event_name: 'PreToolUse',
      cwd: process.cwd(),
      tool_name: call.name,
      tool_input: call.input,
      tool_use_id: call.id,
    },
  },
})
const isAllowed = JSON.stringify(await next()).includes('"permissionDecision":"allow"')
if (isAllowed) appendFileSync(`made-${name}`, 'made\n')
const result = { tool_use_id: call.id, type: 'tool_result', content: isAllowed ? 'made' : 'No.', is_error: !isAllowed }
await say({ type: 'user', message: { role: 'user', content: [result] } })
await say({ type: 'result', subtype: 'success', is_error: false, result: 'done', num_turns: 1, queued_turn_count: 0 })
process.exit(0)
