import type { Command } from './command.ts'
import { flag, local, yes } from './local-command.ts'
import { yesFlag } from './command.ts'

/** Commands about this copy of svc: how it gets onto a machine, and from it. */
export const copyCommands: readonly Command[] = [
  local({
    name: 'install',
    summary: 'Put this unpacked copy of svc on this machine, beside earlier ones, and make it the one that runs',
    description:
      'Without root it goes to ~/.local/opt/svc, with the names of the programs in ~/.local/bin; as root to /opt/svc and /usr/local/bin. A device manager that runs from there is restarted; its runs go on.',
    example: 'svc install',
    flags: [
      flag('prefix', 'Folder of the versions.'),
      flag('bin', 'Folder of the names of the programs.'),
      flag('without-links', 'Make no names of the programs.', yes),
    ],
  }),
  local({
    name: 'upgrade',
    summary: 'Install a release beside this one, once its signature is verified, and make it the one that runs',
    description:
      'SOURCE is the folder of a release, a tarball in it, or the address of it. Live runs go on with the version that started them. Without a valid signature nothing is installed; what was installed by npm, apt or Homebrew is upgraded by them.',
    example: 'svc upgrade https://releases.example.com/svc',
    positionals: [
      {
        name: 'source',
        target: null,
        isOptional: true,
        description: 'The release: a folder, a file in it, or an address. Default: the one that was remembered.',
      },
    ],
    flags: [
      flag('check', 'Only tell whether it is newer than what is installed.', yes),
      flag('rollback', 'Return to the version before.', yes),
      flag('remember', 'Take this source from now on when none is named.', yes),
      flag('key', 'File of the public key (PEM) that releases must be signed by, from now on.'),
      flag('allow-older', 'Also install what is older than what is installed.', yes),
    ],
  }),
  local({
    name: 'uninstall',
    summary: 'Show what of svc is on this machine, and remove it; logins, devices and data stay',
    description:
      'Refused while runs are live or a server runs. With --purge what people made goes, too, once a backup of it lies in the home folder.',
    example: 'svc uninstall',
    flags: [flag('purge', 'Remove logins, the device, its spool and the data of a server, too.', yes), yesFlag],
  }),
]
