import { beforeAll, expect, test } from 'vitest'
import type { Box } from '../../kit/box.ts'
import { giveNode } from '../../kit/box-node.ts'
import { useBoxedReleases } from '../../kit/boxed-releases.ts'
import { waitFor } from '../../kit/programs.ts'

// A machine that has nothing of svc but the file of a release: from there to a server, a device and a run. Prints how long that took.

const version = '0.8.0'
const longMs = { ms: 120_000 }
const boxed = useBoxedReleases('no empty machine was given a release of svc', {
  versions: { [version]: ['npm', 'tarball'] },
})
let box: Box
beforeAll(() => {
  box = boxed.box
})

test.runIf(boxed.trouble === null).each([
  { account: 'tarball', end: '.tar.gz', port: 4401 },
  { account: 'npm', end: '.tgz', port: 4402 },
])(
  'from the $account alone to a run that succeeded',
  async ({ account, end, port }) => {
    box.type(`useradd --create-home --shell /bin/bash ${account}`)
    if (account === 'npm') giveNode(box, boxed.folder)
    const file = boxed.give(version, end)
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
