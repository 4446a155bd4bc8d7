import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { McpServers } from '../../../shared/runs/mcp-servers.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { HarnessLaunch, LaunchFacts } from '../adapter.ts'
import { HarnessLaunchError } from '../parts/adapter-errors.ts'
import { hasCallChecks } from '../../../shared/runs/call-checks.ts'
import { versionedBase } from '../parts/broker-way.ts'
import { jsonObject } from '../parts/json-lines.ts'
import { pluginText } from './plugin.ts'

const passwordVariable = 'OPENCODE_SERVER_PASSWORD'

/**
 * `opencode serve`, with svc's plugin beside the person's own settings. Where the agent's lists have a say, the settings of
 * the repository do not count, and no formatter or language server runs: both are programs of the repository, started by
 * an edit without being asked.
 */
export function opencodeLaunch(spec: RunSpec, { env, runDir, cwd, mcpServers, skills }: LaunchFacts): HarnessLaunch {
  if (spec.model !== null && !/^[^/]+\/./.test(spec.model)) {
    throw new HarnessLaunchError(
      `opencode names a model as provider/model, such as anthropic/claude-sonnet-4-5; "${spec.model}" has no provider.`,
    )
  }
  const checksCalls = hasCallChecks(spec)
  const plugin = join(runDir, 'svc-plugin.mjs')
  const privateVariables = [passwordVariable, ...Object.keys(installs)]
  return {
    file: 'opencode',
    // 0 takes 4096 first; what it takes is read from what it prints.
    args: ['serve', '--hostname', '127.0.0.1', '--port', '0'],
    env: {
      ...quiet,
      ...installs,
      ...(checksCalls && { OPENCODE_DISABLE_PROJECT_CONFIG: '1' }),
      // It takes its folder from this before it asks the system.
      PWD: cwd,
      OPENCODE_CONFIG_CONTENT: JSON.stringify(
        settingsOf(env, { checksCalls, plugin: pathToFileURL(plugin).href, skills, spec }),
      ),
    },
    io: 'http',
    http: { events: '/event', user: 'opencode', passwordVariable },
    files: [
      {
        path: plugin,
        content: pluginText({ checksCalls, runDir, privateVariables, mcpServers: settingsOfServers(mcpServers) }),
      },
    ],
  }
}

/** No update, no list of models from the network, no language server from there, nothing shared, no unfinished features. */
const quiet = {
  OPENCODE_SERVER_USERNAME: 'opencode',
  // Would leave out svc's plugin, too.
  OPENCODE_PURE: 'false',
  OPENCODE_DISABLE_AUTOUPDATE: '1',
  OPENCODE_DISABLE_MODELS_FETCH: '1',
  OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
  OPENCODE_DISABLE_SHARE: '1',
  OPENCODE_AUTO_SHARE: 'false',
  OPENCODE_EXPERIMENTAL: 'false',
  // Calls MCP tools from a program of the model's, past the hook.
  OPENCODE_EXPERIMENTAL_CODE_MODE: 'false',
  OPENCODE_EXPERIMENTAL_BACKGROUND_SUBAGENTS: 'false',
  OPENCODE_EXPERIMENTAL_NATIVE_LLM: 'false',
}

/** At each start it looks for a package of its own in the person's folder, and waits long where there is no network. */
const installs = { npm_config_fetch_retries: '0', npm_config_fetch_timeout: '30000' }

/** For a server to start, in ms: many are fetched when they start. */
const timeout = 30_000

/** They go into the plugin, not into the variable of the settings: opencode's tools inherit that. */
const settingsOfServers = (servers: McpServers): Record<string, object> =>
  Object.fromEntries(
    Object.entries(servers).map(([name, server]) => {
      if (server.type !== 'stdio') return [name, { timeout, type: 'remote', url: server.url, headers: server.headers }]
      return [name, { timeout, type: 'local', command: [server.command, ...server.args], environment: server.env }]
    }),
  )

/** The person's own settings in this variable stay in force. */
function settingsOf(
  env: Readonly<Record<string, string>>,
  {
    checksCalls,
    plugin,
    skills,
    spec: { brokeredModel },
  }: { checksCalls: boolean; plugin: string; skills: LaunchFacts['skills']; spec: RunSpec },
) {
  const theirs = jsonObject(Buffer.from(env['OPENCODE_CONFIG_CONTENT'] ?? '{}')) ?? {}
  const plugins: unknown[] = Array.isArray(theirs['plugin']) ? theirs['plugin'] : []
  return {
    ...theirs,
    ...(brokeredModel != null && {
      provider: { [brokeredModel.provider]: { options: { baseURL: versionedBase(brokeredModel.provider) } } },
    }),
    ...(skills.length > 0 && { skills: withPaths(theirs['skills'], skills) }),
    // The last one: what another plugin makes of a call's input is what svc judges.
    plugin: [...plugins, plugin],
    share: 'disabled',
    autoupdate: false,
    snapshot: false,
    ...(checksCalls && { formatter: false, lsp: false }),
  }
}

/** Each skill by the folder of its own, so that what was left out stays out. */
function withPaths(theirs: unknown, skills: LaunchFacts['skills']): object {
  const settings = typeof theirs === 'object' && theirs !== null ? theirs : {}
  const paths: unknown[] = 'paths' in settings && Array.isArray(settings.paths) ? settings.paths : []
  return { ...settings, paths: [...paths, ...skills.map(({ folder }) => folder)] }
}
