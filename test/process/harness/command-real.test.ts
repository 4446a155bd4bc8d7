import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node-pty'
import { afterAll, describe, expect, it } from 'vitest'
import { commandAdapter } from '../../../device-manager/harness/command/adapter.ts'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { HarnessCommand } from '../../../shared/runs/spec.ts'
import { specOf } from '../../kit/harness-recordings.ts'

// Runs commands through the adapter in a real terminal and real login shells.

const root = mkdtempSync(join(tmpdir(), 'svc-command-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const fakeHarness = join(import.meta.dirname, '../../kit/fake-harness.mjs')
const svcBin = join(root, 'svc-bin')
mkdirSync(svcBin)
writeFileSync(join(svcBin, 'svc'), '#!/bin/sh\necho "svc of the run"\n')
chmodSync(join(svcBin, 'svc'), 0o755)

interface Ran {
  text: string
  result: string
  exitReason: string
  message: string | null
}
/** As a run host does it: files, environment, pty, session. */
async function run(
  command: HarnessCommand,
  options: { shell?: string; prompt?: string; input?: string } = {},
): Promise<Ran> {
  const { shell = '/bin/bash', prompt = 'do it' } = options
  const runDir = mkdtempSync(join(root, 'run-'))
  const home = mkdtempSync(join(root, 'home-'))
  // What a system's profile does: PATH anew, and a variable of the person.
  for (const profile of ['.profile', '.bash_profile', '.zprofile']) {
    writeFileSync(
      join(home, profile),
      'PATH=/usr/bin:/bin\nexport PATH\nPERSONAL="from the profile"\nexport PERSONAL\n',
    )
  }
  const spec = specOf({ harness: 'command', command, prompt })
  const env = { HOME: home, PATH: `${svcBin}:${process.env['PATH'] ?? ''}`, TERM: 'xterm-256color' }
  const facts = {
    env,
    cwd: root,
    foldersAround: [],
    repositoryFolders: [],
    runDir,
    isRoot: false,
    firstStartDir: null,
    loginShell: shell,
    version: null,
    mcpServers: {},
    skills: [],
  }
  const launch = commandAdapter.command(spec, facts)
  for (const { path, content } of launch.files) writeFileSync(path, content, { mode: 0o600 })
  const session = commandAdapter.dialogue(spec)
  const screen = { name: 'xterm-256color', cols: 100, rows: 40, encoding: null }
  const terminal = spawn(launch.file, [...launch.args], { ...screen, cwd: root, env: { ...env, ...launch.env } })
  const events: RunEventBody[] = []
  terminal.onData((chunk) => void events.push(...session.push(Buffer.from(chunk)).events))
  if (options.input !== undefined) terminal.write(session.input(options.input).write ?? '')
  const exit = await new Promise<{ exitCode: number; signal?: number }>((resolve) => terminal.onExit(resolve))
  const left = { exitCode: exit.exitCode, signal: exit.signal ? `signal ${exit.signal}` : null, stoppedFor: null }
  events.push(...session.end(left).events)
  const { exitReason, message } = session.outcome(left)
  return {
    text: events.flatMap((event) => (event.kind === 'text' ? (event.data.text ?? '') : [])).join(''),
    result: events.flatMap((event) => (event.kind === 'result' ? event.data.text : [])).join(''),
    exitReason,
    message,
  }
}

const shells = ['/bin/sh', '/bin/bash', '/usr/bin/zsh', '/bin/zsh', '/usr/bin/fish'].filter((shell) =>
  existsSync(shell),
)

describe.each(shells)('a command line in %s', (shell) => {
  it("reads no profile that would hide the run's svc, which is first on the PATH", async () => {
    const { result, exitReason } = await run('svc; echo "$PERSONAL"', { shell })
    expect({ result, exitReason }).toEqual({ result: 'svc of the run\n\n', exitReason: 'completed' })
  })

  it('stays in the process group of its leader, so that a signal to the group reaches it', async () => {
    // Of the shell itself and of a program that it starts. Asked through sh, since fish has no `$$`.
    const { result } = await run("sh -c 'ps -o pgid= -p $PPID'; sh -c 'ps -o pgid= -p $$'", { shell })
    const groups = result.trim().split(/\s+/)
    expect(groups).toHaveLength(2)
    expect(new Set(groups).size).toBe(1)
  })

  it('ends as an error with its status, or with what is wrong with the command', async () => {
    expect(await run('exit 3', { shell })).toMatchObject({
      exitReason: 'error',
      message: expect.stringContaining('status 3'),
    })
    expect(await run('no-such-program-here', { shell })).toMatchObject({
      exitReason: 'error',
      message: expect.stringContaining('was not found'),
      result: expect.stringContaining('no-such-program-here'),
    })
  })
})

describe('an argv array', () => {
  it('runs as it is, with the prompt in its variable and its file', async () => {
    const prompt = 'Fix "it" — $HOME\n' + 'ä'.repeat(60_000)
    const { text } = await run([process.execPath, fakeHarness, 'prompt', 'tty', 'text=\\e[31mred\\e[0m'], { prompt })
    expect(text).toContain('prompt: Fix "it" — $HOME\r\n')
    expect(text).toContain(`prompt-file: ${createHash('sha256').update(prompt).digest('hex')}`)
    expect(text).toMatch(/tty: true 100x40/)
    expect(text).toContain('\x1b[31mred')
  })

  it('takes a line from a person', async () => {
    const { result } = await run([process.execPath, fakeHarness, 'read=1'], { input: 'yes, go on' })
    expect(result).toContain('read: yes, go on\n')
  })

  it('returns all of a long output, byte for byte', async () => {
    const { text } = await run([process.execPath, fakeHarness, 'lines=20000', 'exit=0'])
    const lines = text.trimEnd().split('\r\n')
    const sound = lines.filter((line, index) => {
      const [number, payload = '', hash] = line.split(' ')
      return Number(number) === index + 1 && createHash('sha256').update(payload).digest('hex') === hash
    })
    expect(sound).toHaveLength(20_000)
  })
})
