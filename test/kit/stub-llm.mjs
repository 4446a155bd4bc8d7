#!/usr/bin/env node
// A scripted stand-in for a model server, on loopback only, so that a real harness can be run without a network or a key.
//
//     node stub-llm.mjs [--script script.json] [--port 0]
//
// The first line on standard output is {"port":N,"url":"http://127.0.0.1:N"}. It speaks the Anthropic Messages API
// (POST .../messages, streamed or not, .../messages/count_tokens, GET .../models) and the OpenAI Responses API (POST
// .../responses, streamed; stub-llm-responses.mjs). Simplified where a real server does more: tokens are not counted (usage is
// what the script says, else 100 in and 20 out), keys are not checked, and the other fields of a request are ignored.
//
// Point claude here with ANTHROPIC_BASE_URL=<url>/s/<scenario> and ANTHROPIC_API_KEY=dummy, codex with a provider whose
// base_url is <url>/s/<scenario>/v1 and whose wire_api is responses.
//
// A script is {"scenarios":{"<name>":{"steps":[...],"after":{...},"loop":false,"side":{...}}}}. Each request that declares
// tools takes the scenario's next step (a retry takes one too); past the last comes `after`. A request without tools (a
// title, a summary) gets `side` and takes no step. A scenario's `rules` go before its steps: [{"when":"regular expression",
// ...step}], the first whose expression is found in what was said since its last reply (as JSON) answers, however often.
// Before them go its `models`: {"<name>": step} answers every request for that model.
// A step: `text`, `thinking`, `tool` or `tools`, `usage` {input, output, cacheRead, cacheWrite}, `stopReason`, and for
// trouble `error` {status, type, message, retryAfter, resetsAt, headers}, `streamError` (an error event after the 200),
// `cutAfter` (events until the socket dies), `drop`, `hang`, `delayMs`, `chunkDelayMs`.
// A tool: {"kind":"shell","command":"..."} or {"kind":"write","path":"...","content":"..."}, mapped to the tool that the
// client declares; or {"name":"...","input":{...}} as it is. `extra` adds fields to a shell tool's input.
//
// GET /__stub/requests: what came in, with the bodies. PUT /__stub/script: new scenarios, which begin anew without what was asked in
// them before; the others go on. SIGTERM ends it.
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { parseArgs } from 'node:util'
import { answerResponses, errorOf, lastSaid, toolsOf } from './stub-llm-responses.mjs'

const { values } = parseArgs({ options: { script: { type: 'string' }, port: { type: 'string', default: '0' } } })
let script = values.script === undefined ? { scenarios: { default: { steps: [] } } } : readJson(values.script)
let requests = []
/** Scenario -> number of its next step. */
const cursors = new Map()

function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'))
}
const newId = (prefix) => prefix + randomBytes(12).toString('hex')
const pause = (ms) => (ms > 0 ? new Promise((resolve) => setTimeout(resolve, ms)) : null)

function route(url) {
  const path = url.split('?')[0]
  const match = /^\/s\/([^/]+)(\/.*)?$/.exec(path)
  return match ? { scenario: decodeURIComponent(match[1]), path: match[2] ?? '/' } : { scenario: 'default', path }
}

/** `last`: what was said since the model's last reply, as JSON. */
function pickStep(name, { tools, last, model }) {
  const scenario = script.scenarios?.[name]
  if (!scenario) return { error: { status: 404, type: 'not_found_error', message: `no scenario "${name}"` } }
  if (tools.length === 0) return scenario.side ?? { text: 'Stub title' }
  const ofModel = scenario.models?.[model]
  if (ofModel) return ofModel
  const rule = scenario.rules?.find(({ when }) => new RegExp(when).test(last))
  if (rule) return rule
  const number = cursors.get(name) ?? 0
  cursors.set(name, number + 1)
  const steps = scenario.steps ?? []
  if (number < steps.length) return steps[number]
  if (scenario.loop && steps.length > 0) return steps[number % steps.length]
  return scenario.after ?? { text: 'Nothing more is scripted.' }
}

const lastMessages = ({ messages = [] }) =>
  JSON.stringify(messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1))

/** A step's tool as the name and input that this client's declared tools take. */
function toolCall(wanted, tools) {
  if (wanted.name) return { name: wanted.name, input: wanted.input ?? {} }
  const named = (name) => tools.find((tool) => tool.name?.toLowerCase() === name)
  if (wanted.kind === 'shell' && named('bash')) {
    return {
      name: named('bash').name,
      input: { command: wanted.command, description: 'Run a command', ...wanted.extra },
    }
  }
  if (wanted.kind === 'shell' && named('run_shell_command')) {
    return { name: 'run_shell_command', input: { command: wanted.command, is_background: false, ...wanted.extra } }
  }
  if (wanted.kind === 'write' && named('write')) {
    return { name: named('write').name, input: { file_path: wanted.path, content: wanted.content } }
  }
  return { name: 'unknown_tool', input: { note: `no tool for ${JSON.stringify(wanted)}` } }
}

const errorTypes = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  500: 'api_error',
  529: 'overloaded_error',
}
function errorBody({ status, type, message }) {
  const error = { type: type ?? errorTypes[status] ?? 'api_error', message: message ?? `stub-llm says ${status}` }
  return { type: 'error', error, request_id: newId('req_') }
}

function json(res, status, body, headers = {}) {
  res.writeHead(status, { 'content-type': 'application/json', 'request-id': newId('req_'), ...headers })
  res.end(JSON.stringify(body))
}

