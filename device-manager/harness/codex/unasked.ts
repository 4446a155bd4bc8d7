import { inputsOf } from '../../../shared/permissions/call-inputs.ts'
import { decide } from '../../../shared/permissions/decide.ts'
import type { ToolPermissions } from '../../../shared/runs/spec.ts'
import type { ToolAsk } from '../adapter.ts'
import { shownDigest, type AskedCalls } from '../parts/asked-calls.ts'
import type { ApprovalStep } from './approvals.ts'
import { mcpCall } from './items.ts'
import { mcpItem, type Item } from './wire.ts'

/**
 * Notes what is asked about one call, and returns the questions with the id of the call in the run. codex gives none for calls of
 * MCP servers.
 */
export function noteAsked(
  asked: AskedCalls<string>,
  { asks, shown = '' }: ApprovalStep,
  callIdOf: (itemId: string) => string,
): ToolAsk[] | undefined {
  const named = asks?.map((ask) => ({ ...ask, toolCallId: ask.toolCallId && callIdOf(ask.toolCallId) }))
  const [first] = named ?? []
  if (named === undefined || first === undefined) return named
  const { toolCallId, name } = first
  const askIds = named.map(({ askId }) => askId)
  asked.note(toolCallId ?? name, { askIds, isName: toolCallId === null, shown: [shownDigest(shown)] })
  return named
}

/** Returns what an item that was not asked about did, for a message; null: nothing that the agent's lists would not have let it do. */
export function whatActed(item: Item, permissions: ToolPermissions): string | null {
  if (item.type === 'fileChange') return 'a patch'
  if (item.type === 'commandExecution') return actsByItself.has(item['source']) ? 'a command' : null
  const call = item.type === 'mcpToolCall' ? mcpItem.safeParse(item) : null
  if (!call?.success || onlyLists.has(call.data.tool)) return null
  const { server, tool, status } = call.data
  // One that failed was refused, or is about a server or a tool that does not exist.
  if (status === 'failed') return null
  const named = mcpCall(server, tool, call.data.arguments)
  const judged = { ...named, inputs: inputsOf(named), paths: [] }
  return decide(permissions, nowhere, judged).decision === 'allow' ? null : named.name
}

/** A command that failed was made, too; one that was refused has no exit code. */
export const wasMade = (item: Item): boolean => item['status'] === 'completed' || typeof item['exitCode'] === 'number'

/** codex never asks before it reads a resource of an MCP server, so it is stopped when it begins. */
export function readsResource(item: Item): boolean {
  const call = item.type === 'mcpToolCall' ? mcpItem.safeParse(item) : null
  return call?.success === true && call.data.tool === 'read_mcp_resource'
}

/** Not what goes on in a program that runs already. */
const actsByItself = new Set<unknown>(['agent', 'unifiedExecStartup'])
/** They tell what servers offer, as the list of their tools does, which every model is given. */
const onlyLists = new Set(['list_mcp_resources', 'list_mcp_resource_templates'])

/** The rules about tools of servers know no files. */
const nowhere = { cwd: '/', homeDir: '/', realCwd: '/', realPatterns: new Map(), ownFolders: [], svcProgram: null }
