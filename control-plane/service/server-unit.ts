import { argumentInUnit, programInUnit, variableInUnit } from '../../shared/lib/unit-words.ts'

export const unitName = 'svc-server.service'

/** What systemd is to start, and as whom. */
export interface ServerUnit {
  node: string
  main: string
  path: string
  dataDir: string
  /** Settings of the operator, which are theirs: written once, and read by systemd at each start. */
  environmentFile: string
  /** The account of a system service; null: a service of the person who installs it. */
  user: string | null
}

/** The time of a stop: that in which the server leaves its devices and its requests, and some more (docs/operations.md). */
export const stopSeconds = 60

/**
 * The text of the unit. `RestartPreventExitStatus=78`: no start mends settings that cannot be used. `StartLimitIntervalSec=0`: a
 * database that is away for an hour is waited for.
 */
export function serverUnitText(unit: ServerUnit): string {
  const { node, main, path, dataDir, environmentFile, user } = unit
  const command = [programInUnit(node), ...['--disable-warning=ExperimentalWarning', main, 'start'].map(argumentInUnit)]
  return `# Written by \`svc-server install-service\`, which writes it anew; settings belong into ${environmentFile},
# and what else is yours into a drop-in (systemctl${user === null ? ' --user' : ''} edit svc-server).
[Unit]
Description=svc control plane
Wants=network-online.target
After=network-online.target postgresql.service docker.service
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${command.join(' ')}
Environment=${variableInUnit('PATH', path)}
Environment=${variableInUnit('SVC_DATA_DIR', dataDir)}
EnvironmentFile=-${environmentFile.replaceAll('%', '%%')}
UMask=0077
Restart=always
RestartSec=5
RestartPreventExitStatus=78
KillMode=mixed
TimeoutStopSec=${stopSeconds}
LimitNOFILE=65536
NoNewPrivileges=yes
${user === null ? '' : ofSystem(user, `${node}${main}`)}
[Install]
WantedBy=${user === null ? 'default' : 'multi-user'}.target
`
}

/**
 * What the server can bear: it writes below its data folder alone and asks other servers, and Node makes code as it runs, so that memory
 * may be both written and executed. The home folders are hidden unless the program lies in one.
 */
function ofSystem(user: string, programs: string): string {
  const isInHome = /(?:^|\/)(?:home|root)\//.test(programs)
  return `User=${user}
StateDirectory=svc
StateDirectoryMode=0700
ProtectSystem=strict
ProtectHome=${isInHome ? 'read-only' : 'yes'}
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectControlGroups=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
CapabilityBoundingSet=
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
`
}

/** What a new file of settings says. */
export const environmentText = `# Settings of svc-server, one NAME=value a line, read at each start (docs/operations.md).
# SVC_PUBLIC_URL=https://svc.example.com
# SVC_TRUSTED_PROXIES=1
# SVC_DATABASE_URL=postgres://svc:PASSWORD@127.0.0.1/svc
`
