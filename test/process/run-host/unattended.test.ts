import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { findGit } from '../../../device-manager/change-set/git.ts'
import { findProgram } from '../../../device-manager/process/program.ts'
import { outputOf, specOf, spooled, testDevice, until, type TestDevice } from './host-client.ts'

// Runs in a terminal at which nobody sits: what would wait for a person ends by itself, or says that it waits.

let device: TestDevice
beforeEach(() => {
  device = testDevice()
})
afterEach(() => device.remove())

const path = process.env['PATH'] ?? ''
/** A shell's profile that asks for what a person at a terminal wants. */
const profile = { PATH: path, PAGER: 'less', GIT_PAGER: 'less', MANPAGER: 'less', EDITOR: 'vim', VISUAL: 'vim' }

function has(program: string): boolean {
  try {
    findProgram({ file: program, cwd: '/', env: { PATH: path } })
    return true
  } catch {
    return false
  }
}

async function run(
  command: string,
  { args = [] as string[], isWalled = false, meanwhile = async (_running: Running) => {} } = {},
) {
  if (isWalled) {
    device.remove()
    device = testDevice({ isWalled: true })
  }
  const host = await device.host(args)
  const spec = specOf(device, { command })
  await host.connect()
  host.assign(spec, { env: { ...profile, HOME: device.workDir } })
  await host.reply('prepared')
  host.start()
  const events = () => spooled(device, spec.runId).events
  const waits = () =>
    events().flatMap(({ kind, data }) => (kind === 'error' && data['class'] === 'waits_for_terminal' ? [data] : []))
  await meanwhile({ waits, send: (text) => host.send({ type: 'input', inputId: crypto.randomUUID(), text }) })
  const { report } = await host.reply('ended')
  await host.left()
  return { report, waits: waits(), output: outputOf(events()).toString().replaceAll('\r\n', '\n') }
}

interface Running {
  waits: () => Record<string, unknown>[]
  send: (text: string) => void
}

const repository = `export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
  git init -q -b main . && for n in $(seq 60); do git commit -q --allow-empty -m "commit $n"; done || exit 9
  seq 200 >file; git add file; git commit -q -m file; seq 400 >file`

