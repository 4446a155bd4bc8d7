#!/usr/bin/env node
// Stands in for the claude program: speaks its line protocol from a recording, over real pipes. Prints the recording line by
// line; after a question (control_request) it waits for the answer and keeps it in PLAYER_ANSWERS. The result of a call that was
// denied says so, as claude's does, whatever was recorded.
//     PLAYER_RECORDING  the recording          PLAYER_CALLS  how often a tool call is printed (with ids of its own)
//     PLAYER_HEARD      a file to which its arguments and the prompt are written
//     PLAYER_SAY        printed as one more text of the assistant
//     PLAYER_MODE       silent: says nothing; stay: does not exit after its result; deaf: says nothing after an answer;
//                       thinking: says nothing after the result of a call
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const { PLAYER_RECORDING, PLAYER_ANSWERS, PLAYER_CALLS = '1', PLAYER_SAY, PLAYER_MODE, PLAYER_HEARD } = process.env
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const denied = new Set()
const out = (value) => process.stdout.write(`${JSON.stringify(value)}\n`)

if (PLAYER_MODE === 'silent') await new Promise(() => setInterval(() => {}, 1000))
const hello = JSON.parse((await input.next()).value)
for (const text of readFileSync(PLAYER_RECORDING, 'utf8').trimEnd().split('\n')) {
  const line = JSON.parse(text)
  if (line.type === 'control_response') {
    line.response.request_id = hello.request_id
    out(line)
    const { value } = await input.next()
    if (PLAYER_HEARD) writeFileSync(PLAYER_HEARD, JSON.stringify({ args: process.argv.slice(2), prompt: value }))
    continue
  }
  const call = line.message?.content?.[0]
  if (call?.type === 'tool_result' && denied.has(call.tool_use_id))
    Object.assign(call, { is_error: true, content: 'No.' })
  const copies = call?.type === 'tool_use' ? Number(PLAYER_CALLS) : 1
  for (let copy = 0; copy < copies; copy++) {
    if (copy > 0) call.id = `${call.id}x`
    out(line)
  }
  if (call?.type === 'tool_result' && PLAYER_MODE === 'thinking') await new Promise(() => setInterval(() => {}, 1000))
  if (line.type === 'control_request') {
    const { value } = await input.next()
    appendFileSync(PLAYER_ANSWERS, `${value}\n`)
    if (value.includes('"permissionDecision":"deny"')) denied.add(line.request.input.tool_use_id)
    if (PLAYER_MODE === 'deaf') await new Promise(() => setInterval(() => {}, 1000))
  }
  if (line.type === 'assistant' && call.type === 'text' && PLAYER_SAY) {
    out({
      ...line,
      message: { ...line.message, id: `${line.message.id}s`, content: [{ type: 'text', text: PLAYER_SAY }] },
    })
    process.stderr.write(`stderr: ${PLAYER_SAY}\n`)
  }
}
if (PLAYER_MODE === 'stay') await new Promise(() => setInterval(() => {}, 1000))
process.stdin.destroy()
