import { z } from 'zod'
import { pluginLimits, type NotUsed, type PluginFormat } from '../../../../shared/api/plugin-fields.ts'
import { isSwitchedOff, ruleNameOf, withMcpType } from '../../../../shared/runs/run-mcp-servers.ts'
import { bundlePathFlaw } from '../../../../shared/lib/bundle-path.ts'
import { mcpServer, type McpServer } from '../../../../shared/runs/mcp-servers.ts'
import { mapTexts, pluginFolder } from '../../../../shared/runs/plugin-files.ts'
import { notUsedOf } from './manifest.ts'

// The MCP servers that a plugin names, and which of them runs can have. Pure.

export interface PluginServer {
  nameInPlugin: string
  /** The server as runs get it. The folder of the plugin is named `${PLUGIN_ROOT}` in a program of its own until its files are stored. */
  server: McpServer
}

export interface ServersReading {
  servers: PluginServer[]
  notUsed: NotUsed[]
}

/** Reads the servers in the order of the file. `file`: the name that is told when there is nothing to read in it. */
export function readServers(
  value: Readonly<Record<string, unknown>> | null,
  { file, format }: { file: string; format: PluginFormat },
): ServersReading {
  const named = serversIn(value, format)
  if (named === null) {
    const message = 'It is no JSON with an object `mcpServers`, or is longer than svc reads.'
    return { servers: [], notUsed: [notUsedOf('mcp_server', file, 'invalid_server', message)] }
  }
  const servers: PluginServer[] = []
  const notUsed: NotUsed[] = []
  for (const [name, sent] of Object.entries(named)) {
    const read = readServer(name, sent)
    if (!('server' in read)) notUsed.push(notUsedOf('mcp_server', name, read.reason, read.message))
    else if (servers.length < pluginLimits.servers) servers.push({ nameInPlugin: name, server: read.server })
    else notUsed.push(notUsedOf('mcp_server', name, 'too_much', `svc takes ${pluginLimits.servers} of a plugin.`))
  }
  return { servers, notUsed }
}

/** Claude's form may leave out the key around them. */
function serversIn(
  value: Readonly<Record<string, unknown>> | null,
  format: PluginFormat,
): Readonly<Record<string, unknown>> | null {
  const named = format === 'claude_plugin' && value?.['mcpServers'] === undefined ? value : value?.['mcpServers']
  const read = z.record(z.string(), z.unknown()).safeParse(named)
  return read.success ? (named as Record<string, unknown>) : null
}

type ServerReading = { server: McpServer } | { reason: NotUsed['reason']; message: string }
type Program = McpServer & { type: 'stdio' }
const refused = (reason: NotUsed['reason'], message: string): ServerReading => ({ reason, message })

function readServer(name: string, sent: unknown): ServerReading {
  if (!/^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/.test(name))
    return refused('invalid_name', 'A name has up to 64 letters, digits, blanks, ., _ and -.')
  const read = mcpServer.safeParse(withMcpType(sent))
  if (!read.success)
    return refused('invalid_server', 'It is neither {command, args, env} nor {type: "http" or "sse", url, headers}.')
  if (isSwitchedOff(sent)) return refused('not_supported', 'It is switched off in the plugin.')
  const server = ownFields(read.data)
  const wrong = textsOf(server)
    .map((text) => variableFlaw(text, server))
    .find((flaw) => flaw !== null)
  if (wrong !== undefined) return wrong
  return server.type === 'stdio' ? (programFlaw(server, sent) ?? { server }) : { server }
}

/**
 * A connection is chosen by people of the workspace, who are asked whether they see it; never by a plugin. Both forms have a name for the
 * folder of the plugin, of which one is kept.
 */
function ownFields(server: McpServer): McpServer {
  if (server.type === 'stdio') return mapTexts(server, (text) => text.replaceAll('${CLAUDE_PLUGIN_ROOT}', root))
  return { type: server.type, url: server.url, ...(server.headers && { headers: server.headers }) }
}

