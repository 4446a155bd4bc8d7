#!/usr/bin/env node
// Stands in for a claude program that calls one tool of its MCP server again and again, as its prompt says: `call every MS for MS`. Its
// result tells how many calls it made and which of them failed; it fails itself when the last one did.
import { readFileSync } from 'node:fs'
import { args, begin, say } from './claude-talk.mjs'

const prompt = await begin('calling')
const [, everyMs, forMs] = /call every (\d+) for (\d+)/.exec(prompt.message.content[0].text)
const file = args.find((arg) => arg.startsWith('--mcp-config=')).slice('--mcp-config='.length)
const [{ url }] = Object.values(JSON.parse(readFileSync(file, 'utf8')).mcpServers)
let count = 0
const failures = []
async function call() {
  const params = { name: 'say', arguments: { text: 'hey' } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: ++count, method: 'tools/call', params })
  const headers = { 'content-type': 'application/json' }
  const { error } = await (await fetch(url, { method: 'POST', headers, body })).json()
  if (error !== undefined) failures.push(error.message)
  return error === undefined
}
const until = performance.now() + Number(forMs)
let isGood
do {
  isGood = await call()
  await new Promise((done) => setTimeout(done, Number(everyMs)))
} while (performance.now() < until || (!isGood && performance.now() < until + 90_000))
await say({
  type: 'result',
  subtype: 'success',
  is_error: !isGood,
  result: JSON.stringify({ count, failures }),
  num_turns: 1,
  queued_turn_count: 0,
})
