import { execFileSync } from 'node:child_process'
import { createPublicKey } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { notTypedInBoxes } from '../../cli/pages-not-typed.ts'
import { typePageBy, type TypedPage } from '../../cli/typed-page.ts'
import type { Box } from '../../kit/box.ts'
import { giveNode, giveNpmCache } from '../../kit/box-node.ts'
import { terminalOf } from '../../kit/box-typist.ts'
import { useBoxedReleases } from '../../kit/boxed-releases.ts'
import { waitFor } from '../../kit/programs.ts'
import { signingKey } from '../../kit/releases.ts'

// Pages for beginners, typed from the first line to the last: each on a machine that has seen nothing of svc, by whom the page speaks to.

const [first, second] = ['0.1.0', '0.2.0']
const key = signingKey()
const boxed = useBoxedReleases('nobody typed the pages on an empty machine', {
  versions: { [first]: ['tarball', 'npm', 'deb'], [second]: ['tarball'] },
  key,
  boxes: ['base', 'team'],
})
const longMs = { ms: 120_000 }

/** What serves until Ctrl-C, by how it begins, with what it says when it does. */
type Serving = Record<string, string>

interface Typed extends TypedPage {
  /** Who types what begins so; everything else is typed by the account of the page. */
  as?: Record<string, string>
  serving?: Serving
  /** What a person must answer for on a terminal: `svc login`. Given the line. */
  onTerminal?: Record<string, (line: string) => Promise<void>>
}

const about = <Value>(command: string, table: Record<string, Value> = {}): Value | undefined =>
  Object.entries(table).find(([begin]) => command.startsWith(begin))?.[1]

/** A machine and its people. */
class Machine {
  readonly box: Box
  private readonly terminals = new Map<string, ReturnType<typeof terminalOf>>()

  constructor(box: Box) {
    this.box = box
  }

  /** A person, who may become root by `sudo`. */
  addPerson(name: string): void {
    this.box.type(`useradd --create-home --shell /bin/bash ${name}`)
    this.box.type(`printf '%s ALL=(ALL) NOPASSWD: ALL\n' ${name} >/etc/sudoers.d/${name}`)
  }

  /** Lays a file of this machine into a folder of an account. */
  lay(account: string, file: string, folder = ''): void {
    const into = join('/home', account, folder)
    const line = `mkdir -p ${into}; mv ${this.box.give(file)} ${into}/; chown -R ${account}: /home/${account}`
    this.box.type(line)
  }

  try(account: string, line: string) {
    if (!this.terminals.has(account)) this.terminals.set(account, terminalOf(this.box, account))
    return this.terminals.get(account)!(line)
  }

  /** What a line that must succeed prints. */
  type(account: string, line: string): string {
    const { status, stdout, stderr } = this.try(account, line)
    if (status === 0) return stdout
    throw new Error(`\`${line}\`, typed by ${account}, ended with ${status}: ${stderr}${stdout}`)
  }

  /** On another terminal, until Ctrl-C. */
  async serve(account: string, line: string, said: string): Promise<void> {
    const log = `/home/${account}/served.log`
    this.type(account, `rm -f ${log}; ({ ${line}; } >${log} 2>&1 </dev/null &)`)
    await waitFor(() => this.box.try(`grep -q '${said}' ${log}`).status === 0, `${line} serves`, {
      ...longMs,
      about: () => this.box.try(`cat ${log}`).stdout,
    })
  }

  /** The pid in the file of a program of svc, where it runs. */
  runs(file: string, program: string): string | null {
    const pid = /"pid":(\d+)/.exec(this.box.try(`cat ${file}`).stdout)?.[1]
    if (pid === undefined) return null
    return this.box.try(`grep -q ${program}/main.js /proc/${pid}/cmdline`).status === 0 ? pid : null
  }

  /** Types `svc login` on a terminal, and confirms its code in a browser which a link signs in. */
  async login(account: string, line: string, link: string): Promise<void> {
    const log = `/home/${account}/login.log`
    this.type(account, `(script -qefc '${line}' ${log} >/dev/null 2>&1 </dev/null &)`)
    const shown = () => this.box.try(`cat ${log}`).stdout
    const address = await waitFor(
      () => /http\S+\/device\?user_code=[A-Z-]{9}/.exec(shown())?.[0],
      'svc shows the address',
      { about: shown },
    )
    const kit = join(import.meta.dirname, '../../kit')
    this.box.give(join(kit, 'browser.ts'))
    const program = this.box.give(join(kit, 'box-approve.ts'))
    this.type(
      account,
      `/opt/svc/current/node/bin/node --disable-warning=ExperimentalWarning ${program} '${link}' '${address}'`,
    )
    await waitFor(() => shown().includes('COMMAND_EXIT_CODE="0"'), 'svc is signed in', { ...longMs, about: shown })
  }

