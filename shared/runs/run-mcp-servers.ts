import { z } from 'zod'
import { hasCallChecks } from './call-checks.ts'
import { harnessFactsOf, type HarnessName, type McpTransport } from './harnesses.ts'
import {
  mcpLimits,
  mcpServer,
  mcpServerName,
  type McpLeftOut,
  type McpLeftOutReason,
  type McpServer,
} from './mcp-servers.ts'
import type { ToolPermissions } from './spec.ts'

/** The parts of an agent, or of a run's spec, that decide which servers it is given. */
export interface McpTaker {
  harness: HarnessName
  protocol?: string | null | undefined
  permissions: ToolPermissions
}

/** The servers of a workspace that a run gets, and the others with the reason, in the workspace's order. */
export function mcpServersFor(
  stored: Readonly<Record<string, unknown>> | null,
  taker: McpTaker,
): { given: Record<string, McpServer>; leftOut: McpLeftOut[] } {
  const given: Record<string, McpServer> = {}
  const leftOut: McpLeftOut[] = []
  const taken = new Set<string>()
  let chars = 0
  for (const [name, sent] of Object.entries(stored ?? {})) {
    const read = readServer(name, sent, taker)
    const size = typeof read === 'string' ? 0 : JSON.stringify([name, read]).length
    const reason = typeof read === 'string' ? read : noRoom(name, { taken, chars: chars + size })
    if (typeof read === 'string' || reason !== null) {
      leftOut.push({ name, reason: reason! })
      continue
    }
    given[name] = read
    taken.add(ruleNameOf(name))
    chars += size
  }
  return { given, leftOut }
}

/** Joins the servers that a run may be given, by name: of several that rules could not tell apart, those of the first list. */
export function joinedServers(
  ...lists: readonly (Readonly<Record<string, unknown>> | null)[]
): Readonly<Record<string, unknown>> {
  const taken = new Set<string>()
  const all: [string, unknown][] = []
  for (const list of lists) {
    const added = Object.entries(list ?? {}).filter(([name]) => !taken.has(ruleNameOf(name)))
    all.push(...added)
    for (const [name] of added) taken.add(ruleNameOf(name))
  }
  return Object.fromEntries(all)
}

/** Rules do not tell upper from lower case, and some programs write `_` for `-`. */
export const ruleNameOf = (name: string) => name.toLowerCase().replaceAll('-', '_')

function readServer(name: string, sent: unknown, { harness, protocol, permissions }: McpTaker) {
  const { mcpTransports, takesMcpUnasked } = harnessFactsOf({ harness, protocol })
  if (mcpTransports.length === 0) return 'harness'
  if (!takesMcpUnasked && !hasCallChecks({ permissions })) return 'unasked'
  if (!mcpServerName.test(name)) return 'name'
  if (isSwitchedOff(sent)) return 'disabled'
  const read = mcpServer.safeParse(withMcpType(sent))
  if (!read.success) return 'unreadable'
  return mcpTransports.includes(read.data.type) ? read.data : 'transport'
}

const switches = z.object({ disabled: z.literal(true) }).or(z.object({ enabled: z.literal(false) }))
export const isSwitchedOff = (sent: unknown): boolean => switches.safeParse(sent).success

function noRoom(
  name: string,
  { taken, chars }: { taken: ReadonlySet<string>; chars: number },
): McpLeftOutReason | null {
  if (taken.has(ruleNameOf(name))) return 'ambiguous'
  if (taken.size >= mcpLimits.servers) return 'too_many'
  return chars > mcpLimits.totalChars ? 'too_large' : null
}

const otherTypes: Readonly<Record<string, McpTransport>> = { 'streamable-http': 'http', streamableHttp: 'http' }

/** Adds the type that other programs leave out, and replaces their two other words for one. */
export function withMcpType(sent: unknown): unknown {
  if (typeof sent !== 'object' || sent === null) return sent
  const { type, url } = sent as { type?: unknown; url?: unknown }
  if (type === undefined || type === null) return { ...sent, type: url === undefined ? 'stdio' : 'http' }
  return typeof type === 'string' && Object.hasOwn(otherTypes, type) ? { ...sent, type: otherTypes[type] } : sent
}
