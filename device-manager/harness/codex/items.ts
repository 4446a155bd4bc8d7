import { canonicalJson } from '../../../shared/lib/canonical-json.ts'
import type { NamedCall } from '../adapter.ts'
import type { SpeechKind } from '../parts/speech.ts'
import { scriptOf } from './shell-words.ts'
import { commandItem, fileItem, mcpItem, messageItem, reasoningItem, type FileChange, type Item } from './wire.ts'

// As the agent's lists name them, codex's shell is `Bash`, its patches are `Write` and `Edit`.
export const shellCall = (command: string): NamedCall => ({ name: 'Bash', input: { command: scriptOf(command) } })
export const mcpCall = (server: string, tool: string, input: unknown): NamedCall => ({
  name: `mcp__${server}__${tool}`,
  input: input ?? {},
})

/** One patch makes files and changes others; each of the two is judged by its own rules. */
export function patchCalls(changes: readonly FileChange[]): NamedCall[] {
  const added = changes.filter(({ kind }) => kind.type === 'add')
  const changed = changes.filter(({ kind }) => kind.type !== 'add')
  const inputOf = (some: readonly FileChange[]) => ({
    changes: some.map(({ path, kind, diff }) => ({
      file_path: path,
      ...(kind.move_path != null && { move_path: kind.move_path }),
      kind: kind.type,
      diff,
    })),
  })
  return [
    ...(added.length > 0 ? [{ name: 'Write', input: inputOf(added) }] : []),
    ...(changed.length > 0 ? [{ name: 'Edit', input: inputOf(changed) }] : []),
  ]
}

/** Returns what an item's beginning tells; null: it is no tool call. */
export function callOf(item: Item): NamedCall | null {
  switch (item.type) {
    case 'commandExecution': {
      const command = commandItem.safeParse(item)
      return command.success ? shellCall(command.data.command) : null
    }
    case 'fileChange': {
      const patch = fileItem.safeParse(item)
      if (!patch.success) return null
      const [first, second] = patchCalls(patch.data.changes)
      return first && second ? { name: 'Edit', input: { add: first.input, change: second.input } } : (first ?? null)
    }
    case 'mcpToolCall': {
      const call = mcpItem.safeParse(item)
      return call.success ? mcpCall(call.data.server, call.data.tool, call.data.arguments) : null
    }
    case 'webSearch':
    case 'imageView':
    case 'imageGeneration':
    case 'dynamicToolCall':
    case 'collabAgentToolCall': {
      const { id: _, type, ...input } = item
      return { name: type.charAt(0).toUpperCase() + type.slice(1), input }
    }
    default:
      return null
  }
}

/** What a question about a call, and the item of the call, both show of what it does. */
export function shownOf(item: Item): string {
  if (item.type === 'fileChange') return patchShown(fileItem.safeParse(item).data?.changes ?? [])
  if (item.type === 'commandExecution') return commandItem.safeParse(item).data?.command ?? ''
  return item.type === 'mcpToolCall' ? canonicalJson(mcpItem.safeParse(item).data?.arguments ?? {}) : ''
}
export const patchShown = (changes: readonly FileChange[]): string =>
  JSON.stringify(changes.map(({ path, kind, diff }) => [path, kind.type, kind.move_path ?? null, diff]))

/** Returns what codex says or thinks in an item that is whole; null: nothing. */
export function wordsOf(item: Item): { kind: SpeechKind; text: string } | null {
  const message = item.type === 'agentMessage' ? messageItem.safeParse(item) : null
  if (message?.success) return { kind: 'text', text: message.data.text }
  const reasoning = item.type === 'reasoning' ? reasoningItem.safeParse(item) : null
  if (!reasoning?.success) return null
  const { summary, content } = reasoning.data
  return { kind: 'thinking', text: (summary.length > 0 ? summary : content).join('\n\n') }
}

/** Returns how a tool call ended. */
export function codexResultOf(item: Item): { isError: boolean; output: string } {
  const command = item.type === 'commandExecution' ? commandItem.safeParse(item) : null
  if (command?.success) {
    const { status, aggregatedOutput, exitCode } = command.data
    const said = aggregatedOutput ?? (status === 'declined' ? 'The call was declined.' : '')
    return { isError: status !== 'completed' || (exitCode ?? 0) !== 0, output: said }
  }
  const mcp = item.type === 'mcpToolCall' ? mcpItem.safeParse(item) : null
  if (mcp?.success) {
    const { status, result, error } = mcp.data
    return { isError: status !== 'completed', output: error?.message ?? contentText(result?.content ?? []) }
  }
  const status = typeof item['status'] === 'string' ? item['status'] : 'completed'
  return { isError: status !== 'completed', output: status }
}

const contentText = (blocks: readonly unknown[]): string =>
  blocks
    .map((block) => {
      const text = typeof block === 'object' && block !== null && 'text' in block ? block.text : null
      return typeof text === 'string' ? text : JSON.stringify(block)
    })
    .join('\n')
