// The OpenAI Responses API as far as codex speaks it, for stub-llm.mjs: streamed, with text, reasoning summaries, and
// calls of functions and of freeform tools. A text comes as one delta; with `chunkDelayMs` in some.
import { randomBytes } from 'node:crypto'

const newId = (prefix) => prefix + randomBytes(12).toString('hex')

/** Tools of a request, those in namespaces too. */
export const toolsOf = ({ tools = [] }) => tools.flatMap((tool) => (tool.type === 'namespace' ? tool.tools : [tool]))

/** Returns what was said since the model's last reply, as the rules of a scenario see it. */
export function lastSaid({ input = [] }) {
  const items = Array.isArray(input) ? input : [input]
  const isReply = ({ type, role }) =>
    role === 'assistant' || /^(reasoning|function_call|custom_tool_call)$/.test(type ?? '')
  return JSON.stringify(items.slice(items.findLastIndex(isReply) + 1))
}

export function errorOf({ status, type, code, message, resetsAt }) {
  return {
    error: {
      type: type ?? 'server_error',
      code: code ?? null,
      message: message ?? `stub-llm says ${status}`,
      ...(resetsAt !== undefined && { resets_at: resetsAt }),
    },
  }
}

function callItem(wanted, tools) {
  const call = (name, input) => {
    const isFreeform = tools.find((tool) => tool.name === name)?.type === 'custom'
    const head = {
      id: newId(isFreeform ? 'ctc_' : 'fc_'),
      call_id: newId('call_'),
      name,
      status: 'completed',
      namespace: wanted.namespace,
    }
    return isFreeform
      ? { type: 'custom_tool_call', ...head, input: typeof input === 'string' ? input : JSON.stringify(input) }
      : { type: 'function_call', ...head, arguments: JSON.stringify(input) }
  }
  const named = (...names) => tools.find((tool) => names.includes(tool.name))
  if (wanted.name) return call(wanted.name, wanted.input ?? {})
  const shell = named('exec_command', 'shell_command', 'shell')
  if (wanted.kind === 'shell' && shell) {
    const field = shell.parameters?.properties?.cmd ? 'cmd' : 'command'
    return call(shell.name, { [field]: wanted.command, ...wanted.extra })
  }
  if (wanted.kind === 'write' && named('apply_patch')) {
    const lines = wanted.content.replace(/\n$/, '').split('\n')
    const patch = [
      '*** Begin Patch',
      `*** Add File: ${wanted.path}`,
      ...lines.map((line) => `+${line}`),
      '*** End Patch',
    ]
    return call('apply_patch', `${patch.join('\n')}\n`)
  }
  return call('unknown_tool', { note: `no tool for ${JSON.stringify(wanted)}` })
}

function outputOf(step, tools) {
  const output = []
  const { thinking, text } = step
  if (thinking)
    output.push({ type: 'reasoning', id: newId('rs_'), summary: [{ type: 'summary_text', text: thinking }] })
  if (text) {
    const content = [{ type: 'output_text', text, annotations: [] }]
    output.push({ type: 'message', id: newId('msg_'), role: 'assistant', status: 'completed', content })
  }
  for (const wanted of step.tools ?? (step.tool ? [step.tool] : [])) output.push(callItem(wanted, tools))
  return output
}

/** `send` writes one server-sent event. */
export async function answerResponses(body, step, send) {
  const { input = 100, output: out = 20, cacheRead = 0 } = step.usage ?? {}
  const usage = {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cacheRead },
    output_tokens: out,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + out,
  }
  const output = outputOf(step, toolsOf(body))
  const head = { id: newId('resp_'), object: 'response', model: body.model }
  await send('response.created', { response: { ...head, status: 'in_progress', output: [] } })
  for (const [index, item] of output.entries()) {
    await send('response.output_item.added', { output_index: index, item: { ...item, ...emptied[item.type] } })
    const at = { output_index: index, item_id: item.id }
    if (item.type === 'message') {
      const { text } = item.content[0]
      for (const delta of step.chunkDelayMs ? text.match(/[\s\S]{1,12}/g) : [text])
        await send('response.output_text.delta', { ...at, content_index: 0, delta })
    }
    if (item.type === 'reasoning') {
      await send('response.reasoning_summary_part.added', { ...at, summary_index: 0, part: item.summary[0] })
      await send('response.reasoning_summary_text.delta', { ...at, summary_index: 0, delta: item.summary[0].text })
    }
    await send('response.output_item.done', { output_index: index, item })
  }
  if (step.streamError) {
    const error = { code: 'server_is_overloaded', message: 'Overloaded', ...step.streamError }
    await send('response.failed', { response: { ...head, status: 'failed', error } })
  } else if (step.stopReason === 'max_tokens') {
    const incomplete = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' }, output, usage }
    await send('response.incomplete', { response: { ...head, ...incomplete } })
  } else await send('response.completed', { response: { ...head, status: 'completed', output, usage } })
}

const emptied = {
  message: { status: 'in_progress', content: [] },
  reasoning: { summary: [] },
  function_call: { status: 'in_progress', arguments: '' },
  custom_tool_call: { status: 'in_progress', input: '' },
}
