import type { NamedCall } from '../adapter.ts'

/** opencode's own tools, by the names that rules have. */
const names: Readonly<Record<string, string>> = {
  bash: 'Bash',
  read: 'Read',
  write: 'Write',
  edit: 'Edit',
  glob: 'Glob',
  grep: 'Grep',
  list: 'LS',
  webfetch: 'WebFetch',
  websearch: 'WebSearch',
  task: 'Task',
  todowrite: 'TodoWrite',
  todoread: 'TodoRead',
}

/** The tool as which opencode carries out a call that is none: of a tool that it does not have, or without its input. It tells the model so. */
export const noTool = 'invalid'

/** `servers`: the MCP servers, which give their tools names that begin with theirs. */
export interface CallPlace {
  servers: readonly string[]
  directory: string
}

/**
 * The calls as which a call of opencode is judged, all or none: a patch makes files and changes others, and a name that
 * begins as those of two MCP servers may be a tool of either. null: nobody can say what it reaches for.
 */
export function callsOf(tool: string, args: unknown, place: CallPlace): NamedCall[] | null {
  if (tool === 'apply_patch') return patchCalls(args)
  const fields = typeof args === 'object' && args !== null ? (args as Record<string, unknown>) : {}
  // The folder of the run, which is named anyway.
  if (tool === 'bash' && fields['workdir'] === place.directory) {
    const { workdir: _, ...input } = fields
    return [{ name: 'Bash', input }]
  }
  if (tool === 'skill') return [{ name: 'Skill', input: { ...fields, skill: fields['name'] } }]
  const own = Object.hasOwn(names, tool) ? names[tool] : undefined
  if (own !== undefined) return [{ name: own, input: args }]
  const ofServers = place.servers
    .map((server) => server.replaceAll(/[^\w-]/g, '_'))
    .filter((server) => tool.startsWith(`${server}_`) && tool.length > server.length + 1)
    .map((server) => ({ name: `mcp__${server}__${tool.slice(server.length + 1)}`, input: args }))
  return ofServers.length > 0 ? ofServers : [{ name: tool, input: args }]
}

/** Returns what a call is shown as, where it is judged as several. */
export function shownCall(tool: string, args: unknown, place: CallPlace): NamedCall {
  const wanted = tool === noTool && typeof args === 'object' && args !== null ? Object.entries(args) : []
  const name = wanted.find(([key]) => key === 'tool')?.[1]
  if (typeof name === 'string' && name !== '') {
    const input = Object.fromEntries(wanted.filter(([key]) => key !== 'tool'))
    return { name: (Object.hasOwn(names, name) ? names[name] : undefined) ?? name.slice(0, 500), input }
  }
  const calls = callsOf(tool, args, place)
  return calls?.at(-1) ?? { name: tool, input: args }
}

const header = /^\*\*\* (Add File|Update File|Delete File|Move to):(.*)$/

/** Every line that opencode could take for the name of a file counts, wherever it stands. */
function patchCalls(args: unknown): NamedCall[] | null {
  const text = typeof args === 'object' && args !== null && 'patchText' in args ? args.patchText : null
  if (typeof text !== 'string') return null
  const changes = text.split('\n').flatMap((line) => {
    const [, kind, path = ''] = header.exec(line.trim()) ?? []
    return kind === undefined ? [] : [{ file_path: path.trim(), kind }]
  })
  if (changes.length === 0) return null
  const added = changes.filter(({ kind }) => kind === 'Add File')
  const changed = changes.filter(({ kind }) => kind !== 'Add File')
  return [
    ...(added.length > 0 ? [{ name: 'Write', input: { changes: added, diff: text } }] : []),
    ...(changed.length > 0 ? [{ name: 'Edit', input: { changes: changed, diff: text } }] : []),
  ]
}