describe('git that would wait for a person', () => {
  beforeEach(({ skip }) => {
    if (findGit(path) === null) skip('there is no git')
  })

  test('log, diff, branch, show and help print', async () => {
    const { report, output } = await run(
      `${repository}; git log; git diff; git branch -a; git show HEAD; git -p tag; echo over`,
    )
    expect(report).toMatchObject({ exitReason: 'completed', exitCode: 0 })
    expect(output).toContain('commit 1\n')
    expect(output.trim().split('\n').at(-1)).toBe('over')
  })

  test('a commit without a message is refused, and what has a proposed text takes it', async () => {
    const { report, output } = await run(`${repository}
      git commit -a; echo "commit $?"; git commit -q -a --amend; echo "amend $?"
      git rebase -q -i HEAD~3; echo "rebase $?"
      git checkout -q -b side HEAD~1; git commit -q --allow-empty -m side; git merge --no-ff main >/dev/null; echo "merge $?"
      git tag -a v1; echo "tag $?"`)
    expect(report).toMatchObject({ exitReason: 'completed' })
    expect(output).toContain('Aborting commit due to empty commit message')
    expect(output.match(/(commit|amend|rebase|merge|tag) \d+$/gm)).toEqual([
      'commit 1',
      'amend 0',
      'rebase 0',
      'merge 0',
      'tag 128',
    ])
  })

  test('a clone that wants a password ends', async () => {
    const server = createServer((_, reply) => reply.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const { report, output } = await run(`git clone http://127.0.0.1:${port}/repo.git`)
    expect(report).toMatchObject({ exitReason: 'error', exitCode: 128 })
    expect(output).toMatch(/could not read Username|terminal prompts disabled/)
  })
})

describe('other programs', () => {
  test.for([
    ['ssh-keygen', 'ssh-keygen -q -N secret -f key </dev/null; ssh-keygen -y -f key; echo "status $?"', 'status 255'],
    ['npm', 'npm init --offline >/dev/null; echo "status $?"', 'status 0'],
    ['gpg', 'export GNUPGHOME=$PWD/g; mkdir -m 700 g; echo a >a; gpg -q --symmetric a; echo "status $?"', 'status 2'],
    ['sh', '"$EDITOR" a && "$VISUAL" a && echo a | $PAGER && echo a | $MANPAGER; echo "status $?"', 'status 0'],
  ])('%s does not ask', async ([program, command, last], { skip }) => {
    if (!has(program!)) skip(`this machine has no ${program}`)
    const { output, report } = await run(command!)
    expect(report).toMatchObject({ exitReason: 'completed' })
    expect(output.trim().split('\n').at(-1)).toBe(last)
  })

  test('the file of the person’s shell does not undo it', async () => {
    // A stand-in for a shell that reads its own file before each line.
    const shell = join(device.workDir, 'zsh')
    writeFileSync(shell, '#!/bin/sh\nexport PAGER=less GIT_PAGER=less EDITOR=vim\nexec /bin/sh "$@"\n', { mode: 0o755 })
    const host = await device.host()
    const spec = specOf(device, { command: 'echo "$PAGER $GIT_PAGER $EDITOR"; exit 3' })
    await host.connect()
    host.assign(spec, { env: profile, loginShell: shell })
    await host.reply('prepared')
    host.start()
    expect((await host.reply('ended')).report).toMatchObject({ exitCode: 3 })
    await host.left()
    expect(outputOf(spooled(device, spec.runId).events).toString()).toBe('cat cat true\r\n')
  })
})

describe.skipIf(process.platform !== 'linux')('a program that waits for its terminal', () => {
  const quick = ['--quiet-terminal-ms', '400']
  const untilTold =
    (count = 1) =>
    ({ waits }: Running) =>
      until(() => waits().length >= count, 'it is told')

  test.for([
    ['sh', 'read x; echo "got $x"', '\n'],
    ['cat', 'cat', '\u{4}'],
    ['less', 'less file', 'q'],
    ['vim', 'vim -u NONE file', ':q!\n'],
    ['node', `'${process.execPath}' -e 'process.stdin.once("data", () => process.exit())'`, '\n'],
    ['python3', 'python3 -c "input()"', '\n'],
    ['bash', 'bash --norc -i', 'exit\n'],
  ])('%s is named, and goes on by what a person sends', async ([program, command, answer], { skip }) => {
    if (!has(program!)) skip(`this machine has no ${program}`)
    writeFileSync(join(device.workDir, 'file'), Array.from({ length: 500 }, (_, n) => n).join('\n'))
    const { report, waits } = await run(command!, {
      args: quick,
      async meanwhile(running) {
        await untilTold()(running)
        running.send(answer!)
      },
    })
    expect(report).toMatchObject({ exitReason: 'completed' })
    expect(waits[0]).toMatchObject({
      willRetry: false,
      message: expect.stringMatching(/\(process \d+\) waits for input from the terminal/),
    })
  })

  test('behind the wall, too, and once for each time that it falls silent', async () => {
    const { waits } = await run('read x; echo more; cat </dev/tty', {
      isWalled: true,
      args: quick,
      async meanwhile(running) {
        await untilTold()(running)
        running.send('')
        await untilTold(2)(running)
        running.send('\u{4}')
      },
    })
    expect(waits).toHaveLength(2)
  })

  test('one that works in silence is not', async () => {
    const { waits } = await run(
      `sleep 2; cat </dev/null; echo a | cat; '${process.execPath}' -e 'setTimeout(() => {}, 1500)'`,
      { args: quick },
    )
    expect(waits).toEqual([])
  })
})
