/** The facts about the run that the plugin is told. */
export interface PluginSettings {
  /** The agent's lists have a say: code and settings that a repository brings do not count. */
  checksCalls: boolean
  runDir: string
  /** Taken out of the environment once opencode has read them, so that no tool inherits them. */
  privateVariables: readonly string[]
  /** The workspace's, as opencode's settings have them. */
  mcpServers: Readonly<Record<string, object>>
}

/**
 * The plugin by which opencode asks svc, as the text of an ES module that opencode's own runtime loads. opencode's
 * permissions do not see every call (a shell line without a command, such as `> file`, and tools of plugins run unasked),
 * but its hook `tool.execute.before` stands before every tool, also in subagents. The plugin writes lines to standard
 * output and reads the answers from standard input, where no tool can answer for svc:
 *
 *     {"svc":"ready",...}            once it is in place; no prompt is sent before that
 *     {"svc":"failed",...}           it cannot be
 *     {"svc":"call","id":...}        a tool call, which waits for {"id":...,"allow":...}; a refusal is its error
 *     {"svc":"turn","id":...}        a request to the model, likewise; one that is not answered is never made
 *     {"svc":"retry","waitMs":...}   the provider refused, and it is tried again after that time, `until` in ms since 1970
 *
 * Without standard input nobody decides any more: opencode exits, so a call that waits is never made. There, and on a
 * signal, the plugin first aborts what goes on: opencode alone would leave its tools alive, which have sessions of their own.
 *
 * It runs in opencode's process and can be given no clock of ours, so it reads that of the machine.
 *
 * opencode 1.18.33 imports the plugins of a repository whatever OPENCODE_DISABLE_PROJECT_CONFIG says. Where the lists have
 * a say, the plugin therefore refuses to load any module from a file that is neither svc's nor the person's: what lies in
 * opencode's own folder of settings, and the packages that their settings name.
 */
export const pluginText = (settings: PluginSettings): string =>
  `const settings = ${JSON.stringify(settings)}\n${source}`

const source = String.raw`
import { existsSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

for (const name of settings.privateVariables) delete process.env[name]

const waiting = new Map()
let asked = 0
const tell = (line) => process.stdout.write(JSON.stringify(line) + '\n')
const ask = (line) =>
  new Promise((resolve) => {
    const id = String(++asked)
    waiting.set(id, resolve)
    tell({ ...line, id })
  })
createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { id, ...answer } = JSON.parse(line)
    waiting.get(id)?.(answer)
    waiting.delete(id)
  })
  .on('close', () => leave(0))

/** Aborts what goes on, which ends the tools in their own sessions, and exits. */
const busy = new Map()
let isLeaving = false
function leave(code) {
  if (isLeaving) return
  isLeaving = true
  const aborts = [...busy].map(([id, client]) => client.session.abort({ path: { id } }))
  const late = new Promise((resolve) => setTimeout(resolve, 2_000))
  Promise.race([Promise.allSettled(aborts), late]).finally(() => process.exit(code))
}
process.once('SIGINT', () => leave(130)).once('SIGTERM', () => leave(143))

const { env } = process
const configHome = join(env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'opencode')
const cacheHome = join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'opencode')
const realOr = (path) => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/** The folders from which modules may be loaded: svc's, and those of the person. */
function trustedFolders(config) {
  const plugins = (config.plugin ?? []).map((each) => (Array.isArray(each) ? each[0] : each))
  const packages = [...plugins, ...Object.values(config.provider ?? {}).map((each) => each?.npm)]
  const isFile = (each) => each.startsWith('file:')
  const named = packages.filter((each) => typeof each === 'string')
  return [
    settings.runDir,
    configHome,
    join(homedir(), '.opencode'),
    ...(env.OPENCODE_CONFIG_DIR ? [env.OPENCODE_CONFIG_DIR] : []),
    ...named.filter(isFile).map((each) => dirname(fileURLToPath(each))),
    ...named
      .filter((each) => !isFile(each))
      .flatMap((each) => [each, each + '@latest'].map((name) => join(cacheHome, 'packages', name))),
  ]
}

function refuseOtherModules(config) {
  const folders = trustedFolders(config).flatMap((folder) => [folder, realOr(folder)])
  const escaped = ['/$bunfs', ...new Set(folders)].map((each) => each.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  const refused = 'throw new Error("svc: this module is not loaded, since it is neither svc\'s nor the person\'s")'
  Bun.plugin({
    name: 'svc',
    setup(build) {
      const filter = new RegExp('^(?!(?:' + escaped.join('|') + ')/)/')
      build.onLoad({ filter }, () => ({ contents: refused, loader: 'js' }))
    },
  })
}

/** Finds the repository's instructions for agents, which opencode does not read where the project's settings do not count. They are words. */
function instructionsAround(directory, worktree) {
  for (const name of ['AGENTS.md', 'CLAUDE.md', 'CONTEXT.md']) {
    const found = []
    for (let at = directory; ; at = dirname(at)) {
      if (existsSync(join(at, name))) found.push(join(at, name))
      if (at === worktree || at === dirname(at)) break
    }
    if (found.length > 0) return found
  }
  return []
}

export const Svc = async ({ client, directory, worktree }) => {
  const retried = new Set()
  return {
    async config(config) {
      try {
        if (settings.checksCalls) {
          refuseOtherModules(config)
          config.instructions = [...(config.instructions ?? []), ...instructionsAround(directory, worktree)]
        }
      } catch (error) {
        return tell({ svc: 'failed', message: String(error) })
      }
      // Before opencode reads them, which it does when it needs them first.
      config.mcp = { ...config.mcp, ...settings.mcpServers }
      tell({ svc: 'ready', directory, servers: Object.keys(config.mcp ?? {}) })
    },
    async event({ event }) {
      const { sessionID, status } = event.properties ?? {}
      if (event.type !== 'session.status') return
      if (status.type === 'idle') busy.delete(sessionID)
      else busy.set(sessionID, client)
      if (status.type !== 'retry') return
      retried.add(sessionID)
      const until = Math.round(status.next)
      tell({ svc: 'retry', message: String(status.message), until, waitMs: Math.max(0, until - Date.now()) })
    },
    async 'tool.execute.before'({ tool, sessionID, callID }, { args }) {
      const { allow, message } = await ask({ svc: 'call', tool, sessionID, callID, args })
      if (allow !== true) throw new Error(String(message))
    },
    async 'chat.params'({ sessionID, agent, model, provider }) {
      const isRetry = retried.delete(sessionID)
      const isPublic = provider?.options?.apiKey === 'public'
      await ask({ svc: 'turn', sessionID, agent, isRetry, model: model?.providerID + '/' + model?.id, isPublic })
    },
  }
}
`
