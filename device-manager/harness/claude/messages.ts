import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { RedactText } from '../adapter.ts'
import { callEvent, rawEvents, resultEvent } from '../parts/event-pieces.ts'
import type { PartialWords } from '../parts/partial-words.ts'
import type { SpeechKind } from '../parts/speech.ts'
import { textBlock, thinkingBlock, toolResultBlock, toolUseBlock } from './wire.ts'
import type { claudeAssistantLine, userLine } from './wire.ts'
import type { z } from 'zod'

/** Facts that hold for all blocks of a line. */
interface Of {
  parent: { parentToolCallId?: string }
  redactText: RedactText
}

/** Returns the events of a message. Of its words those that `words` was given piece by piece are told already. */
export function assistantEvents(
  line: z.infer<typeof claudeAssistantLine>,
  { redactText, words }: { redactText: RedactText; words: PartialWords },
): RunEventBody[] {
  const parent = parentOf(line.parent_tool_use_id)
  // Pieces come of the agent's own words alone.
  const id = line.parent_tool_use_id == null ? (line.message.id ?? null) : null
  const said = (kind: SpeechKind, text: string) => words.whole(kind, { id, text, parent })
  return line.message.content.flatMap((block) => assistantBlock(block, { parent, redactText, said }))
}

function assistantBlock(
  block: unknown,
  { said, ...of }: Of & { said: (kind: SpeechKind, text: string) => RunEventBody[] },
): RunEventBody[] {
  const { parent, redactText } = of
  const text = textBlock.safeParse(block)
  if (text.success) return said('text', text.data.text)
  const thinking = thinkingBlock.safeParse(block)
  if (thinking.success) return said('thinking', thinking.data.thinking)
  const use = toolUseBlock.safeParse(block)
  if (use.success) return [callEvent({ toolCallId: use.data.id, ...parent }, use.data, redactText)]
  return resultBlock(block, of) ?? keptRaw(block, redactText)
}

/** Tool results; other text in a user line is claude's own note to the model and is kept raw. */
export function userEvents(line: z.infer<typeof userLine>, redactText: RedactText): RunEventBody[] {
  const of = { parent: parentOf(line.parent_tool_use_id), redactText }
  return line.message.content.flatMap((block) => resultBlock(block, of) ?? keptRaw(block, redactText))
}

function resultBlock(block: unknown, { parent, redactText }: Of): RunEventBody[] | null {
  const result = toolResultBlock.safeParse(block)
  if (!result.success) return null
  const { tool_use_id: toolCallId, is_error: isError, content } = result.data
  return [resultEvent({ toolCallId, isError: isError === true, ...parent, output: contentText(content) }, redactText)]
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

function keptRaw(block: unknown, redactText: RedactText): RunEventBody[] {
  // Thinking that the provider encrypted says nothing to anyone but the model.
  if (typeof block === 'object' && block !== null && 'type' in block && block.type === 'redacted_thinking') return []
  return rawEvents(Buffer.from(`${JSON.stringify(block)}\n`), 'stdout', redactText)
}

function parentOf(toolCallId: string | null | undefined): Of['parent'] {
  return toolCallId === null || toolCallId === undefined ? {} : { parentToolCallId: toolCallId }
}
