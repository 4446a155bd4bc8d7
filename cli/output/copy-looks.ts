import { count, flag, ref, say, text, type Looks } from '../../shared/api/looks/look.ts'

/** The looks of what is done with copies of svc on this machine. */
export const copyLooks: Looks = {
  install: {
    columns: [],
    title: say('svc {version} is installed'),
    facts: [
      ['Before', text('before')],
      ['Folder', ref('folder')],
      ['Programs', ref('bin')],
      ['Runs taken up', count('daemon.runs')],
    ],
    next: [
      { say: 'svc login', when: { at: 'bin', is: [true] } },
      // A package: its server is a service of the machine, or stands elsewhere.
      { say: 'systemctl enable --now svc-server', more: { word: 'or', say: 'svc login --server URL' } },
    ],
  },
  upgrade: {
    columns: [],
    title: say('svc {version}'),
    facts: [
      ['Newer', flag('isNewer', 'yes', 'no')],
      ['Changed', flag('changed', 'yes', 'no')],
      ['Before', text('before')],
      ['Folder', ref('folder')],
      ['Runs taken up', count('daemon.runs')],
    ],
  },
  uninstall: {
    columns: [],
    title: say('svc is removed'),
    facts: [
      ['Backup', ref('backup')],
      ['Services', text('units')],
      ['Kept', text('kept')],
    ],
  },
}
