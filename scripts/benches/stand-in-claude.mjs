#!/usr/bin/env node
// Stands in for the claude program in benchmarks: speaks its line protocol, does what the prompt orders, and says in files how
// it went. `order.at` is the path that these files begin with.
//     wait                  says that it is there, and waits
//     calls, count          asks about that many tool calls, one after another, and writes how long each answer took
//     flood, steps          prints lines of text until that many are out, says so, and waits for leave to go on
import { existsSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const [flag] = process.argv.slice(2)
if (flag === '--version' || flag === 'auth') {
  process.stdout.write(flag === 'auth' ? '{"loggedIn":true}\n' : '2.1.329 (Claude Code)\n')
  process.exit(0)
}
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const next = async () => JSON.parse((await input.next()).value)
const out = (value) =>
  new Promise((resolve) => {
    const text = `${JSON.stringify({ session_id: 'bench', ...value })}\n`
    if (process.stdout.write(text)) resolve()
    else process.stdout.once('drain', resolve)
  })

const hello = await next()
await out({ type: 'control_response', response: { subtype: 'success', request_id: hello.request_id, response: {} } })
const { message } = await next()
const order = JSON.parse(/bench(\{.*?\})/s.exec(message.content[0].text)[1])
await out({ type: 'system', subtype: 'init', model: 'bench', claude_code_version: '2.1.329' })
const say = (name, text = '') => writeFileSync(`${order.at}.${name}`, text)
const leave = async (name) => {
  while (!existsSync(`${order.at}.${name}`)) await new Promise((resolve) => setTimeout(resolve, 20))
}
const text = 'The quick brown fox jumps over the lazy dog, and 0123456789 times more it does so. '.repeat(2)

if (order.do === 'wait') {
  say('ready')
  await leave('go')
}
if (order.do === 'calls') {
  const times = []
  for (let at = 0; at < order.count; at++) {
    const id = `toolu_${at}`
    const isShell = at % 2 === 0
    const tool = isShell ? 'Bash' : 'Read'
    const tool_input = isShell ? { command: `echo hello ${at}` } : { file_path: `${process.cwd()}/notes/${at}.txt` }
    await out({
      type: 'assistant',
      message: { id: `msg_${at}`, content: [{ type: 'tool_use', id, name: tool, input: tool_input }] },
      parent_tool_use_id: null,
    })
    const hook = { hook_event_name: 'PreToolUse', cwd: process.cwd(), tool_name: tool, tool_input, tool_use_id: id }
    const askedAt = performance.now()
    await out({
      type: 'control_request',
      request_id: `ask_${at}`,
      request: { subtype: 'hook_callback', callback_id: 'gate', input: hook, tool_use_id: id },
    })
    const answer = await next()
    times.push(performance.now() - askedAt)
    const decided = answer.response.response.hookSpecificOutput.permissionDecision
    if (decided !== 'allow') throw new Error(`${tool} was answered ${decided}`)
    await out({ type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: id, content: 'done' }] } })
    // A model thinks in between.
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  say('times', JSON.stringify(times))
}
if (order.do === 'flood') {
  let printed = 0
  for (const step of order.steps) {
    for (; printed < step; printed++) {
      await out({
        type: 'assistant',
        message: { id: `msg_${printed}`, content: [{ type: 'text', text: `${printed} ${text}` }] },
        parent_tool_use_id: null,
      })
    }
    say(`printed-${step}`)
    await leave(`go-${step}`)
  }
}
await out({
  type: 'result',
  subtype: 'success',
  is_error: false,
  result: 'done',
  usage: { input_tokens: 1, output_tokens: 1 },
  num_turns: 1,
  queued_turn_count: 0,
})
process.exit(0)
