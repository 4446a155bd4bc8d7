import { describe, expect, it } from 'vitest'
import { merged, specOf } from '../../../test/kit/harness-recordings.ts'
import type { HarnessCommand } from '../../../shared/runs/spec.ts'
import { HarnessLaunchError } from '../parts/adapter-errors.ts'
import type { ProcessExit } from '../adapter.ts'
import { commandAdapter } from './adapter.ts'
import { maxResultBytes } from './dialogue.ts'

function launch(
  command: HarnessCommand | null,
  options: { prompt?: string; agentMd?: string; loginShell?: string } = {},
) {
  const { prompt = 'do it', agentMd = '', loginShell = '/bin/bash' } = options
  return commandAdapter.command(specOf({ harness: 'command', command, prompt, agentMd }), {
    env: {},
    cwd: '/w',
    foldersAround: [],
    repositoryFolders: [],
    runDir: '/run/1',
    isRoot: false,
    firstStartDir: null,
    loginShell,
    version: null,
    mcpServers: {},
    skills: [],
  })
}
const exited = (exitCode: number | null, signal: string | null = null): ProcessExit => ({
  exitCode,
  signal,
  stoppedFor: null,
})
function output(chunks: readonly (string | Uint8Array)[], exit?: ProcessExit) {
  const dialogue = commandAdapter.dialogue(specOf({ harness: 'command' }))
  return merged([...chunks.map((chunk) => dialogue.push(Buffer.from(chunk))), dialogue.end(exit)])
}
const resultOf = (chunks: readonly (string | Uint8Array)[], exit?: ProcessExit) => {
  const last = output(chunks, exit).events.at(-1)
  return last?.kind === 'result' ? last.data : null
}

describe('a command', () => {
  it('that is missing cannot be launched, and the message says how to set it', () => {
    for (const command of [null, '  ', ['']]) {
      expect(() => launch(command)).toThrow(HarnessLaunchError)
      expect(() => launch(command)).toThrow(/svc agent config set ada --command/)
    }
  })

  it('that is an argv array runs as it is, in a terminal', () => {
    expect(launch(['prog', '-x', 'a b'])).toMatchObject({ file: 'prog', args: ['-x', 'a b'], io: 'pty' })
  })

  it.each(['/bin/bash', '/bin/dash', '/bin/ksh'])(
    'that is a string runs in %s, which reads no profile again and does no job control',
    (shell) => {
      const { file, args } = launch('make "all things"', { loginShell: shell })
      expect([file, args]).toEqual([shell, ['-c', 'make "all things"']])
    },
  )

  it.each([
    ['/usr/bin/zsh', "export GIT_PAGER='cat'; "],
    ['/opt/homebrew/bin/fish', "set -gx GIT_PAGER 'cat'; "],
    ['/bin/tcsh', "setenv GIT_PAGER 'cat'; "],
  ])('runs in %s, whose own file is read first, with its pagers and editors set once more', (shell, setting) => {
    const { file, args } = launch('make "all things"', { loginShell: shell })
    expect([file, args[0]]).toEqual([shell, '-c'])
    expect(args[1]).toContain(setting)
    expect(args[1]).toMatch(/; make "all things"$/)
    expect(args[1]).not.toContain('\n')
  })

  it.each(['', '/usr/sbin/nologin', '/bin/false'])('runs in /bin/sh where the login shell is "%s"', (shell) => {
    expect(launch('make', { loginShell: shell }).file).toBe('/bin/sh')
  })

  it('gets the prompt in a variable and in a file, and its instructions in another file', () => {
    const { env, files } = launch('x', { prompt: 'häß\0lich', agentMd: 'Be brief.' })
    expect(env).toEqual({
      SVC_PROMPT: 'häß\u{fffd}lich',
      SVC_PROMPT_FILE: '/run/1/prompt',
      SVC_INSTRUCTIONS_FILE: '/run/1/instructions.md',
    })
    expect(files).toEqual([
      { path: '/run/1/prompt', content: 'häß\0lich' },
      { path: '/run/1/instructions.md', content: 'Be brief.' },
    ])
  })

  it('gets the first 64 KiB of a long prompt in the variable, cut between characters, and the whole in the file', () => {
    const prompt = 'x' + '€'.repeat(40_000)
    const { env, files } = launch('x', { prompt })
    const size = Buffer.byteLength(env['SVC_PROMPT'] ?? '')
    expect(size).toBeGreaterThan(64 * 1024 - 3)
    expect(size).toBeLessThanOrEqual(64 * 1024)
    expect(prompt.startsWith(env['SVC_PROMPT'] ?? '?')).toBe(true)
    expect(files[0]?.content).toBe(prompt)
  })
})