function textsOf(server: McpServer): string[] {
  if (server.type !== 'stdio') return [server.url, ...Object.values(server.headers ?? {})]
  return [server.command, ...server.args, ...Object.values(server.env ?? {})]
}

const root = '${PLUGIN_ROOT}'
export const needsRoot = ({ server }: PluginServer): boolean =>
  server.type === 'stdio' && textsOf(server).some((text) => text.includes(root))

/** The server with the files of its plugin, which have this hash. Its program finds them by the variables that it knows, too. */
export function withRoot(brought: PluginServer, bundleHash: string): PluginServer {
  const { nameInPlugin, server } = brought
  if (server.type !== 'stdio' || !needsRoot(brought)) return brought
  const env = { ...server.env, PLUGIN_ROOT: root, CLAUDE_PLUGIN_ROOT: root }
  const folder = pluginFolder(bundleHash)
  return { nameInPlugin, server: mapTexts({ ...server, env }, (text) => text.replaceAll(root, folder)) }
}

const needsFiles =
  'It needs a file or a folder that svc does not bring. Programs of the plugin are named by ${PLUGIN_ROOT}/ and their path.'

/** The variables of a run that are svc's own hold its token; a stranger's server is not given them. */
function variableFlaw(text: string, { type }: McpServer): ServerReading | null {
  const others = type === 'stdio' ? text.replaceAll(root, '') : text
  for (const [, name = ''] of others.matchAll(/\$\{([^}:]*)/g)) {
    if (/^(?:CLAUDE_)?PLUGIN_/i.test(name)) return refused('needs_files', needsFiles)
    if (/^(?:SVC|CLAUDE)_/i.test(name)) return refused('own_variable', `It names the variable ${name.slice(0, 64)}.`)
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,199}$/.test(name))
      return refused('invalid_server', 'It names a variable that a run has not.')
  }
  return null
}

const ownPrograms: ReadonlySet<string> = new Set(['svc', 'svc-device', 'svc-server'])

/** A path that is not the plugin's is looked for in the folder of the run, where somebody else's program may have its name. */
function programFlaw({ command, args, env }: Program, sent: unknown): ServerReading | null {
  const isOfPlugin = command.startsWith(`${root}/`) && bundlePathFlaw(command.slice(root.length + 1)) === null
  if (!isOfPlugin && (/[/\\]/.test(command) || command.includes(root))) return refused('needs_files', needsFiles)
  if (args.some((arg) => /^\.{1,2}[/\\]/.test(arg))) return refused('needs_files', needsFiles)
  if (typeof sent === 'object' && sent !== null && 'cwd' in sent) return refused('needs_files', needsFiles)
  if (!isOfPlugin && !/^[A-Za-z0-9][\w.+@-]*$/.test(command))
    return refused('invalid_server', 'Its command is not the name of a program.')
  if (ownPrograms.has(command.toLowerCase())) return refused('own_program', 'Its command is a program of svc.')
  const own = Object.keys(env ?? {}).find((name) => /^(?:SVC|CLAUDE|PLUGIN)_/i.test(name))
  return own === undefined ? null : refused('own_variable', `It sets the variable ${own.slice(0, 64)}.`)
}

const nameChars = 64
const plain = (name: string): string => name.replaceAll(/[^A-Za-z0-9]+/g, '-').replaceAll(/^-|-$/g, '')

/**
 * The name of a plugin's server in its workspace. It begins with `plugin-` and the name of the plugin, and with a number behind it where
 * another server has it: none of a plugin ever takes the place of another one. `taken`: names as rules know them.
 */
export function nameOfServer(plugin: string, server: string, taken: ReadonlySet<string>): string {
  const whole = `plugin-${plain(plugin)}-${plain(server)}`
  for (let number = 1; ; number++) {
    const end = number === 1 ? '' : `-${number}`
    const name = whole.slice(0, nameChars - end.length).replace(/-$/, '') + end
    if (!taken.has(ruleNameOf(name))) return name
  }
}
