import type { RunEventBody } from '../../../shared/runs/events.ts'
import { cappedText, maxPieceBytes, rawEvents, textPieces } from '../event-pieces.ts'
import { cutText } from '../utf8.ts'
import { textBlock, thinkingBlock, toolResultBlock, toolUseBlock } from './wire.ts'
import type { assistantLine, userLine } from './wire.ts'
import type { z } from 'zod'

type Parent = { parentToolCallId?: string }

/** Input beyond this is cut in the event; the gate judges the whole of it. */
const maxInputBytes = 1024 * 1024

export function assistantEvents(line: z.infer<typeof assistantLine>): RunEventBody[] {
  const parent = parentOf(line.parent_tool_use_id)
  return line.message.content.flatMap((block) => assistantBlock(block, parent))
}

function assistantBlock(block: unknown, parent: Parent): RunEventBody[] {
  const text = textBlock.safeParse(block)
  if (text.success)
    return textPieces(text.data.text).map((piece) => ({ kind: 'text', data: { text: piece, ...parent } }))
  const thinking = thinkingBlock.safeParse(block)
  if (thinking.success) {
    return textPieces(thinking.data.thinking).map((piece) => ({ kind: 'thinking', data: { text: piece, ...parent } }))
  }
  const use = toolUseBlock.safeParse(block)
  if (use.success) {
    const { id: toolCallId, name, input } = use.data
    return [{ kind: 'tool_call', data: { toolCallId, name, input: cappedInput(input), ...parent } }]
  }
  return resultBlock(block, parent) ?? keptRaw(block)
}

/** Tool results; other text in a user line is claude's own note to the model and is kept raw. */
export function userEvents(line: z.infer<typeof userLine>): RunEventBody[] {
  const parent = parentOf(line.parent_tool_use_id)
  return line.message.content.flatMap((block) => resultBlock(block, parent) ?? keptRaw(block))
}

function resultBlock(block: unknown, parent: Parent): RunEventBody[] | null {
  const result = toolResultBlock.safeParse(block)
  if (!result.success) return null
  const { text: output, ...cut } = cappedText(contentText(result.data.content))
  const data = {
    toolCallId: result.data.tool_use_id,
    isError: result.data.is_error === true,
    output,
    ...cut,
    ...parent,
  }
  return [{ kind: 'tool_result', data }]
}

/** A tool's result as text: it is a string, or blocks of which some are pictures. */
function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  if (content === undefined || content === null) return ''
  if (!Array.isArray(content)) return JSON.stringify(content)
  return content
    .map((block: unknown) => {
      const text = textBlock.safeParse(block)
      if (text.success) return text.data.text
      const type = typeof block === 'object' && block !== null && 'type' in block ? block.type : null
      return type === 'image' || type === 'document' ? `[${type}]` : JSON.stringify(block)
    })
    .join('\n')
}

function cappedInput(input: unknown): unknown {
  const json = JSON.stringify(input) ?? 'null'
  if (json.length * 3 <= maxInputBytes || Buffer.byteLength(json) <= maxInputBytes) return input ?? null
  const { text, truncatedBytes } = cutText(json, maxPieceBytes)
  return { truncatedJson: text, truncatedBytes }
}

function keptRaw(block: unknown): RunEventBody[] {
  // Thinking that the provider encrypted says nothing to anyone but the model.
  if (typeof block === 'object' && block !== null && 'type' in block && block.type === 'redacted_thinking') return []
  return rawEvents(Buffer.from(`${JSON.stringify(block)}\n`), 'stdout')
}

function parentOf(toolCallId: string | null | undefined): Parent {
  return toolCallId === null || toolCallId === undefined ? {} : { parentToolCallId: toolCallId }
}
