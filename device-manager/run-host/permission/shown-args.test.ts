import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { askedCallLimits } from '../../../shared/runs/asked-call.ts'
import { Redactor } from '../../../shared/lib/redact.ts'
import { maskText, shownArgs } from './shown-args.ts'
import { cpuMsOf } from '../../../test/kit/cpu-time.ts'

const asItIs = (text: string) => text

describe('what a person sees of a call', () => {
  it('is the input as it is when it is small and holds no secret', () => {
    const input = { command: 'npm run deploy -- --env=prod', timeout: 1000, list: [true, null, { a: 'é' }] }
    expect(shownArgs(input, asItIs)).toEqual({ args: input, isCut: false })
    expect(shownArgs('text', asItIs)).toEqual({ args: { value: 'text' }, isCut: false })
    expect(shownArgs(['a'], asItIs)).toEqual({ args: { value: ['a'] }, isCut: false })
    expect(shownArgs(undefined, asItIs).args).toEqual({})
  })

  it('has no secret of the run in it, also where it is cut', () => {
    const secret = 'kJ8-hG2-secret-of-the-run'
    const redactor = new Redactor([{ name: 'DEPLOY', value: secret }])
    const redact = (text: string) => redactor.redactText(text)
    for (let before = 16_384 - 2 * secret.length; before <= 16_384 + 2; before++) {
      const { args } = shownArgs({ command: `${'x'.repeat(before)}${secret}`, [secret]: 1 }, redact)
      const text = JSON.stringify(args)
      for (let at = 0; at + 6 <= secret.length; at++) expect(text).not.toContain(secret.slice(at, at + 6))
    }
  })

  it('says that and where it was cut', () => {
    const { args, isCut } = shownArgs({ content: 'a'.repeat(100_000), path: '/x' }, asItIs)
    expect(isCut).toBe(true)
    expect(args['content']).toMatch(/^a+\.\.\. \[\d+ more characters\]$/)
    const kept = /^a+/.exec(args['content'] as string)![0].length
    expect(args['content']).toContain(`[${100_000 - kept} more characters]`)
    expect(args['path']).toBe('/x')
  })

  it('always fits, whatever the input', () => {
    const nested = (depth: number): unknown => (depth === 0 ? 'x' : [nested(depth - 1)])
    const wide = Object.fromEntries(
      Array.from({ length: 50_000 }, (_, at) => [`${at}`.repeat(50), '\u0001'.repeat(99)]),
    )
    const inputs = [nested(90), wide, { a: '\u{1f600}'.repeat(60_000) }, Array.from({ length: 99_999 }, () => wide)]
    for (const input of inputs) {
      const { args, isCut } = shownArgs(input, asItIs)
      expect(isCut).toBe(true)
      expect(Buffer.byteLength(JSON.stringify(args))).toBeLessThanOrEqual(askedCallLimits.argsBytes)
      expect(Object.keys(args)).not.toHaveLength(0)
    }
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), (input) => {
        const { args } = shownArgs(input, asItIs)
        expect(Buffer.byteLength(JSON.stringify(args))).toBeLessThanOrEqual(askedCallLimits.argsBytes)
      }),
    )
  })
})