/** Writes server-sent events; keeps to the step's `chunkDelayMs` and `cutAfter`. */
function eventWriter(res, step) {
  let sent = 0
  res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', 'request-id': newId('req_') })
  return async (type, data) => {
    if (res.destroyed) throw new ClientLeft()
    if (step.cutAfter !== undefined && sent >= step.cutAfter) {
      res.destroy()
      throw new ClientLeft()
    }
    sent++
    res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`)
    await pause(step.chunkDelayMs)
  }
}
class ClientLeft extends Error {}

const pieces = (text, size) => text.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g')) ?? []

function contentOf(step, tools) {
  const content = []
  if (step.thinking) content.push({ type: 'thinking', thinking: step.thinking, signature: 'c3R1Yg==' })
  if (step.text) content.push({ type: 'text', text: step.text })
  for (const wanted of step.tools ?? (step.tool ? [step.tool] : [])) {
    content.push({ type: 'tool_use', id: newId('toolu_'), ...toolCall(wanted, tools) })
  }
  return content
}

async function answer(res, body, step) {
  const content = contentOf(step, body.tools ?? [])
  const { input = 100, output = 20, cacheRead = 0, cacheWrite = 0 } = step.usage ?? {}
  const usage = {
    input_tokens: input,
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    output_tokens: output,
    service_tier: 'standard',
  }
  const stop = step.stopReason ?? (content.some((block) => block.type === 'tool_use') ? 'tool_use' : 'end_turn')
  const head = { id: newId('msg_'), type: 'message', role: 'assistant', model: body.model, stop_sequence: null }
  if (!body.stream) {
    json(res, 200, { ...head, content, stop_reason: stop, usage })
    return
  }
  const send = eventWriter(res, step)
  const started = { ...head, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } }
  await send('message_start', { message: started })
  for (const [index, block] of content.entries()) await streamBlock(send, index, block)
  if (step.streamError) {
    await send('error', { error: { type: 'overloaded_error', message: 'Overloaded', ...step.streamError } })
    res.end()
    return
  }
  await send('message_delta', { delta: { stop_reason: stop, stop_sequence: null }, usage })
  await send('message_stop', {})
  res.end()
}

async function streamBlock(send, index, block) {
  const delta = (value) => send('content_block_delta', { index, delta: value })
  const empty = { text: { text: '' }, thinking: { thinking: '', signature: '' }, tool_use: { input: {} } }[block.type]
  await send('content_block_start', { index, content_block: { ...block, ...empty } })
  if (block.type === 'text') for (const text of pieces(block.text, 12)) await delta({ type: 'text_delta', text })
  if (block.type === 'thinking') {
    for (const thinking of pieces(block.thinking, 12)) await delta({ type: 'thinking_delta', thinking })
    await delta({ type: 'signature_delta', signature: block.signature })
  }
  if (block.type === 'tool_use') {
    for (const part of pieces(JSON.stringify(block.input), 24))
      await delta({ type: 'input_json_delta', partial_json: part })
  }
  await send('content_block_stop', { index })
}

function control(req, res, raw) {
  if (req.url === '/__stub/requests') return json(res, 200, requests)
  if (req.url === '/__stub/script' && req.method === 'PUT') {
    const { scenarios } = JSON.parse(raw)
    script = { scenarios: { ...script.scenarios, ...scenarios } }
    for (const name of Object.keys(scenarios)) cursors.delete(name)
    requests = requests.filter(({ scenario }) => scenarios[scenario] === undefined)
    return json(res, 200, { ok: true })
  }
  return json(res, 404, { error: 'no such control' })
}

async function serve(req, res) {
  const chunks = []
  for await (const chunk of req) chunks.push(chunk)
  const raw = Buffer.concat(chunks).toString('utf8')
  if (req.url.startsWith('/__stub/')) return control(req, res, raw)
  const { scenario, path } = route(req.url)
  const body = raw === '' ? {} : JSON.parse(raw)
  requests.push({ method: req.method, path, scenario, body })
  if (path.endsWith('/messages/count_tokens')) return json(res, 200, { input_tokens: 100 })
  if (/\/models(\/[^/]+)?$/.test(path)) return json(res, 200, { data: [], has_more: false })
  const isResponses = path.endsWith('/responses')
  if (!isResponses && !path.endsWith('/messages')) return json(res, 404, errorBody({ status: 404, message: req.url }))
  const step = pickStep(
    scenario,
    isResponses
      ? { tools: toolsOf(body), last: lastSaid(body), model: body.model }
      : { tools: body.tools ?? [], last: lastMessages(body), model: body.model },
  )
  await pause(step.delayMs)
  if (step.hang) return undefined
  if (step.drop) return res.destroy()
  if (step.error) {
    const { retryAfter, headers: given } = step.error
    const headers = { ...given, ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }) }
    return json(res, step.error.status, isResponses ? errorOf(step.error) : errorBody(step.error), headers)
  }
  if (!isResponses) return answer(res, body, step)
  await answerResponses(body, step, eventWriter(res, step))
  return res.end()
}

const server = createServer((req, res) => {
  serve(req, res).catch((error) => {
    if (error instanceof ClientLeft || res.destroyed) return
    if (res.headersSent) res.destroy()
    else json(res, 500, errorBody({ status: 500, message: String(error) }))
  })
})
server.listen(Number(values.port), '127.0.0.1', () => {
  const { port } = server.address()
  console.log(JSON.stringify({ port, url: `http://127.0.0.1:${port}` }))
})
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(0))
