import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ServiceAction, ServiceValue } from '../../../shared/device/service.ts'
import { valuesInUnit } from '../../../shared/lib/unit-words.ts'
import { waitFor } from '../../kit/programs.ts'
import { TestMachine } from './machine.ts'

// A service of the machine for the device of an account, on a systemd of the test. The account is that of whoever runs the test, and root is
// played.

let machine: TestMachine
let unit: string

const isLinux = process.platform === 'linux'
const uid = process.getuid?.() ?? 0

/** What the system's list of users says of `agents`. */
function list(change: { uid?: number; home?: string; shell?: string } = {}): void {
  const gid = process.getgid?.() ?? 0
  const line = ['agents', 'x', change.uid ?? uid, gid, '', change.home ?? machine.home, change.shell ?? '/bin/sh']
  machine.addProgram('getent', `#!/bin/sh\n[ "$2" = agents ] || exit 2\necho '${line.join(':')}'\n`)
}

const byRoot = (action: ServiceAction, account = 'agents') =>
  machine.service(action, {}, { uid: 0, userName: 'root', words: ['--system', '--user', account] })
const byAccount = (action: ServiceAction) => machine.service(action, {}, { userName: 'agents' })

async function done(reply: ReturnType<typeof byRoot>): Promise<ServiceValue<ServiceAction>> {
  const said = await reply
  return said.ok ? said.value : expect.fail(`${said.error.code}: ${said.error.message}`)
}
async function refused(
  reply: ReturnType<typeof byRoot>,
): Promise<{ code: string; message: string; remediation: string }> {
  const said = await reply
  return said.ok ? expect.fail('it was not refused') : said.error
}

describe.runIf(isLinux)('svc-device service --system --user', () => {
  beforeEach(() => {
    machine = new TestMachine()
    unit = join(machine.systemUnits, 'svc-device@agents.service')
    list()
  })
  afterEach(() => machine.close())

  it('runs the device of an account from the start of the machine, which sees it and may restart it, and root alone changes it', async () => {
    machine.enrol()
    const installed = await done(byRoot('install'))
    expect(installed).toMatchObject({ file: unit, changed: true, pid: machine.daemonPid, warnings: [] })
    expect(machine.changes()).toEqual([
      'systemctl daemon-reload',
      'systemctl enable svc-device@agents.service',
      'systemctl stop svc-device@agents.service',
      'systemctl start svc-device@agents.service',
    ])
    const text = readFileSync(unit, 'utf8')
    expect(valuesInUnit(text, 'User')).toEqual(['agents'])
    expect(valuesInUnit(text, 'KillMode')).toEqual(['process'])
    expect(valuesInUnit(text, 'WantedBy')).toEqual(['multi-user.target'])
    // They would keep bubblewrap from making a wall, or part the daemon from runs that go on.
    expect(text).not.toMatch(/NoNewPrivileges|PrivateTmp|RestrictNamespaces|ProtectHome/)

    expect(await done(byRoot('install'))).toMatchObject({ changed: false, pid: machine.daemonPid })
    expect(machine.changes()).toEqual([])

    expect(await done(byAccount('status'))).toMatchObject({
      file: unit,
      account: 'agents',
      installed: true,
      enabled: true,
      running: true,
      lingering: null,
      problems: [],
    })
    for (const action of ['install', 'uninstall'] as const)
      expect(await refused(byAccount(action))).toMatchObject({
        code: 'not_root',
        remediation: `sudo svc device ${action}-service --system --user agents`,
      })
    expect(await refused(byAccount('stop'))).toMatchObject({
      code: 'not_root',
      remediation: 'sudo systemctl stop svc-device@agents',
    })

    // Whoever has the account ends the daemon, and systemd starts the next one.
    const before = machine.daemonPid
    const restarted = done(byAccount('restart'))
    // Its file goes before the process does, and systemd starts nothing beside one that lives.
    await waitFor(() => existsSync(join(machine.stubDir, 'exit')), 'the daemon has ended')
    await machine.run('systemctl', ['start', 'svc-device@agents.service'])
    expect(await restarted).toEqual({ pid: machine.daemonPid, link: expect.any(String) })
    expect(machine.daemonPid).not.toBe(before)

    machine.changes()
    expect(await done(byRoot('uninstall'))).toEqual({ file: unit, changed: true })
    expect([machine.daemonPid, existsSync(unit)]).toEqual([null, false])
    expect(machine.changes()).toEqual([
      'systemctl disable --now svc-device@agents.service',
      'systemctl daemon-reload',
      'systemctl reset-failed svc-device@agents.service',
    ])
    expect(await done(byRoot('uninstall'))).toMatchObject({ changed: false })
  })

  it('refuses with a sentence, and writes nothing', async () => {
    expect(await refused(byRoot('install'))).toMatchObject({
      code: 'not_connected',
      remediation: expect.stringContaining('sudo -iu agents svc device connect') as string,
    })
    machine.enrol()
    const user = { words: ['--system', '--user', 'agents'] }
    const byPerson = await machine.service('install', {}, user)
    expect(byPerson).toMatchObject({ ok: false, error: { code: 'not_root' } })
    for (const name of ['nobody-here', '../x', 'a b', 'Agents', ''])
      expect(await refused(byRoot('install', name)), name).toMatchObject({
        code: 'no_such_account',
        remediation: expect.stringContaining('useradd --create-home') as string,
      })
    list({ home: '/nonexistent' })
    expect(await refused(byRoot('install'))).toMatchObject({ code: 'no_such_account' })
    // The state folder is this account's, and not that of the one that is named.
    list({ uid: uid + 1 })
    expect(await refused(byRoot('install'))).toMatchObject({ code: 'other_state_dir' })
    list()
    mkdirSync(dirname(machine.unitFile), { recursive: true })
    writeFileSync(machine.unitFile, '')
    expect(await refused(byRoot('install'))).toMatchObject({
      code: 'other_service',
      remediation: expect.stringContaining('sudo -iu agents svc device uninstall-service') as string,
    })
    machine.fail('show-environment', 'Failed to connect to bus\n')
    expect(await refused(byRoot('install'))).toMatchObject({ code: 'no_service_manager' })
    expect([existsSync(unit), machine.changes()]).toEqual([false, []])
  })

  it('has the account started where its shell lets nobody in, and takes nothing of root’s own folders along', async () => {
    machine.enrol()
    list({ shell: '/usr/sbin/nologin' })
    const env = {
      PATH: `/root/bin:/home/ann/bin:${machine.env['PATH']}`,
      XDG_DATA_HOME: '/root/data',
      SVC_DATA_DIR: '/root/x',
    }
    await done(machine.service('install', env, { uid: 0, words: ['--system', '--user', 'agents'] }))
    const text = readFileSync(unit, 'utf8')
    expect(valuesInUnit(text, 'Environment')).toContain('"SHELL=/bin/sh"')
    expect(text).toContain(`"PATH=${machine.home}/.local/bin:`)
    expect(text).not.toMatch(/\/root|\/home\/ann/)
  })
})