describe('masking', () => {
  it.each([
    ['curl -H "Authorization: Bearer abcdefgh12345678" x', 'curl -H "Authorization: Bearer [masked]" x'],
    ['GITHUB_TOKEN=ghp_0123456789abcdefghij make', 'GITHUB_TOKEN=[masked] make'],
    ['echo ghp_0123456789abcdefghij', 'echo [masked]'],
    ['psql postgres://ada:hunter22@db/x', 'psql postgres://ada:[masked]@db/x'],
    ['mysql --password=hunter22 x', 'mysql --password=[masked] x'],
    ['aws AKIAABCDEFGHIJKLMNOP', 'aws [masked]'],
  ])('%s', (text, masked) => {
    expect(maskText(text)).toBe(masked)
  })

  it.each(['npm run deploy', 'git push origin main', 'PASSWORD=$VAULT x', 'echo token', 'max_tokens: 5'])(
    'leaves %s',
    (text) => {
      expect(maskText(text)).toBe(text)
    },
  )

  it('masks a field by its name', () => {
    expect(shownArgs({ apiKey: 'abc', nested: { client_secret: 'd e' } }, asItIs).args).toEqual({
      apiKey: '[masked]',
      nested: { client_secret: '[masked]' },
    })
  })

  it('never covers what a shell would execute', () => {
    const shell = fc.constantFrom('$(', '`', ';', '|', '&', '<', '>', ')', '\n', '$')
    const word = fc.constantFrom(
      'TOKEN=',
      'password: ',
      'Bearer ',
      'https://a:',
      'abcdefgh',
      'ghp_0123456789abcdefghij',
    )
    fc.assert(
      fc.property(fc.array(fc.oneof(shell, word), { maxLength: 12 }), (parts) => {
        const text = parts.join('')
        const meaning = (of: string) => of.replaceAll(/[^$`;|&<>()\n]/g, '')
        expect(meaning(maskText(text, 'token'))).toBe(meaning(text))
      }),
    )
  })

  it.each([
    'x=token: /tmp/evil.sh -x',
    'token= /bin/rm -rf build',
    'x=bearer /tmp/evil.sh',
    'echo token:\n/tmp/evil.sh',
    "cat <<E\n'\nE\nx=bearer /tmp/evil.sh",
    "ls # it's\nx=bearer /tmp/evil.sh",
    'x="token": "/tmp/evil.sh"',
    'sh -c "x=token: /tmp/evil.sh"',
    "sh -c 'token= /bin/rm -rf build'",
    "ssh host 'x=bearer /tmp/evil.sh'",
    `sh -c '{"a"; x={"token": "/tmp/evil.sh"}'`,
    `sh -c '{"token":\n"/tmp/evil.sh"}'`,
    `sh -c '{"a": 1,\n\t"b": "x", "token":\n\t"/tmp/evil.sh"}'`,
    `sh -c 'token:\n/tmp/evil.sh'`,
    `echo "$(x=token: /tmp/evil.sh)"`,
  ])('covers no program that a command runs: %j', (command) => {
    expect(shownArgs({ command }, asItIs).args).toEqual({ command })
    expect(shownArgs({ command: ['bash', '-c', command] }, asItIs).args).toEqual({ command: ['bash', '-c', command] })
  })

  it('covers what is quoted in a command, and what is part of a word', () => {
    expect(shownArgs({ command: `curl -d '{"token": "abcdefgh"}' --token=abcdefgh` }, asItIs).args).toEqual({
      command: `curl -d '{"token": "[masked]"}' --token=[masked]`,
    })
    const quoted = `curl -H "Authorization: Bearer abcdefgh" -H 'x-api-token: abcdefgh'`
    expect(shownArgs({ command: quoted }, asItIs).args).toEqual({ command: quoted.replaceAll('abcdefgh', '[masked]') })
  })

  it('says so where two names look the same without their secrets', () => {
    const input = { ghp_0123456789abcdefghij: 'rm', ghp_9876543210abcdefghij: 'ls' }
    expect(shownArgs(input, asItIs)).toEqual({ args: { '[masked]': 'ls' }, isCut: true })
  })

  it('is nothing of an input that is too much however little of each part is shown', () => {
    const tree = (depth: number): unknown => (depth === 0 ? 'leaf' : Array.from({ length: 4 }, () => tree(depth - 1)))
    expect(shownArgs({ tree: tree(8) }, asItIs)).toEqual({ args: {}, isCut: true })
    expect(shownArgs({ tree: tree(2) }, asItIs)).toEqual({ args: { tree: tree(2) }, isCut: false })
  })

  it('is read in time, whatever its texts are made of', () => {
    for (const piece of ['password', 'eyJ-', 'aws_secret_key', 'token=']) {
      const text = piece.repeat(Math.ceil(65_536 / piece.length))
      expect(cpuMsOf(() => maskText(text))).toBeLessThan(150)
    }
    expect(maskText('MY_PASSWORD_OLD=hunter22')).toBe('MY_PASSWORD_OLD=[masked]')
    // The second part of an encrypted token is no JSON.
    expect(maskText('see eyJhbGciOiJkaXIifQ.c2VjcmV0a2V5.aXZpdml2aXY now')).toBe('see [masked] now')
  })
})
