import {
  argumentInUnit,
  isProgramOfUnit,
  programInUnit,
  valuesInUnit,
  variableInUnit,
  wordsInUnit,
} from '../../shared/lib/unit-words.ts'
import { ServiceError } from './service-error.ts'
import { nodeFlags, restartSeconds, type ServiceDefinition, stopSeconds } from './definition.ts'

/** An installed service, as far as the doctor needs to know it. */
export interface InstalledService {
  node: string
  main: string
  path: string
  stateDir: string
}

/**
 * The unit of systemd: of the person, or of the machine under an account. `KillMode=process`: run hosts are in the unit's control group and must outlive the daemon
 * (docs/adr/0007). `StartLimitIntervalSec=0`: systemd never gives up; a crash loop is slowed by restart-pace.ts.
 */
export function unitText(definition: ServiceDefinition): string {
  const { node, main, env, umask, account } = definition
  if (!isProgramOfUnit(node))
    throw new ServiceError(
      'unusable_path',
      `systemd starts no program in a folder with a quote or backslash in its name: ${node}`,
      'Put a Node elsewhere first on your PATH.',
    )
  const command = [programInUnit(node), ...[...nodeFlags, main, 'run', '--service', 'systemd'].map(argumentInUnit)]
  const edit = account === null ? '--user edit svc-device' : `edit svc-device@${account}`
  return `# Written by \`svc device install-service\`, which writes it anew; settings of your own belong in a drop-in
# (systemctl ${edit}).
${unitOf({
  ofUnit: account === null ? [] : ['Wants=network-online.target', 'After=network-online.target'],
  command: command.join(' '),
  ofService: [
    ...(account === null ? [] : ofAccount(account)),
    ...Object.entries(env).map(([name, value]) => `Environment=${variableInUnit(name, value)}`),
    `UMask=${umask.toString(8).padStart(4, '0')}`,
  ],
  target: account === null ? 'default.target' : 'multi-user.target',
})}`
}

/** The user unit of a package, which all users share. It does nothing for those who have no device. */
export const packagedUnit = (program: string): string =>
  unitOf({
    ofUnit: ['ConditionPathExists=%h/.local/share/svc-device/identity.json'],
    command: `${program} run --service systemd`,
    ofService: [],
    target: 'default.target',
  })

function unitOf(parts: {
  ofUnit: readonly string[]
  command: string
  ofService: readonly string[]
  target: string
}): string {
  const { ofUnit, command, ofService, target } = parts
  return `${[
    '[Unit]',
    'Description=svc device manager',
    'StartLimitIntervalSec=0',
    ...ofUnit,
    '',
    '[Service]',
    'Type=exec',
    `ExecStart=${command}`,
    ...ofService,
    'Restart=always',
    `RestartSec=${restartSeconds.systemd}`,
    'RestartPreventExitStatus=78',
    'KillMode=process',
    `TimeoutStopSec=${stopSeconds}`,
    'OOMPolicy=continue',
    'Delegate=yes',
    'TasksMax=infinity',
    'LimitNOFILE=65536',
    '',
    '[Install]',
    `WantedBy=${target}`,
  ].join('\n')}\n`
}

/**
 * What a device of the machine can bear: nothing that it starts is given privileges, by whatever program, and the system's folders are read alone.
 * `NoNewPrivileges`, which most other walls of systemd bring along, would keep bubblewrap from the AppArmor profile that lets it make namespaces.
 * `PrivateTmp` would be another folder after each restart than that of the runs that go on, and `ProtectHome` would hide what agents work in.
 */
const ofAccount = (account: string): string[] => [`User=${account}`, 'CapabilityBoundingSet=', 'ProtectSystem=full']

/** Reads what `unitText` wrote; null for a unit it did not write. */
export function readUnit(text: string): InstalledService | null {
  const [command] = valuesInUnit(text, 'ExecStart')
  const [node, ...rest] = command === undefined ? [] : wordsInUnit(command)
  const main = rest.map((word) => word.replaceAll('$$', '$')).find((word) => !word.startsWith('--'))
  const env = new Map<string, string>()
  for (const setting of valuesInUnit(text, 'Environment')) {
    const [word = ''] = wordsInUnit(setting)
    const equals = word.indexOf('=')
    if (equals > 0) env.set(word.slice(0, equals), word.slice(equals + 1))
  }
  const path = env.get('PATH')
  const stateDir = env.get('SVC_STATE_DIR')
  if (node === undefined || main === undefined || path === undefined || stateDir === undefined) return null
  return { node, main, path, stateDir }
}
