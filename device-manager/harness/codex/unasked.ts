import { createHash } from 'node:crypto'
import { inputsOf } from '../../../shared/permissions/call-inputs.ts'
import { decide } from '../../../shared/permissions/decide.ts'
import type { ToolPermissions } from '../../../shared/runs/spec.ts'
import type { ToolAsk } from '../adapter.ts'
import type { ApprovalStep } from './approvals.ts'
import { mcpCall } from './items.ts'
import { mcpItem, type Item } from './wire.ts'

interface AskedCall {
  /** Digests of what each question showed of the call, which may be megabytes. */
  shown: Set<string>
  /** How often it may be made, and how often it may not or is not answered. */
  allowed: number
  held: number
}

/**
 * The calls that were asked, and what became of each: by their id or, as codex gives none for those of MCP servers, by their name.
 *
 *     asked: held -- the answer is yes -> allowed -- the call ends -> forgotten
 */
export class AskedCalls {
  readonly #calls = new Map<string, AskedCall>()
  readonly #keys = new Map<string, string>()

  /** Notes what is asked about one call, and returns the questions with the id of the call in the run. */
  noteAll({ asks, shown = '' }: ApprovalStep, callIdOf: (itemId: string) => string): ToolAsk[] | undefined {
    const named = asks?.map((ask) => ({ ...ask, toolCallId: ask.toolCallId && callIdOf(ask.toolCallId) }))
    const [first] = named ?? []
    if (named === undefined || first === undefined) return named
    const { toolCallId, name } = first
    this.#note(toolCallId ?? name, { askIds: named.map(({ askId }) => askId), isName: toolCallId === null, shown })
    return named
  }

  /** The answer to the last of the questions counts for all. `shown`: see `shownOf`. */
  #note(key: string, { askIds, isName, shown }: { askIds: readonly string[]; isName: boolean; shown: string }): void {
    for (const askId of askIds) this.#keys.set(askId, key)
    const known = this.#calls.get(key) ?? { shown: new Set<string>(), allowed: 0, held: 0 }
    known.shown.add(digestOf(shown))
    known.held = isName ? known.held + 1 : 1
    this.#calls.set(key, known)
  }

  /** `isAllowed`: null while other questions about the call are open. */
  answered(askId: string, isAllowed: boolean | null): void {
    const call = this.#calls.get(this.#keys.get(askId) ?? '')
    this.#keys.delete(askId)
    if (isAllowed !== true || call === undefined) return
    call.allowed++
    call.held--
  }

  /** Whether the call that has ended was asked and, if it was made, allowed as it was made; null: it was never asked. */
  take(key: string, { shown, isMade }: { shown: string; isMade: boolean }): boolean | null {
    const call = this.#calls.get(key)
    if (call === undefined) return null
    const isGood = !isMade || (call.allowed > 0 && call.shown.has(digestOf(shown)))
    if (call.allowed > 0 && (isMade || call.held === 0)) call.allowed--
    else call.held--
    if (call.allowed + call.held <= 0) this.#calls.delete(key)
    return isGood
  }
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64')

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
