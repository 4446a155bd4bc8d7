import { realpathSync } from 'node:fs'
import { delimiter, isAbsolute } from 'node:path'
import type { ServiceProblem } from '../../shared/device/service.ts'
import { isPassingPath, stableMainPath, stableNodePath } from '../../shared/lib/stable-paths.ts'
import { ServiceError } from './service-error.ts'

/** The program that a service manager is told to start, before it is put in its words. */
export interface ServiceDefinition {
  node: string
  main: string
  homeDir: string
  stateDir: string
  logsDir: string
  /** The daemon's output when no journal takes it. */
  outFile: string
  /** Whole environment beside what the service manager sets itself. */
  env: Readonly<Record<string, string>>
  /** Files that agents make are the person's, so they get the mode they would get in the person's shell. */
  umask: number
  /** The account of a service of the machine; null: the service is the person's own. */
  account: string | null
}

/** The time that the daemon may take to end in order; its run hosts go on, so it has little to do. */
export const stopSeconds = 60
/** Pause of the service manager before it starts a daemon that died; see restart-pace.ts for a crash loop. */
export const restartSeconds = { systemd: 5, launchd: 10 } as const
export const nodeFlags = ['--disable-warning=ExperimentalWarning'] as const

/**
 * Settings of the daemon and what says where the folders lie that it hides from runs (setup/config.ts), and certificates:
 * taken over from the shell that installs.
 */
const carried =
  /^(SVC_(CONFIG_DIR|DATA_DIR|LOG_LEVEL|SPOOL_PAGES|SPOOL_UNSENT_BYTES|RECONNECT_MIN_MS|RECONNECT_MAX_MS|PING_MS|DEAD_MS)|XDG_(CONFIG|DATA)_HOME|TMUX_TMPDIR|SCREENDIR|ZELLIJ_SOCKET_DIR)$/
const carriedCertificates = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR']

export interface DefinitionSource {
  env: Readonly<Record<string, string | undefined>>
  execPath: string
  main: string
  homeDir: string
  places: { stateDir: string; bin: string; logs: string; out: string }
  umask: number
  account?: string | null
  /** Instead of that of the account. */
  shell?: string
}

export function defineService(source: DefinitionSource): ServiceDefinition {
  const { env, places } = source
  const kept: Record<string, string> = {
    PATH: servicePath(env['PATH'] ?? '', places.bin).join(delimiter),
    SVC_STATE_DIR: places.stateDir,
    ...(source.shell === undefined ? {} : { SHELL: source.shell }),
  }
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && (carried.test(name) || carriedCertificates.includes(name))) kept[name] = value
  }
  const definition: ServiceDefinition = {
    node: stableNode(source.execPath, env['PATH'] ?? ''),
    main: stableMain(source.main),
    homeDir: source.homeDir,
    stateDir: places.stateDir,
    logsDir: places.logs,
    outFile: places.out,
    env: Object.fromEntries(Object.entries(kept).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    umask: source.umask,
    account: source.account ?? null,
  }
  const texts = [definition.node, definition.main, definition.outFile, ...Object.values(definition.env)]
  for (const text of texts) refuseControlCharacters(text)
  return definition
}

function refuseControlCharacters(text: string): void {
  // oxlint-disable-next-line no-control-regex
  if (!/[\u0000-\u001f\u007f]/.test(text)) return
  throw new ServiceError(
    'unusable_path',
    `A service cannot be given ${JSON.stringify(text)}: it has control characters.`,
    'Move what has this name, or change the variable.',
  )
}

/** Absolute directories, once each. `ownBin` holds the `svc` of runs, which is not to be found outside of one. */
export function servicePath(path: string, ownBin: string): string[] {
  const directories = path.split(delimiter).filter((each) => isAbsolute(each) && each !== ownBin)
  return [...new Set([...directories, '/usr/local/bin', '/usr/bin', '/bin'])]
}

export const stableNode = (execPath: string, path: string): string => stableNodePath(execPath, path, realPathOf)
export const stableMain = (main: string): string => stableMainPath(main, realPathOf)

/** Programs that will not stay where they are; told when the service is installed, and found by the doctor when gone. */
export function pathWarnings({ node, main }: Pick<ServiceDefinition, 'node' | 'main'>): ServiceProblem[] {
  return [
    { what: 'Node', path: node },
    { what: 'svc', path: main },
  ]
    .filter(({ path }) => isPassingPath(path))
    .map(({ what, path }) => ({
      code: 'unstable_path' as const,
      message: `The service starts ${what} as ${path}, which an update of it will remove.`,
      fix: 'After each update of it type: svc device install-service',
    }))
}

export function realPathOf(path: string): string | null {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}
