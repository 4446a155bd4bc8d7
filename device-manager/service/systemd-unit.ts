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
 * The systemd user unit. `KillMode=process`: run hosts are in the unit's control group and must outlive the daemon
 * (docs/adr/0007). `StartLimitIntervalSec=0`: systemd never gives up; a crash loop is slowed by restart-pace.ts.
 */
export function unitText(definition: ServiceDefinition): string {
  const { node, main, env, umask } = definition
  if (!isProgramOfUnit(node))
    throw new ServiceError(
      'unusable_path',
      `systemd starts no program in a folder with a quote or backslash in its name: ${node}`,
      'Put a Node elsewhere first on your PATH.',
    )
  const command = [programInUnit(node), ...[...nodeFlags, main, 'run', '--service', 'systemd'].map(argumentInUnit)]
  return `# Written by \`svc device install-service\`, which writes it anew; settings of your own belong in a drop-in
# (systemctl --user edit svc-device).
[Unit]
Description=svc device manager
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${command.join(' ')}
${Object.entries(env)
  .map(([name, value]) => `Environment=${variableInUnit(name, value)}`)
  .join('\n')}
UMask=${umask.toString(8).padStart(4, '0')}
Restart=always
RestartSec=${restartSeconds.systemd}
RestartPreventExitStatus=78
KillMode=process
TimeoutStopSec=${stopSeconds}
OOMPolicy=continue
Delegate=yes
TasksMax=infinity
LimitNOFILE=65536

[Install]
WantedBy=default.target
`
}

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
