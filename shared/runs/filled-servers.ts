import type { McpServer, McpServers } from './mcp-servers.ts'

/** A server that a run does without, and why, in words that hold no value. */
export interface ServerLeftOut {
  name: string
  why: string
}

/**
 * The servers with `${NAME}` and `${NAME:-otherwise}` filled in, once: what a variable holds is not read again. A server that
 * names a variable which is not set, or that no program could be given then, is left out.
 */
export function filledServers(
  servers: McpServers,
  env: Readonly<Record<string, string>>,
): { servers: Record<string, McpServer>; leftOut: ServerLeftOut[] } {
  const filled: Record<string, McpServer> = {}
  const leftOut: ServerLeftOut[] = []
  for (const [name, server] of Object.entries(servers)) {
    const unset = new Set<string>()
    const made = filledServer(server, (text) => filledText(text, env, unset))
    const why = unset.size > 0 ? `not set in the run's environment: ${[...unset].join(', ')}` : flawOf(made)
    if (why === null) filled[name] = made
    else leftOut.push({ name, why })
  }
  return { servers: filled, leftOut }
}

const variable = /\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}/g

const filledText = (text: string, env: Readonly<Record<string, string>>, unset: Set<string>): string =>
  text.replaceAll(variable, (all, name: string, otherwise: string | undefined) => {
    const value = (Object.hasOwn(env, name) ? env[name] : undefined) ?? otherwise?.slice(2)
    if (value === undefined) unset.add(name)
    return value ?? all
  })

/** Tells whether something of the text is filled in. */
export const namesVariable = (text: string): boolean => text.search(variable) >= 0

/** Names of the variables that an address and its headers are made of. */
export const serverVariables = (server: McpServer): string[] =>
  server.type === 'stdio'
    ? []
    : [server.url, ...Object.values(server.headers ?? {})].flatMap((text) =>
        [...text.matchAll(variable)].map(([, name]) => name!),
      )

/**
 * Tells whether the broker of a sandbox asks the server for the run. A server that is sent the run's own token is this one, which a
 * sandbox asks by itself.
 */
export const goesThroughBroker = (server: McpServer): server is Extract<McpServer, { type: 'http' | 'sse' }> =>
  server.type !== 'stdio' &&
  (server.connectionId !== undefined || !serverVariables(server).some((name) => name.startsWith('SVC_')))

function filledServer(server: McpServer, fill: (text: string) => string): McpServer {
  const filledValues = (entries: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(entries).map(([name, value]) => [name, fill(value)]))
  if (server.type === 'stdio') {
    const { env } = server
    return {
      type: 'stdio',
      command: fill(server.command),
      args: server.args.map(fill),
      ...(env && { env: filledValues(env) }),
    }
  }
  const { type, headers } = server
  return { type, url: fill(server.url), ...(headers && { headers: filledValues(headers) }) }
}

function flawOf(server: McpServer): string | null {
  if (server.type === 'stdio') return server.command.trim() === '' ? 'its command is empty' : null
  const protocol = URL.canParse(server.url) ? new URL(server.url).protocol : ''
  if (protocol !== 'http:' && protocol !== 'https:') return 'its url is no address of http or https'
  const broken = Object.entries(server.headers ?? {}).find(([, value]) => /[\r\n]/.test(value))
  return broken === undefined ? null : `its header ${broken[0]} holds a line break`
}
