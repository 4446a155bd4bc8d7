import { serverUnitText } from '../../control-plane/service/server-unit.ts'
import { packagedUnit } from '../../device-manager/service/systemd-unit.ts'
import { modes, tarGz, type Entry } from './archive.ts'
import type { Programs } from './contents.ts'
import { filesWithNode, type NodeFiles } from './tarball.ts'

/** Architectures by their names in Debian. */
export const debianNames = { 'linux-x64': 'amd64', 'linux-arm64': 'arm64' } as const
export type DebianPlatform = keyof typeof debianNames

/**
 * A Debian package. It carries the copy as one archive, which its script installs beside the versions before (`svc install`): dpkg would take
 * the files of the version before away from runs that go on with it (docs/adr/0089).
 */
export async function debianPackageOf(
  all: Programs,
  platform: DebianPlatform,
  node: NodeFiles,
): Promise<{ name: string; bytes: Buffer }> {
  const { version, at } = all.source
  const copy = await tarGz(await filesWithNode(all, platform, node, 'deb'), all.source)
  const files: Entry[] = [
    { path: 'usr/share/svc/copy.tar.gz', mode: modes.file, bytes: copy },
    { path: 'usr/lib/systemd/system/svc-server.service', mode: modes.file, bytes: Buffer.from(serverUnit) },
    { path: 'usr/lib/systemd/user/svc-device.service', mode: modes.file, bytes: Buffer.from(deviceUnit) },
    { path: 'usr/lib/sysusers.d/svc.conf', mode: modes.file, bytes: Buffer.from(account) },
    { path: 'usr/share/doc/svc/copyright', mode: modes.file, bytes: Buffer.from(copyright) },
    ...['svc', 'svc-device', 'svc-server'].map((name) => ({
      path: `usr/bin/${name}`,
      linksTo: `/opt/svc/current/bin/${name}`,
    })),
  ]
  // Deb versions sort a suffix such as `-rc.1` before the version itself when it follows a tilde.
  const debVersion = version.replace('-', '~')
  const bytesOf = (entry: Entry) => ('bytes' in entry ? entry.bytes.length : 0)
  const kilobytes = Math.ceil(files.reduce((sum, entry) => sum + bytesOf(entry), 0) / 1024)
  const control = [
    'Package: svc',
    `Version: ${debVersion}`,
    `Architecture: ${debianNames[platform]}`,
    'Maintainer: the svc project <svc@localhost>',
    `Installed-Size: ${kilobytes}`,
    'Depends: libc6 (>= 2.28), libstdc++6',
    'Recommends: git, ca-certificates, bubblewrap',
    'Section: devel',
    'Priority: optional',
    'Description: run AI coding agents on your own machines',
    ' Control plane (svc-server), device manager (svc-device) and command line tool',
    ' (svc), with their own Node.',
    '',
  ].join('\n')
  const scripts = { postinst: afterInstall, prerm: beforeRemoval, postrm: afterRemoval }
  const controlFiles: Entry[] = [
    { path: 'control', mode: modes.file, bytes: Buffer.from(control) },
    ...Object.entries(scripts).map(([path, text]): Entry => ({ path, mode: modes.program, bytes: Buffer.from(text) })),
  ]
  const bytes = ar(
    [
      { name: 'debian-binary', bytes: Buffer.from('2.0\n') },
      { name: 'control.tar.gz', bytes: await tarGz(controlFiles, all.source) },
      // The copy is packed already.
      { name: 'data.tar.gz', bytes: await tarGz(files, { at, level: 1 }) },
    ],
    at,
  )
  return { name: `svc_${debVersion}_${debianNames[platform]}.deb`, bytes }
}

/** The archive format of deb(5): a header of 60 bytes for each member, which begins at an even byte. */
function ar(members: readonly { name: string; bytes: Buffer }[], at: Date): Buffer {
  const seconds = String(Math.floor(at.getTime() / 1_000))
  const parts = members.flatMap(({ name, bytes }) => [
    Buffer.from(
      `${name.padEnd(16)}${seconds.padEnd(12)}${'0'.padEnd(6)}${'0'.padEnd(6)}${'100644'.padEnd(8)}${String(bytes.length).padEnd(10)}\`\n`,
    ),
    bytes,
    Buffer.alloc(bytes.length % 2, '\n'),
  ])
  return Buffer.concat([Buffer.from('!<arch>\n'), ...parts])
}

/** The one of `svc-server install-service`, without its first lines, which name that command. */
const serverUnit = serverUnitText({
  node: '/opt/svc/current/node/bin/node',
  main: '/opt/svc/current/lib/control-plane/main.js',
  path: '/usr/local/bin:/usr/bin:/bin',
  dataDir: '/var/lib/svc',
  environmentFile: '/etc/svc/server.env',
  user: 'svc',
}).replace(/^(?:#.*\n)+/, '')

const deviceUnit = `# Of all users, where it was not installed by \`svc device install-service\`, which writes one for the user with their PATH.
${packagedUnit('/opt/svc/current/bin/svc-device')}`

const account = 'u svc - "svc control plane" /var/lib/svc\n'

const copyright = `svc is under the MIT licence: /opt/svc/current/LICENSE. Node: /opt/svc/current/node/LICENSE.
Libraries: the LICENSE file in the folder of each, below /opt/svc/current/lib/node_modules.
`

// In the container of a build there is no systemd that runs.
const systemdRuns = '[ -d /run/systemd/system ]'

// What `svc device install-service --system` wrote for devices that start from here.
const ownUnits = "cd /etc/systemd/system 2>/dev/null && grep -ls '^ExecStart=\"/opt/svc/current/' svc-device@*.service"

const afterInstall = `#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
unpacked=$(mktemp -d /opt/.svc-copy-XXXXXX 2>/dev/null || { mkdir -p /opt && mktemp -d /opt/.svc-copy-XXXXXX; })
trap 'rm -rf "$unpacked"' EXIT
tar -xzf /usr/share/svc/copy.tar.gz -C "$unpacked"
chmod 755 "$unpacked"
"$unpacked/bin/svc" install --prefix /opt/svc --without-links
if command -v systemd-sysusers >/dev/null; then
  systemd-sysusers svc.conf
elif ! getent passwd svc >/dev/null; then
  useradd --system --user-group --home-dir /var/lib/svc --shell /usr/sbin/nologin svc
fi
if ${systemdRuns}; then
  systemctl daemon-reload
  # A service that does not come back says so itself; the package is installed all the same.
  systemctl try-restart svc-server.service 'svc-device@*.service' || true
fi
`

const beforeRemoval = `#!/bin/sh
set -e
[ "$1" = remove ] || exit 0
if ${systemdRuns}; then
  systemctl disable --now svc-server.service || true
fi
for unit in $(${ownUnits}); do
  if ${systemdRuns}; then
    systemctl disable --now "$unit" || true
    # Runs outlive the device manager, and not their programs.
    systemctl kill --kill-who=all "$unit" 2>/dev/null || true
  fi
  rm -f "/etc/systemd/system/$unit"
done
`

const afterRemoval = `#!/bin/sh
set -e
case $1 in
  remove) rm -rf /opt/svc ;;
  purge)
    rm -rf /opt/svc
    # What people made is theirs to remove.
    [ ! -e /var/lib/svc ] || echo 'svc: /var/lib/svc and /etc/svc stay, with the data and the settings of the server.'
    ;;
esac
if ${systemdRuns}; then systemctl daemon-reload; fi
`
