// Names of files and environment variables by which the three programs find each other on one machine.

/**
 * The names of the applications in the platform's usual folders: one for the login and the server, one for the device.
 */
export const appNames = { svc: 'svc', device: 'svc-device' } as const

/** The variables that name folders. Without one, the platform's usual folder is used (`config`, or `data` for the other two). */
export const placeVariables = {
  config: 'SVC_CONFIG_DIR',
  /** The device: identity, token, journal, spool, logs. */
  state: 'SVC_STATE_DIR',
  /** The server: database, files, keys. */
  data: 'SVC_DATA_DIR',
} as const

export const configFiles = { login: 'login.json', settings: 'settings.json' } as const

export const stateFiles = {
  identity: 'identity.json',
  token: 'device-token',
  /** The device that this machine was before it was disconnected: `{ publicId, server }`. */
  previous: 'previous-device.json',
  /** The daemon writes this file when it is ready, and removes it when it ends. */
  daemon: 'daemon.json',
  /**
   * The reason for which the server no longer takes the device, written by the daemon that ended because of it. Removed when one starts.
   */
  refused: 'refused.json',
  socket: 'daemon.sock',
  logs: 'logs',
  daemonLog: 'logs/daemon.log',
  /** Output of the daemon before its log is open, and when it dies. */
  daemonOut: 'logs/daemon.out',
  spool: 'spool.db',
} as const

/** The longest path, in bytes, at which the system makes a socket. */
const longestSocketPath = (platform: string) => (platform === 'linux' ? 108 : 103)

/** Says why no daemon could listen in this state folder; null: one can. */
export function stateDirTrouble(stateDir: string, platform: string): string | null {
  const socketName = `/${stateFiles.socket}`
  const most = longestSocketPath(platform) - socketName.length
  const bytes = new TextEncoder().encode(stateDir).length
  if (bytes <= most) return null
  return `The state folder ${stateDir} has a path of ${bytes} bytes, and a device manager can listen only in one of at most ${most}. Name a shorter one by ${placeVariables.state}.`
}

export const dataFiles = {
  /** The address of a running server on this machine: `{ url, pid }`. */
  server: 'server.json',
  /** What a server says that launchd keeps running. */
  serverOut: 'server.out',
  /** The login token of the first person. */
  loginToken: 'login-token',
  /** The key that encrypts secrets, unless the environment has it. */
  secretsKey: 'secrets.key',
  /** The folder of the bytes of files, unless the configuration names another place. */
  files: 'files',
  /** The folder of git repositories that are being read; whatever is in it is of no use later. */
  fetches: 'fetches',
  /** A folder for each sandbox that runs, with its token and the socket of its broker. */
  sandboxes: 'sandboxes',
} as const

/** The variables in the environment of a harness, so that `svc` inside a run acts as the agent. */
export const runVariables = { apiUrl: 'SVC_API_URL', token: 'SVC_TOKEN', runId: 'SVC_RUN_ID' } as const

/** Login tokens of people begin so; those of runs do not. */
export const loginTokenPrefix = 'svc_pat_'
