import { beforeAll, expect, test } from 'vitest'
import type { Box } from '../../kit/box.ts'
import { useBoxedReleases } from '../../kit/boxed-releases.ts'
import { waitFor } from '../../kit/programs.ts'

// The Debian package under a real systemd: server and device as services of the machine, through crashes, an upgrade and the way back, a setting
// that cannot be used, a start of the machine, and the removal.

const [old, recent] = ['0.8.0', '0.9.0']
const boxed = useBoxedReleases('no real systemd has run the services of svc', {
  versions: { [old]: ['deb'], [recent]: ['deb'] },
})
let box: Box
beforeAll(() => {
  box = boxed.box
})

const unit = 'svc-device@svc-agents'
const byAgents = (line: string, input = '') => box.type(`sudo -iu svc-agents ${line}`, input)
const shown = (name: string, of = unit) => box.type(`systemctl show ${of} --property=${name} --value`).trim()
const longMs = { ms: 120_000 }

/** Starts a run that goes on until it is let go, and says how often it was begun. */
async function startRun(name: string) {
  const place = `/home/svc-agents/work/${name}`
  const agent = `svc agent create --name ${name} --harness command --default-folder-id $(cat fs) --command 'echo x >>${name}.starts; until [ -e ${name}.go ]; do sleep 0.2; done'`
  box.type(`cd /home/svc-agents; runuser -u svc-agents -- env HOME=$PWD sh -c "${agent}"`)
  const said = JSON.parse(byAgents(`svc run create --agent @${name} --prompt go`)) as { runPublicId: string }
  const starts = () => box.try(`cat ${place}.starts`).stdout.split('\n').length - 1
  await waitFor(() => starts() === 1, 'the run has begun', longMs)
  const get = () =>
    JSON.parse(byAgents(`svc run get ${said.runPublicId} -o json`)) as { status: string; exitReason: string }
  return {
    starts,
    get,
    letGo: () => box.type(`touch ${place}.go`),
    ends: (status: string) => waitFor(() => get().status === status, `the run is ${status}`, longMs),
  }
}

test.runIf(boxed.trouble === null)(
  'a machine that has seen nothing has a server, a device of an account and runs, which live through what happens to them',
  async () => {
    const [first, second] = [boxed.give(old, '.deb'), boxed.give(recent, '.deb')]
    box.type(`DEBIAN_FRONTEND=noninteractive apt-get install -y ${first}`)
    box.type('systemctl enable --now svc-server')
    await waitFor(
      () => box.try('test -s /var/lib/svc/login-token -a -s /var/lib/svc/server.json').status === 0,
      'the server listens',
      longMs,
    )

    box.type('useradd --create-home --shell /bin/bash svc-agents')
    byAgents('svc login --server http://127.0.0.1:4400 --token -', box.type('cat /var/lib/svc/login-token'))
    byAgents('svc device connect --name box')
    box.type('svc device install-service --system --user svc-agents')
    const status = () =>
      JSON.parse(box.try('sudo -iu svc-agents svc device status -o json').stdout) as {
        isolation: { level: string }
        version: string
        service: object
        problems: { code?: string; message: string }[]
      }
    expect(status()).toMatchObject({
      isolation: { level: 'full' },
      service: { account: 'svc-agents', enabled: true, running: true },
    })
    byAgents(
      `sh -c 'mkdir -p work; svc folder add work /home/svc-agents/work -o json | grep -o "fs_[A-Za-z0-9]*" | head -n 1 >fs'`,
    )

    const run = await startRun('first')
    // One crash after another: it comes back each time, and the run goes on.
    for (let crash = 0; crash < 4; crash++) {
      const before = shown('MainPID')
      box.type(`systemctl kill --kill-who=main --signal=KILL ${unit}`)
      await waitFor(() => !['0', before].includes(shown('MainPID')), 'the device manager is back', longMs)
    }

    // An upgrade, and the way back.
    for (const [deb, version] of [
      [second, recent],
      [first, old],
    ]) {
      box.type(`DEBIAN_FRONTEND=noninteractive apt-get install -y --allow-downgrades ${deb}`)
      await waitFor(() => status().version === version, `the device manager is ${version}`, longMs)
    }
    run.letGo()
    await run.ends('succeeded')
    expect(run.starts()).toBe(1)

    // A setting that cannot be used is final, and the status says where to read why.
    box.type(`mkdir -p /etc/systemd/system/${unit}.service.d`)
    box.type(`printf '[Service]\\nEnvironment=SVC_PING_MS=x\\n' >/etc/systemd/system/${unit}.service.d/bad.conf`)
    box.type(`systemctl daemon-reload; systemctl restart ${unit}`)
    await waitFor(() => shown('ActiveState') === 'failed', 'systemd has given up', longMs)
    expect(shown('ExecMainStatus')).toBe('78')
    expect(status().problems).toContainEqual({
      code: 'failed',
      message: 'The service has given up: its program ended (exit-code, status 78).',
      fix: `sudo journalctl -u ${unit} -n 20`,
    })
    expect(box.type(`journalctl -u ${unit} -n 20 --no-pager`)).toContain('SVC_PING_MS')
    box.type(`rm -r /etc/systemd/system/${unit}.service.d; systemctl daemon-reload; systemctl restart ${unit}`)
    await waitFor(() => shown('ActiveState') === 'active', 'the device manager is back', longMs)

    // The machine is started anew in the middle of a run: the run is told to have ended, and another one works.
    const rebooted = await startRun('rebooted')
    await box.reboot()
    await rebooted.ends('failed')
    expect(rebooted.get()).toMatchObject({ exitReason: 'crashed' })
    expect(rebooted.starts()).toBe(1)
    const afterwards = await startRun('afterwards')
    afterwards.letGo()
    await afterwards.ends('succeeded')

    // It is removed in the middle of a run: nothing of svc runs any more, and what people made stays.
    await startRun('removed')
    box.type('DEBIAN_FRONTEND=noninteractive apt-get remove -y svc')
    await waitFor(
      () => box.type("find /proc -maxdepth 1 -user svc-agents -name '[0-9]*'") === '',
      'nothing of the account runs',
      longMs,
    )
    expect(box.try('ls /opt/svc /usr/bin/svc /etc/systemd/system/svc-device@svc-agents.service').stdout).toBe('')
    expect(box.try('ls -l /proc/[0-9]*/exe | grep /opt/svc').stdout).toBe('')
    expect(box.type('apt-get purge -y svc 2>&1')).toContain('/var/lib/svc and /etc/svc stay')
    expect(box.type('ls /var/lib/svc')).toContain('svc.db')
    expect(box.type('ls /home/svc-agents/.local/share/svc-device')).toContain('identity.json')
  },
  1_200_000,
)
