import { isAbsolute, join } from 'node:path'
import envPaths from 'env-paths'
import { z } from 'zod'
import { appNames } from '../../shared/lib/places.ts'
import { logLevels, type LogLevel } from '../log/log.ts'

/** The only reader of the daemon's environment. */
const count = (fallback: number, max = Number.MAX_SAFE_INTEGER) =>
  z.coerce.number().int().min(1).max(max).default(fallback)
const environment = z.object({
  SVC_STATE_DIR: z.string().min(1).optional(),
  SVC_CONFIG_DIR: z.string().min(1).optional(),
  SVC_DATA_DIR: z.string().min(1).optional(),
  SVC_LOG_LEVEL: z.enum(Object.keys(logLevels) as [LogLevel]).default('info'),
  SHELL: z.string().optional(),
  HOME: z.string().optional(),
  TMUX_TMPDIR: z.string().optional(),
  SCREENDIR: z.string().optional(),
  ZELLIJ_SOCKET_DIR: z.string().optional(),
  SVC_SPOOL_PAGES: count(65_536),
  SVC_SPOOL_UNSENT_BYTES: count(64 * 1024 * 1024),
  SVC_RECONNECT_MIN_MS: count(1_000),
  SVC_RECONNECT_MAX_MS: count(60_000),
  SVC_PING_MS: count(20_000),
  SVC_DEAD_MS: count(45_000),
  SVC_HOST_SILENT_MS: count(30_000),
})

export interface DaemonConfig {
  stateDir: string
  /** Folders of svc that are not the daemon's: the login, and a server on this machine. Hidden from runs. */
  otherDirs: readonly string[]
  /** Folders in which this user's terminal multiplexers keep their sockets. Hidden from runs. */
  doors: readonly string[]
  logLevel: LogLevel
  shell: string
  homeDir: string
  spoolPages: number
  unsentBytes: number
  reconnectMinMs: number
  reconnectMaxMs: number
  pingMs: number
  deadMs: number
  /** Time in which a run host that lives must answer when something waits for it. */
  hostSilentMs: number
}

export class ConfigError extends Error {}

export function readConfig(
  env: Record<string, string | undefined>,
  system: { homeDir: string; shell: string | null },
): DaemonConfig {
  const parsed = environment.safeParse(env)
  if (!parsed.success) {
    const lines = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
    throw new ConfigError(`The configuration cannot be used.\n${lines.join('\n')}`)
  }
  const value = parsed.data
  const usual = envPaths(appNames.svc, { suffix: '' })
  return {
    stateDir: value.SVC_STATE_DIR ?? envPaths(appNames.device, { suffix: '' }).data,
    otherDirs: [value.SVC_CONFIG_DIR ?? usual.config, value.SVC_DATA_DIR ?? usual.data],
    doors: doorsOf(value),
    logLevel: value.SVC_LOG_LEVEL,
    shell: value.SHELL || system.shell || '/bin/sh',
    homeDir: value.HOME ?? system.homeDir,
    spoolPages: value.SVC_SPOOL_PAGES,
    unsentBytes: value.SVC_SPOOL_UNSENT_BYTES,
    reconnectMinMs: value.SVC_RECONNECT_MIN_MS,
    reconnectMaxMs: value.SVC_RECONNECT_MAX_MS,
    pingMs: value.SVC_PING_MS,
    deadMs: value.SVC_DEAD_MS,
    hostSilentMs: value.SVC_HOST_SILENT_MS,
  }
}

/** tmux makes a folder of its own in the one that its variable names. */
function doorsOf({ TMUX_TMPDIR, SCREENDIR, ZELLIJ_SOCKET_DIR }: z.infer<typeof environment>): string[] {
  const ofTmux = TMUX_TMPDIR === undefined ? undefined : join(TMUX_TMPDIR, `tmux-${process.getuid?.() ?? 0}`)
  return [ofTmux, SCREENDIR, ZELLIJ_SOCKET_DIR].filter(
    (folder) => folder !== undefined && isAbsolute(folder),
  ) as string[]
}