describe('its output', () => {
  it('is the transcript; a character that is cut in two comes whole', () => {
    expect(
      output(['a', Buffer.from([0xe2]), Buffer.from([0x82]), Buffer.from([0xac, 0x62])]).events.slice(0, -1),
    ).toEqual([
      { kind: 'text', data: { text: 'a' } },
      { kind: 'text', data: { text: '€b' } },
    ])
  })

  it('that is not text is kept byte by byte, also at the end', () => {
    expect(output([Buffer.from([0xff, 0x00]), Buffer.from([0xe2, 0x82])]).events.slice(0, -1)).toEqual([
      { kind: 'text', data: { base64: Buffer.from([0xff, 0x00]).toString('base64') } },
      { kind: 'text', data: { base64: Buffer.from([0xe2, 0x82]).toString('base64') } },
    ])
  })

  it('in a large chunk becomes several events', () => {
    const { events } = output(['€'.repeat(100_000)])
    const texts = events.flatMap((event) => (event.kind === 'text' ? (event.data.text ?? '') : []))
    expect(texts.length).toBeGreaterThan(4)
    expect(texts.join('')).toBe('€'.repeat(100_000))
  })

  it('makes the result: its end as a person would read it', () => {
    expect(resultOf(['\x1b[1mbold\x1b[0m\r\n', '\x1b]0;title\x07done\r\n'], exited(0))).toEqual({
      text: 'bold\ndone\n',
      isError: false,
    })
    expect(resultOf([], exited(0))).toEqual({ text: '', isError: false })
    // The transcript has it all as it came.
    const bar = ['1%\r', '100%\r\n\x1b_Gf=100;', `${'A'.repeat(45_000)}\x1b\\\x07ok\n`]
    expect(resultOf(bar, exited(0))).toEqual({ text: '100%\nok\n', isError: false })
    const texts = output(bar).events.flatMap((event) => (event.kind === 'text' ? [event.data.text] : []))
    expect(texts.join('')).toBe(bar.join(''))
  })

  it('that is long is cut to its last 64 KiB, with the count of what is missing', () => {
    const lines = Array.from({ length: 30_000 }, (_, number) => `${number} ä\n`)
    const whole = lines.join('')
    const result = resultOf(lines, exited(0))
    expect(whole.endsWith(result?.text ?? '?')).toBe(true)
    expect(Buffer.byteLength(result?.text ?? '')).toBeGreaterThan(maxResultBytes - 4)
    expect((result?.truncatedBytes ?? 0) + Buffer.byteLength(result?.text ?? '')).toBe(Buffer.byteLength(whole))
  })

  it('of a command that failed is marked as an error where the exit is known', () => {
    expect(resultOf(['x'], exited(1))).toMatchObject({ isError: true })
    expect(resultOf(['x'], { ...exited(0), stoppedFor: 'interrupted' })).toMatchObject({ isError: true })
    expect(resultOf(['x'])).toMatchObject({ isError: false })
  })
})

describe('its end', () => {
  const outcome = (exit: ProcessExit) => commandAdapter.dialogue(specOf()).outcome(exit)

  it.each([
    [exited(0), 'completed', null],
    [exited(3), 'error', 'The command exited with status 3.'],
    [exited(null, 'SIGSEGV'), 'error', 'The command was killed by SIGSEGV.'],
    [exited(0, 'SIGHUP'), 'error', 'The command was killed by SIGHUP.'],
    [exited(126), 'error', expect.stringContaining('could not be executed')],
    [exited(127), 'error', expect.stringContaining('was not found')],
    [{ ...exited(null, 'SIGKILL'), stoppedFor: 'timeout' as const }, 'timeout', null],
  ])('%o is %s', (exit, exitReason, message) => {
    expect(outcome(exit)).toEqual({ exitReason, message, sessionId: null, resumeRefused: false })
  })
})

it('takes text from a person as a line in its terminal', () => {
  expect(commandAdapter.dialogue(specOf()).input('yes')).toEqual({ events: [], write: 'yes\n' })
})
