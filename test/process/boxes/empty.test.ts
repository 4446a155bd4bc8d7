import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Box, boxTrouble } from '../../kit/box.ts'
import { waitFor } from '../../kit/programs.ts'
import { releaseFor } from '../../kit/releases.ts'

// A machine that has nothing of svc but the file of a release: from there to a server, a device and a run. Prints how long that took.

const trouble = boxTrouble()
if (trouble !== null) process.stderr.write(`NOT RUN: ${trouble}, so no empty machine was given a release of svc\n`)

const longMs = { ms: 120_000 }

let folder: string
let out: string
let box: Box
beforeAll(async () => {
  if (trouble !== null) return
  folder = mkdtempSync(join(tmpdir(), 'svc-release-'))
  const made = await releaseFor(folder, { version: '0.8.0', key: null, kinds: ['npm', 'tarball'], withNode: true })
  out = made.folder
  box = await Box.make()
}, 900_000)
afterAll(async () => {
  if (trouble !== null) return
  await box.remove()
  rmSync(folder, { recursive: true, force: true })
}, 120_000)

const fileOf = (end: string) =>
  box.give(
    join(
      out,
      readdirSync(out).find((name) => name.endsWith(end))!,
    ),
  )

/** Gives the box the Node and the npm of this machine, as its system has them. */
function giveNode(): void {
  const npm = dirname(dirname(realpathSync(execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim())))
  const archive = join(folder, 'node.tar.gz')
  const from = (place: string) => ['-C', dirname(place), basename(place)]
  execFileSync('tar', ['-czf', archive, ...from(process.execPath), ...from(npm)])
  const unpack = `tar -xzf ${box.give(archive)} -C /srv; mv /srv/node /usr/local/bin/`
  box.type(`set -e; ${unpack}; mkdir -p /usr/local/lib/node_modules; mv /srv/npm /usr/local/lib/node_modules/`)
  box.type('ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm')
}

test.runIf(trouble === null).each([
  { account: 'tarball', end: '.tar.gz', port: 4401 },
  { account: 'npm', end: '.tgz', port: 4402 },
])(
  'from the $account alone to a run that succeeded',
  async ({ account, end, port }) => {
    box.type(`useradd --create-home --shell /bin/bash ${account}`)
    if (account === 'npm') giveNode()
    const file = fileOf(end)
    const types = (line: string) => box.type(`sudo -iu ${account} sh -c '${line}'`)
    const began = performance.now()
    if (account === 'npm') box.type(`npm install -g --offline ${file}`)
    else types(`tar -xzf ${file} && ./svc-*/install`)
    const svc = (words: string) => types(`PATH=$HOME/.local/bin:$PATH; ${words}`)
    svc(`SVC_PORT=${port} nohup svc-server start >server.log 2>&1 &`)
    await waitFor(
      () => box.try(`test -s /home/${account}/.local/share/svc/server.json`).status === 0,
      'the server listens',
      longMs,
    )
    svc('svc login && svc device connect')
    svc('svc agent create --name hello --harness command --command "echo hello"')
    const { runPublicId } = JSON.parse(svc('svc run create --agent @hello --prompt go')) as { runPublicId: string }
    const status = () => (JSON.parse(svc(`svc run get ${runPublicId} --json status`)) as { status: string }).status
    await waitFor(() => status() === 'succeeded', 'the run succeeded', longMs)
    process.stderr.write(`${account}: ${((performance.now() - began) / 1_000).toFixed(1)} s\n`)
    expect(svc(`svc run read ${runPublicId} --full`)).toContain('hello')
  },
  600_000,
)
