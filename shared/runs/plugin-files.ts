import type { McpServer, McpServers } from './mcp-servers.ts'

// Files of plugins in runs. A program of a plugin names the folder of its plugin by a variable that holds the hash of the plugin's files.
// The device brings these files, gives the run a copy, and fills in its folder. A device that does not know of it goes without the
// server, since no run has such a variable.

const prefix = 'SVC_PLUGIN_'
const variable = /\$\{SVC_PLUGIN_([0-9a-f]{64})\}/g

/** The most plugins of which a run has files. */
export const mostPluginFiles = 50

export const pluginFolder = (bundleHash: string): string => `\${${prefix}${bundleHash}}`

/** The texts of a server that may name it. */
const textsOf = (server: McpServer): string[] =>
  server.type === 'stdio' ? [server.command, ...server.args, ...Object.values(server.env ?? {})] : []

/** The hashes of the files that these servers need. */
export const pluginBundlesOf = (servers: McpServers): string[] =>
  [
    ...new Set(
      Object.values(servers)
        .flatMap(textsOf)
        .flatMap((text) => [...text.matchAll(variable)].map(([, hash]) => hash!)),
    ),
  ].slice(0, mostPluginFiles)

/** The server with these folders filled in, by hash; null: one of them is not there. */
export function withPluginFolders(server: McpServer, folders: ReadonlyMap<string, string>): McpServer | null {
  if (server.type !== 'stdio') return server
  if (textsOf(server).some((text) => [...text.matchAll(variable)].some(([, hash]) => !folders.has(hash!)))) return null
  const fill = (text: string) => text.replaceAll(variable, (_, hash: string) => folders.get(hash)!)
  return mapTexts(server, fill)
}

/** A program with each of its texts changed. */
export const mapTexts = (server: McpServer & { type: 'stdio' }, change: (text: string) => string): McpServer => ({
  type: 'stdio',
  command: change(server.command),
  args: server.args.map(change),
  ...(server.env && {
    env: Object.fromEntries(Object.entries(server.env).map(([name, value]) => [name, change(value)])),
  }),
})
