import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launchInPty } from '../../../device-manager/run-host/launch/pty.ts'
import { isLong, repeats } from '../../kit/forms.ts'
import { waitFor } from '../../kit/programs.ts'
import { outputOf, specOf, spooled, testDevice, type TestDevice } from './host-client.ts'

let device: TestDevice
beforeAll(() => {
  device = testDevice({ isWalled: true })
})
afterAll(() => device.remove())

async function runCommand(command: string | string[], { secrets = {}, prompt = '' } = {}) {
  const host = await device.host()
  const spec = specOf(device, { command, prompt })
  await host.launch(spec, { secrets })
  const { report } = await host.reply('ended')
  await host.left()
  return { report, ...spooled(device, spec.runId) }
}

describe('output of a command', () => {
  test('arrives as it was printed, between started and ended, and the report matches the log', async () => {
    const { report, events, log, ending } = await runCommand(['printf', 'one\\ntwo \\342\\202\\254\\n'])
    expect(outputOf(events).toString()).toBe('one\r\ntwo €\r\n')
    // A terminal hands over what there is: the text may come in several pieces.
    expect([...new Set(events.map(({ kind }) => kind))]).toEqual(['started', 'text', 'result', 'ended'])
    expect(events.at(-1)!.data).toMatchObject({ exitReason: 'completed', exitCode: 0, signal: null })
    expect(report).toMatchObject({ exitReason: 'completed', eventCount: events.length, gapBytes: 0 })
    expect(report.logHash).toBe(createHash('sha256').update(log).digest('hex'))
    expect(ending?.report).toEqual(report)
  })

  test('bytes that are no text are kept, NUL and escape sequences too', async () => {
    const bytes = Buffer.concat([
      Buffer.from([0xff, 0xfe, 0, 0x1b]),
      Buffer.from('[31mred\x07 60%\r99%'),
      Buffer.from([0xc3]),
    ])
    const file = join(device.workDir, 'bytes')
    writeFileSync(file, bytes)
    const { events } = await runCommand(['cat', file])
    expect(outputOf(events)).toEqual(bytes)
  })

  test('a line of many megabytes without an end is byte-equal', async () => {
    const bytes = isLong ? 20_000_000 : 2_000_000
    const { events, report } = await runCommand(`head -c ${bytes} /dev/zero | tr '\\0' 'x'`)
    const output = outputOf(events)
    expect(output.length + report.gapBytes).toBe(bytes)
    expect(report.gapBytes).toBe(0)
    expect(output.equals(Buffer.alloc(output.length, 'x'))).toBe(true)
  })

  test('secrets and the run’s token are redacted, in every form, and the device has none to print; tokens of this service are masked by their form', async () => {
    const secret = 'hunter2-and-"more"'
    // The run was given none of that form.
    const token = `svc_pat_${'a1B2'.repeat(10)}xyz`
    const { log } = await runCommand(
      `env; printf %s "$API_KEY"; printf %s "$API_KEY" | base64; printf 'tok_0123456789'; printf 'abcdefghij\\n'; cat /proc/$PPID/environ | tr '\\0' '\\n'
      printf 'svc_pat_'; sleep 0.1; printf '%s\\n' "${token.slice(8)}"; echo "${token}" >&2`,
      { secrets: { API_KEY: secret } },
    )
    const text = log.toString()
    expect(text).toContain('[redacted:API_KEY]')
    expect(text).toContain('[redacted:SVC_TOKEN]')
    expect(text).not.toContain('tok_0123456789abcdefghij')
    expect(text).not.toContain('hunter2')
    expect(text).not.toContain(Buffer.from(secret).toString('base64').slice(0, -4))
    expect(text).toMatch(/SVC_RUN_ID=run_/)
    expect(text).not.toContain(token.slice(8))
    expect(text.match(/\[redacted:svc_pat\]/g)!.length).toBeGreaterThanOrEqual(2)
  })

  test('a question that ends like the beginning of a secret is shown before it is answered', async () => {
    const host = await device.host()
    const spec = specOf(device, { command: `printf 'Go on with all tests'; read line; echo "got $line"` })
    await host.launch(spec, { secrets: { API_KEY: 'sesame-sesame' } })
    const shown = () => outputOf(spooled(device, spec.runId).events).toString()
    await waitFor(() => shown() === 'Go on with all tests', 'the question is whole', { about: shown })
    host.send({ type: 'input', inputId: 'i1', text: 'yes' })
    await host.reply('ended')
    await host.exited
    expect(shown()).toContain('got yes')
  })

  test('the prompt is in its variable and its file, and typed input reaches the command', async () => {
    const host = await device.host()
    const spec = specOf(device, {
      command: 'cat "$SVC_PROMPT_FILE"; echo; read line; echo "got $line"',
      prompt: 'Say ü.',
    })
    await host.launch(spec)
    host.send({ type: 'input', inputId: 'i1', text: 'hello' })
    host.send({ type: 'input', inputId: 'i1', text: 'hello' })
    await host.reply('ended')
    await host.exited
    const { events } = spooled(device, spec.runId)
    expect(outputOf(events).toString()).toContain('Say ü.')
    expect(outputOf(events).toString()).toContain('got hello')
    expect(events.filter(({ kind }) => kind === 'input').map(({ data }) => data)).toEqual([{ text: 'hello' }])
  })
})