  typesPage(page: string, account: string, plan: Typed): Promise<number> {
    const skips = Object.keys(notTypedInBoxes[page] ?? {})
    return typePageBy(page, { ...plan, skips }, async (line, command) => {
      const said = about(command, plan.serving)
      const who = about(command, plan.as) ?? account
      const done = { status: 0, stdout: '', stderr: '' }
      const answered = about(command, plan.onTerminal)
      if (answered !== undefined) return answered(line).then(() => done)
      if (said === undefined) return this.try(who, line)
      return this.serve(who, line, said).then(() => done)
    })
  }
}

const newMachine = async (kind: 'base' | 'team') => new Machine(await boxed.newBox(kind))
const parsed = (text: string) => JSON.parse(text) as Record<string, unknown>

describe.runIf(boxed.trouble === null)('typed on an empty machine', () => {
  test('install.md', async () => {
    const machine = await newMachine('base')
    machine.addPerson('ann')
    for (const end of ['.tar.gz', '.deb']) machine.lay('ann', boxed.file(first, end))
    for (const name of ['release.json', 'release.json.sig', '.tar.gz'])
      machine.lay('ann', boxed.file(second, name), `releases/${second}`)
    const pem = join(boxed.folder, 'release-key.pem')
    writeFileSync(pem, createPublicKey(key).export({ type: 'spki', format: 'pem' }))
    machine.lay('ann', pem)
    // Somebody else has a Node, whose folders npm of that person may write.
    machine.addPerson('bob')
    giveNode(machine.box, boxed.folder)
    machine.lay('bob', boxed.file(first, '.tgz'))
    machine.type('bob', 'npm config set prefix ~/.local && mkdir -p ~/.local/bin && export PATH=$HOME/.local/bin:$PATH')
    let uninstalled = ''
    await machine.typesPage('install.md', 'ann', {
      as: { 'npm install': 'bob' },
      status: { 'svc uninstall --yes': 0, 'svc uninstall': 1 },
      after: {
        'svc version': ({ stdout }) => expect(stdout).toBe(`${first}\n`),
        'npm install': () => expect(machine.type('bob', 'svc version')).toBe(`${first}\n`),
        'sudo apt': () => expect(machine.type('ann', '/usr/bin/svc version')).toBe(`${first}\n`),
        'svc upgrade ./releases/0.2.0 --check': ({ stdout }) =>
          expect(parsed(stdout)).toMatchObject({ changed: false, isNewer: true }),
        'svc upgrade --rollback': ({ stdout }) => expect(parsed(stdout)).toMatchObject({ version: first }),
        'svc upgrade': ({ stdout }) => expect(parsed(stdout)).toMatchObject({ version: second, changed: true }),
        'svc uninstall --yes': ({ stdout }) => {
          uninstalled = stdout
        },
      },
    })
    expect(parsed(uninstalled)).toMatchObject({ kept: [] })
    expect(machine.box.type('ls -A /home/ann/.local/bin /home/ann/.local/opt')).not.toContain('svc\n')
    // That of the package is none of this person's.
    expect(machine.box.type('svc version')).toBe(`${first}\n`)
  }, 600_000)

  test('start.md', async () => {
    const machine = await newMachine('base')
    machine.addPerson('ann')
    giveNode(machine.box, boxed.folder)
    giveNpmCache(machine.box, 'ann')
    const bundle = join(boxed.folder, 'svc.bundle')
    execFileSync('git', ['bundle', 'create', '--quiet', bundle, 'HEAD'], { cwd: join(import.meta.dirname, '../../..') })
    machine.type('ann', `git clone --quiet ${machine.box.give(bundle)} svc && cd svc`)
    const ended = (status: string) => machine.type('ann', `svc run list --status ${status} --json id`).includes('run_')
    await machine.typesPage('start.md', 'ann', {
      serving: { './scripts/start': 'Serving until Ctrl-C' },
      fill: { '/path/to/this/checkout': '/home/ann/svc' },
      before: {
        'cd your-project': () => {
          const commit = 'git -c user.name=a -c user.email=a@example.com commit --quiet --message first'
          const lines = `git init --quiet && echo first >notes.txt && git add . && ${commit}`
          machine.type('ann', `cd && mkdir your-project && (cd your-project && ${lines})`)
        },
        'svc run retry': () => waitFor(() => !ended('running'), 'the cancelled run has ended', longMs).then(() => {}),
      },
      after: {
        'svc device status': ({ stdout }) =>
          expect(parsed(stdout)).toMatchObject({ running: true, isolation: { level: 'full' } }),
        'svc run read': ({ stdout }) => expect(stdout).toContain('asked to: note the time'),
        'svc run diff': ({ stdout }) => expect(stdout).toContain('+++ b/notes.txt'),
        'svc task list': ({ stdout }) => expect(parsed(stdout)['data']).toMatchObject([{ key: 'MAI-1' }]),
      },
    })
  }, 600_000)

  test('background-service.md, and what it says of lingering', async () => {
    const machine = await newMachine('base')
    const { box } = machine
    machine.addPerson('ann')
    box.type(`DEBIAN_FRONTEND=noninteractive apt-get install -y ${box.give(boxed.file(first, '.deb'))}`)
    box.type('systemctl enable --now svc-server')
    await waitFor(() => box.try('test -s /var/lib/svc/server.json').status === 0, 'the server listens', longMs)
    box.type('install -m 0600 -o ann /var/lib/svc/login-token /home/ann/token')
    machine.type('ann', 'svc login --server http://127.0.0.1:4400 --token - <token')
    const operator = 'systemd-run --pipe --quiet --uid=svc -E SVC_DATA_DIR=/var/lib/svc svc-server'
    const link = () => String(parsed(box.type(`${operator} login-link --email owner@localhost`))['url'])
    const service = () => parsed(machine.type('ann', 'svc device status'))['service']
    await machine.typesPage('background-service.md', 'ann', {
      fill: { 'https://svc.example.com': 'http://127.0.0.1:4400' },
      onTerminal: {
        'sudo -iu svc-agents svc login': (line) => machine.login('ann', line, link()),
      },
      after: {
        'svc device install-service': () => expect(service()).toMatchObject({ running: true, account: null }),
        'sudo svc device install-service': () =>
          expect(parsed(machine.type('ann', 'sudo -iu svc-agents svc device status'))['service']).toMatchObject({
            running: true,
            account: 'svc-agents',
          }),
        'sudo svc device uninstall-service': () =>
          expect(box.type('ls /etc/systemd/system')).not.toContain('svc-device@'),
      },
    })

    // With lingering it outlives the person's last session with its runs, and the machine's start brings it back without a login.
    box.type('loginctl enable-linger ann')
    expect(parsed(machine.type('ann', 'svc device install-service'))).toMatchObject({ warnings: [] })
    machine.type('ann', 'mkdir work && svc folder add work work')
    const folder = /fs_\w{16}/.exec(machine.type('ann', 'svc folder list'))![0]
    const begin = 'echo x >>starts; until [ -e go ]; do sleep 0.2; done'
    machine.type(
      'ann',
      `svc agent create --name Waiter --harness command --command '${begin}' --default-folder-id ${folder}`,
    )
    const started = () => {
      const { runPublicId } = parsed(machine.type('ann', 'svc run create --agent @waiter --prompt go'))
      return String(runPublicId)
    }
    const starts = () => box.try('cat /home/ann/work/starts').stdout.split('\n').length - 1
    const statusOf = (run: string) => parsed(machine.type('ann', `svc run get ${run} --json status`))['status']
    const pid = () => machine.runs('/home/ann/.local/share/svc-device/daemon.json', 'device-manager')
    // What logind does some seconds after the last session of who does not linger, it does at once.
    box.type(
      'mkdir -p /etc/systemd/logind.conf.d; printf "[Login]\\nUserStopDelaySec=0\\n" >/etc/systemd/logind.conf.d/at-once.conf',
    )
    box.type('systemctl restart systemd-logind')
    const state = () => box.type('loginctl show-user ann --property=State --value').trim()
    box.type('systemd-run --quiet --unit=login-of-ann -p PAMName=login -p User=ann sleep infinity')
    const run = started()
    await waitFor(() => starts() === 1, 'the run works', longMs)
    const before = pid()
    box.type('systemctl stop login-of-ann')
    await waitFor(() => state() === 'lingering', 'nobody is logged in', longMs)
    expect([before, pid()]).toEqual([expect.any(String), before])
    box.type('touch /home/ann/work/go')
    await waitFor(() => statusOf(run) === 'succeeded', 'the run goes on to its end', longMs)
    expect(starts()).toBe(1)

    await box.reboot()
    await waitFor(() => pid() !== null, 'the device is back', longMs)
    expect(state()).toBe('lingering')
    const server = () => machine.runs('/var/lib/svc/server.json', 'control-plane')
    await waitFor(() => server() !== null, 'the server is back', longMs)
    const again = started()
    await waitFor(() => statusOf(again) === 'succeeded', 'a run after the start of the machine', longMs)

    // A copy of the person's own takes the service over, and takes it away with all else, once the backup is whole.
    machine.lay('ann', boxed.file(first, '.tar.gz'))
    const own = `svc-${first}-linux-x64`
    machine.type('ann', `tar -xzf ${own}.tar.gz && ./${own}/install && .local/bin/svc device install-service`)
    await waitFor(() => pid() !== null, 'the device is back', longMs)
    const unit = '/home/ann/.config/systemd/user/svc-device.service'
    expect(box.type(`cat ${unit}`)).toContain('/home/ann/.local/opt/svc/current/')
    // Where the backup fails nothing is gone, and the device comes back.
    const closed = '/home/ann/.local/share/svc-device/closed'
    box.type(`install -m 0600 /dev/null ${closed}`)
    const failed = machine.try('ann', '.local/bin/svc uninstall --purge --yes')
    expect([failed.status, failed.stderr]).toEqual([1, expect.stringContaining('cli.no_backup')])
    machine.type('ann', '.local/bin/svc device connect')
    await waitFor(() => pid() !== null, 'the device is back', longMs)
    expect(service()).toMatchObject({ running: true })
    box.type(`rm ${closed}`)
    const purged = parsed(machine.type('ann', '.local/bin/svc uninstall --purge --yes'))
    expect(purged).toMatchObject({ service: true, kept: [] })
    expect(machine.type('ann', `tar -tzf ${String(purged['backup'])}`)).toContain('/svc-device/device-token\n')
    for (const gone of [unit, '/home/ann/.local/share/svc-device', '/home/ann/.local/opt/svc'])
      expect([gone, box.try(`test -e ${gone}`).status]).toEqual([gone, 1])
    expect(box.try('pgrep -u ann -f device-manager').stdout).toBe('')
  }, 900_000)

  test('backup.md', async () => {
    const machine = await newMachine('team')
    const { box } = machine
    box.type(`DEBIAN_FRONTEND=noninteractive apt-get install -y ${box.give(boxed.file(first, '.deb'))}`)
    machine.addPerson('ann')
    const listens = '"msg":"listening"'
    const dataOf = () => machine.type('ann', 'echo "${SVC_DATA_DIR:-$HOME/.local/share/svc}"').trim()
    const stop = async () => {
      const server = () => machine.runs(`${dataOf()}/server.json`, 'control-plane')
      box.type(`kill ${server()}`)
      await waitFor(() => server() === null, 'the server has ended', longMs)
    }
    const keepSecret = (value: string) => {
      machine.type('ann', 'svc login')
      machine.type('ann', `printf %s ${value} | svc secret create --name kept --env KEPT`)
    }
    const secrets = () => machine.type('ann', 'svc secret list')
    const makeDatabase = (name: string) => {
      box.type(`runuser -u postgres -- psql -qc "CREATE DATABASE ${name} OWNER ann"`)
      return `SVC_DATABASE_URL=postgres://ann:PASSWORD@127.0.0.1/${name}`
    }
    box.type(`runuser -u postgres -- psql -qc "CREATE ROLE ann LOGIN PASSWORD 'PASSWORD'"`)
    await machine.serve('ann', 'svc-server start', listens)
    keepSecret('of-sqlite')
    await machine.typesPage('backup.md', 'ann', {
      serving: { 'svc-server start': listens },
      before: {
        'svc-server start': stop,
        pg_dump: async () => {
          await stop()
          machine.type('ann', `export ${makeDatabase('one')} SVC_DATA_DIR=$HOME/one`)
          await machine.serve('ann', 'svc-server start', listens)
          keepSecret('of-postgresql')
        },
        pg_restore: async () => {
          await stop()
          machine.type('ann', `export ${makeDatabase('two')} SVC_DATA_DIR=$HOME/two`)
        },
      },
      after: {
        'svc-server start': () =>
          expect(machine.type('ann', 'SVC_DATA_DIR=~/svc-restored; export SVC_DATA_DIR; svc secret list')).toContain(
            'KEPT',
          ),
      },
    })
    await machine.serve('ann', 'svc-server start', listens)
    expect(secrets()).toContain('KEPT')
    expect(machine.type('ann', 'svc-server keys status')).toContain('"unreadable":0')
  }, 600_000)

  test('team-server.md', async () => {
    const machine = await newMachine('team')
    const { box } = machine
    machine.addPerson('ann')
    const tarball = box.give(boxed.file(first, '.tar.gz'))
    machine.type('root', `tar -xzf ${tarball} -C /srv && /srv/${basename(tarball, '.tar.gz')}/install`)
    // The name leads to this machine, with a certificate of an authority of its own.
    box.type('echo 127.0.0.1 svc.example.com >>/etc/hosts; mkdir /etc/ssl/svc')
    const words = '-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=svc.example.com'
    const names = '-addext subjectAltName=DNS:svc.example.com -addext basicConstraints=critical,CA:true'
    const files = '-keyout /etc/ssl/svc/privkey.pem -out /etc/ssl/svc/fullchain.pem'
    box.type(`openssl req ${words} ${names} ${files}`)
    const trust = 'export NODE_EXTRA_CA_CERTS=/etc/ssl/svc/fullchain.pem'
    let link = ''
    const nodeOf = (path: string) => box.try(`readlink -f ${path}`).stdout.trim()
    const servedFrom = () => {
      const pid = machine.runs('/var/lib/svc/server.json', 'control-plane')
      return pid === null ? null : nodeOf(`/proc/${pid}/exe`)
    }
    const currentNode = () => nodeOf('/opt/svc/current/node/bin/node')
    await machine.typesPage('team-server.md', 'root', {
      as: { 'svc login': 'ann', 'svc device': 'ann' },
      onTerminal: { 'svc login': (line) => machine.login('ann', line, link) },
      before: {
        'svc-server user add --name Ann': () => {
          const conf = box.give(join(import.meta.dirname, '../../../docs/proxy/nginx.conf'))
          box.type(`cp ${conf} /etc/nginx/conf.d/svc.conf; systemctl reload nginx`)
        },
        'svc login': () => void machine.type('ann', trust),
        'svc upgrade ./releases/0.2.0 --check': () => {
          box.type(`mkdir -p /root/releases/${second}`)
          for (const name of ['release.json', 'release.json.sig', '.tar.gz'])
            box.type(`mv ${box.give(boxed.file(second, name))} /root/releases/${second}/`)
        },
      },
      after: {
        'systemctl restart': async () => {
          await waitFor(() => servedFrom() === currentNode(), 'the server is of the version that is current', longMs)
          await waitFor(() => box.try('curl -sf http://127.0.0.1:4400/readyz').status === 0, 'it can work', longMs)
        },
        'svc upgrade ./releases/0.2.0 --check': ({ stdout }) =>
          expect(parsed(stdout)).toMatchObject({ changed: false, isNewer: true }),
        'svc upgrade --rollback': ({ stdout }) => expect(parsed(stdout)).toMatchObject({ version: first }),
        'svc upgrade': async ({ stdout, stderr }) => {
          const serverPid = Number(machine.runs('/var/lib/svc/server.json', 'control-plane'))
          expect(parsed(stdout)).toMatchObject({ version: second, changed: true, serverPid })
          expect(stderr).toContain('systemctl restart svc-server')
          expect(servedFrom(), 'the server that serves goes on').toContain(`/versions/${first}/`)
        },
        'svc-server migrate': ({ stdout }) =>
          expect(parsed(stdout)).toMatchObject({ pending: [], previousRelease: { mayGoOn: true } }),
        'svc-server service-status': async ({ stdout }) => {
          expect(parsed(stdout)).toMatchObject({ running: true, enabled: true })
          await waitFor(() => box.try('curl -sf http://127.0.0.1:4400/readyz').status === 0, 'it can work', longMs)
        },
        'svc-server login-link': ({ stdout }) => {
          link = String(parsed(stdout)['url'])
          expect(link).toContain('https://svc.example.com/')
        },
        'svc device install-service': () =>
          expect(parsed(machine.type('ann', 'svc device status'))).toMatchObject({ service: { running: true } }),
      },
    })
    const linked = () => parsed(machine.type('ann', 'svc device status'))['link']
    await waitFor(() => (linked() as { state: string }).state === 'connected', 'the device has its link', longMs)
    expect(parsed(machine.type('ann', 'svc whoami'))).toMatchObject({ person: { email: 'ann@example.com' } })
    expect(box.type('runuser -u postgres -- psql -Atc "SELECT count(*) FROM users" svc').trim()).toBe('3')

    // Root takes svc away while its services are stopped: none is left that would start what is gone.
    machine.type('ann', 'svc device uninstall-service')
    box.type('systemctl stop svc-server')
    machine.type('root', 'svc uninstall --yes')
    expect(box.type('ls -R /etc/systemd/system')).not.toContain('svc-server')
  }, 600_000)
})
