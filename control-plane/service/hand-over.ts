import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { programUrl } from '../../shared/lib/program-file.ts'
import { unitName } from './server-unit.ts'

// An operator's command is meant for the server that systemd keeps, where it keeps one: for its database, as its account, with its settings.
// The shell in which it is typed names none of them, and it would work on a database that it makes anew.

/** What systemd knows of the service. */
interface ServiceFacts {
  /** Empty: that of the one who keeps it. */
  user: string
  /** Spaces between them, as a drop-in names them. */
  groups: string
  environmentFiles: readonly string[]
  dataDir: string
}

/** These are about the service itself, or need no database. */
const aboutService: ReadonlySet<string> = new Set(['start', 'install-service', 'uninstall-service', 'service-status'])
/** Their file is named from the folder in which they are typed. */
const withFile: ReadonlySet<string> = new Set(['backup', 'restore'])
/** Set for a command that was handed on, whatever the settings of the service say of its data folder: it is not handed on again. */
const mark = 'HANDED_TO_SVC_SERVER'
const namesServer = /^--(?:data-?dir|database-?url)(?:=|$)/i

/** Has the service's account do what was typed; returns its exit status, or null where who typed it does it. */
export function handToService(argv: readonly string[]): number | null {
  if (process.platform !== 'linux' || !isForServer(argv, process.env)) return null
  const scope = process.getuid?.() === 0 ? [] : ['--user']
  const service = factsFrom(shown(scope))
  if (service === null) return null
  process.stderr.write(`svc-server: ${sayWhere(service)}\n`)
  const main = fileURLToPath(programUrl('control-plane'))
  const program = [process.execPath, '--disable-warning=ExperimentalWarning', main, ...absolute(argv)]
  const { status, error } = spawnSync('systemd-run', [...scope, ...lineFor(service, program)], { stdio: 'inherit' })
  if (error !== undefined) process.stderr.write(`systemd-run cannot be started: ${error.message}\n`)
  return status ?? 1
}

const sayWhere = ({ user }: ServiceFacts) =>
  user === '' ? `with the settings of ${unitName}` : `with the settings of ${unitName}, as ${user}`

/** Says whether the command works on the database of a server that neither it nor the environment names. */
export function isForServer(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): boolean {
  const [command = 'start'] = argv
  if (command.startsWith('-') || aboutService.has(command)) return false
  if (argv.some((word) => namesServer.test(word) || word === '--help' || word === '--version')) return false
  return !env[mark] && !env['SVC_DATA_DIR'] && !env['SVC_DATABASE_URL']
}

/** What `systemctl show` says; empty where there is no systemd. */
function shown(scope: readonly string[]): string {
  const properties = 'LoadState,ActiveState,UnitFileState,User,SupplementaryGroups,Environment,EnvironmentFiles'
  const options = { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' }, timeout: 10_000 } as const
  return spawnSync('systemctl', [...scope, 'show', unitName, `--property=${properties}`], options).stdout ?? ''
}

/** Reads what `systemctl show` says; null: there is no such service, it is not used, or `svc-server install-service` did not write it. */
export function factsFrom(text: string): ServiceFacts | null {
  const values = Map.groupBy(text.split('\n'), (line) => line.slice(0, line.indexOf('=')))
  const all = (name: string) => (values.get(name) ?? []).map((line) => line.slice(name.length + 1))
  // One that came with a package and was never used keeps no server.
  const isKept = all('UnitFileState')[0]?.startsWith('enabled') === true || all('ActiveState')[0] === 'active'
  if (all('LoadState')[0] !== 'loaded' || !isKept) return null
  const variables = all('Environment').join(' ')
  const named = [...variables.matchAll(/(?:^|\s)(?:"SVC_DATA_DIR=([^"]*)"|SVC_DATA_DIR=(\S+))/g)].at(-1)
  const dataDir = named?.[1] ?? named?.[2] ?? ''
  if (dataDir === '') return null
  return {
    user: all('User')[0] ?? '',
    groups: all('SupplementaryGroups').join(' ').trim(),
    // Each has in parentheses whether it may be missing.
    environmentFiles: all('EnvironmentFiles').map((file) => file.replace(/ \(ignore_errors=\w+\)$/, '')),
    dataDir,
  }
}

/** The arguments of `systemd-run` that run the program as the service runs. */
export function lineFor(service: ServiceFacts, program: readonly string[]): string[] {
  const { user, groups, environmentFiles, dataDir } = service
  return [
    '--pipe',
    '--wait',
    '--collect',
    '--quiet',
    '--property=UMask=0077',
    ...(user === '' ? [] : [`--uid=${user}`]),
    ...(groups === '' ? [] : [`--property=SupplementaryGroups=${groups}`]),
    ...environmentFiles.map((file) => `--property=EnvironmentFile=-${file}`),
    `--setenv=SVC_DATA_DIR=${dataDir}`,
    `--setenv=${mark}=1`,
    '--',
    // systemd puts the value of a variable where its name stands after `$`; two of them stand for one.
    ...program.map((word) => word.replaceAll('$', '$$$$')),
  ]
}

function absolute(argv: readonly string[]): readonly string[] {
  if (!withFile.has(argv[0] ?? '')) return argv
  return argv.map((word, at) => (at === 0 || word.startsWith('-') ? word : resolve(word)))
}