describe('the end of the output', () => {
  test('of programs that print 20 KiB and exit no byte is lost', async () => {
    const text = Buffer.alloc(20 * 1024, 'abcdefghij')
    for (let round = 0; round < repeats('OUTPUT_PROGRAMS', { short: 10, long: 200 }); round++) {
      const chunks: Uint8Array[] = []
      const child = launchInPty({
        file: '/bin/echo',
        args: ['-n', text.toString()],
        env: { PATH: '/usr/bin:/bin' },
        cwd: '/',
        onOutput: (chunk) => chunks.push(chunk),
        onStderr: () => {},
      })
      const exit = await child.closed
      expect(exit).toEqual({ exitCode: 0, signal: null })
      expect({ round, whole: Buffer.concat(chunks).equals(text) }).toEqual({ round, whole: true })
    }
  })

  test('of whole runs of the same no byte is lost', async () => {
    for (let round = 0; round < repeats('OUTPUT_RUNS', { short: 1, long: 20 }); round++) {
      const { events } = await runCommand('exec /bin/echo -n "$SVC_PROMPT"', { prompt: 'x'.repeat(20 * 1024) })
      expect(outputOf(events).toString()).toBe('x'.repeat(20 * 1024))
    }
  })

  test.for([
    ['before its end', 'exit 7', ''],
    ['and opens it again', 'echo back >/dev/tty; exit 7', 'back\r\n'],
  ])('a program that closes its terminal %s works on', async ([, last, printed]) => {
    const chunks: Uint8Array[] = []
    const child = launchInPty({
      file: '/bin/sh',
      args: ['-c', `echo first; exec </dev/null >/dev/null 2>&1; sleep 0.3; ${last}`],
      env: { PATH: '/usr/bin:/bin' },
      cwd: '/',
      onOutput: (chunk) => chunks.push(chunk),
      onStderr: () => {},
    })
    // Hung up it would be killed, by SIGHUP.
    expect(await child.closed).toEqual({ exitCode: 7, signal: null })
    expect(Buffer.concat(chunks).toString()).toBe(`first\r\n${printed}`)
  })

  test('what a child in the background prints after the leader’s exit is kept', async () => {
    const { events, report } = await runCommand(`trap '' HUP; (sleep 1; echo late) & echo early`)
    expect(outputOf(events).toString()).toBe('early\r\nlate\r\n')
    expect(report.exitReason).toBe('completed')
  })
})
