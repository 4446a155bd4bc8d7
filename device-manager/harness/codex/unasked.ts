import { inputsOf } from '../../../shared/permissions/call-inputs.ts'
import { decide } from '../../../shared/permissions/decide.ts'
import type { ToolPermissions } from '../../../shared/runs/spec.ts'
import { mcpCall } from './items.ts'
import { mcpItem, type Item } from './wire.ts'

/** The calls that were asked: by their id or, as codex gives none for those of MCP servers, by their name. */
export class AskedCalls {
  readonly #left = new Map<string, number>()

  note(key: string, isName: boolean): void {
    this.#left.set(key, isName ? (this.#left.get(key) ?? 0) + 1 : 1)
  }
  /** Whether it was asked; of a name, once for each time. */
  take(key: string): boolean {
    const left = this.#left.get(key) ?? 0
    if (left > 1) this.#left.set(key, left - 1)
    else this.#left.delete(key)
    return left > 0
  }
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
