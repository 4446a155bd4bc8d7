import { pathResolver } from '../machine/input.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bindValues, flagsFor, matchCommand, parseQuickly, spellingsOf } from './parse.ts'
import { parseWithYargs } from './parse-with-yargs.ts'
import type { Command, ParsedArguments } from './command.ts'
import { allCommands, contractCommands } from './commands.ts'
import { CliError } from '../errors/cli-error.ts'
import type { CommandFlag } from '../../shared/api/command.ts'
import { valuesOf } from './values.ts'

const commandNamed = (name: string) => contractCommands().find((command) => command.name === name)!

/** The last value of each flag, and all of repeatable ones: what valuesOf makes of them. */
const outcomeOf = (read: () => ParsedArguments | null) => {
  try {
    const parsed = read()
    return parsed === null ? null : { positionals: parsed.positionals, flags: parsed.flags }
  } catch (error) {
    if (error instanceof CliError) return { refused: error.message }
    throw error
  }
}

describe('the two readers of command lines', () => {
  test('agree wherever the fast one gives an answer', () => {
    const commands = contractCommands()
    const lines = fc.constantFrom(...commands).chain((command) => {
      const value = fc.oneof(
        fc.constantFrom(
          'x',
          '1',
          'true',
          '',
          'a b',
          '-1',
          '- do this',
          '@builder',
          'a=b',
          'queued',
          '--',
          '-x',
          'ünï',
          'a.b',
          '0x10',
          '007',
          '1e3',
        ),
        fc.string({ maxLength: 8, unit: 'grapheme' }).filter((text) => !text.includes('\0')),
      )
      const flag = fc.constantFrom(...command.flags.map((each) => each.name), 'output', 'workspace', 'bogus')
      const piece = fc.oneof(
        value.map((text) => [text]),
        fc.tuple(flag, value).map(([name, text]) => [`--${name}`, text]),
        fc.tuple(flag, value).map(([name, text]) => [`--${name}=${text}`]),
        flag.map((name) => [`--${name}`]),
        flag.map((name) => [`--no-${name}`]),
      )
      return fc.tuple(
        fc.constant(command),
        fc.array(piece, { maxLength: 5 }).map((pieces) => pieces.flat()),
      )
    })
    fc.assert(
      fc.property(lines, ([command, line]) => {
        const bound = bindValues(command, line)
        const quick = outcomeOf(() => parseQuickly(command, bound))
        if (quick === null || 'refused' in quick) return
        expect(
          outcomeOf(() => parseWithYargs(command, bound)),
          JSON.stringify([command.name, bound]),
        ).toEqual(quick)
      }),
      { numRuns: 1500, seed: 7 },
    )
  })
})

describe('the two readers of the command lines of all commands', () => {
  /** Lines that the command takes, and that the fast reader must read: yargs would double the time of the call. */
  const plainLines = (command: Command, flags: readonly CommandFlag[]): string[][] => {
    const needed = command.positionals.map(({ name }) => name)
    const values = flags.filter(({ kind, bare }) => kind !== 'boolean' && bare === undefined)
    const switches = flags.filter(({ kind }) => kind === 'boolean')
    return [
      needed,
      [...needed, ...values.flatMap((flag) => [`--${flag.name}`, valueFor(flag)])],
      [...values.map((flag) => `--${flag.name}=${valueFor(flag)}`), ...needed],
      [...needed, ...values.flatMap(({ name }) => [`--${name}=- one`, `--${name}`, '- more'])],
      [...needed, ...values.map(({ name }) => `--${name}=`)],
      [...needed, ...switches.flatMap(({ name }) => [`--${name}`, `--${name}`])],
    ]
  }
  const otherLines = (command: Command, flags: readonly CommandFlag[]): string[][] => {
    const needed = command.positionals.map(({ name }) => name)
    return [
      [],
      [...needed, 'more', 'words'],
      [...needed, '--no-such-flag'],
      ['--', ...needed, '--output'],
      ...flags.flatMap((flag) => [
        ...spellingsOf(flag).flatMap((spelling) => [
          [...needed, spelling],
          [spelling, '--output', 'json', ...needed],
        ]),
        [...needed, `--no-${flag.name}`],
      ]),
      ...flags
        .filter(({ kind }) => kind === 'boolean')
        .flatMap(({ name }) => [
          [`--${name}`, 'false', ...needed],
          [...needed, `--${name}=true`],
        ]),
    ]
  }
  const valueFor = ({ choices, kind }: CommandFlag) => choices?.[0] ?? (kind === 'number' ? '7' : 'a value')

  test('agree on every flag in every spelling, and the fast one reads all that is plain', async () => {
    const commands = await allCommands()
    expect(commands.length).toBeGreaterThan(200)
    for (const command of commands) {
      const flags = flagsFor(command)
      const plain = plainLines(command, flags)
      for (const line of [...plain, ...otherLines(command, flags)]) {
        const bound = bindValues(command, line)
        const quick = outcomeOf(() => parseQuickly(command, bound))
        const said = JSON.stringify([command.name, line])
        if (plain.includes(line)) expect(quick, said).not.toBeNull()
        if (quick !== null)
          expect(
            outcomeOf(() => parseWithYargs(command, bound)),
            said,
          ).toEqual(quick)
      }
    }
  })
})

describe('a command line', () => {
  const values = async (name: string, line: readonly string[]) => {
    const command = commandNamed(name)
    const bound = bindValues(command, line)
    const parsed = parseQuickly(command, bound) ?? parseWithYargs(command, bound)
    return valuesOf(command, parsed, {
      resolvePath: pathResolver(),
      readInput: () => Promise.resolve(Buffer.from('from input')),
    })
  }

  test('selects the command with the longest matching name', () => {
    expect(matchCommand(contractCommands(), ['agent', 'config', 'set', '@a'])).toMatchObject({
      command: { name: 'agent config set' },
      rest: ['@a'],
    })
    expect(matchCommand(contractCommands(), ['agent', 'fly'])).toBeNull()
  })

  test('may contain a value that begins with a dash', async () => {
    const { body } = await values('run create', ['--agent', '@a', '--prompt', '- first --wait'])
    expect(body).toEqual({ prompt: '- first --wait' })
  })

  test('uses the default duration of --wait when none is given, also before another flag', async () => {
    expect((await values('run create', ['--agent', '@a', '--wait'])).local).toEqual({ wait: 300_000 })
    expect((await values('run create', ['--wait', '--agent', '@a'])).local).toEqual({ wait: 300_000 })
    expect((await values('run create', ['--wait', '5000', '--agent', '@a'])).local).toEqual({ wait: 5000 })
    expect((await values('run create', ['--wait=5000', '--agent', '@a'])).local).toEqual({ wait: 5000 })
  })

  test('true and false behind a switch are its value, and no positional that is left out', async () => {
    expect((await values('plugin install', ['--dir', '.', '--enabled', 'false'])).body).toEqual({ enabled: false })
    expect((await values('plugin install', ['acme/x', '--enabled', 'true'])).body).toEqual({
      url: 'acme/x',
      enabled: true,
    })
    expect((await values('plugin install', ['--enabled', '--', 'true'])).body).toEqual({ url: 'true', enabled: true })
  })

  test('types numbers, booleans and words for null, and nests dotted targets', async () => {
    const line = [
      '@a',
      '--max-turns',
      '20',
      '--model',
      'none',
      '--no-wake-on-hook',
      '--allow',
      'Read',
      '--allow',
      'Bash',
      '--deny',
      'none',
      '--replace-ask',
      'Write',
    ]
    expect((await values('agent config set', line)).body).toEqual({
      config: {
        runtime: { maxTurns: 20, model: null, triggers: { wakeOnHook: false } },
        permissions: { tools: { ask: ['Write'] } },
      },
      addRules: { allow: ['Read', 'Bash'], deny: null },
    })
  })

  test('takes several words of a closed list at once, with commas', async () => {
    const both = { status: ['queued', 'running', 'failed'] }
    expect((await values('run list', ['--status', 'queued,running', '--status', 'failed'])).query).toMatchObject(both)
    await expect(values('run list', ['--status', 'queued,'])).rejects.toThrow('cannot be ``')
    // Text of people has commas of its own.
    expect((await values('agent config set', ['@a', '--allow', 'Bash(a, b)'])).body).toEqual({
      addRules: { allow: ['Bash(a, b)'] },
    })
  })

  test('reads a file flag from standard input, and refuses two flags for one value', async () => {
    const line = ['--agent', '@a', '--prompt-file', '-']
    expect((await values('run create', line)).body).toEqual({ prompt: 'from input' })
    await expect(values('run create', [...line, '--prompt', 'x'])).rejects.toThrow('cannot be given together')
  })

  test('reports the flags that are accepted and ignored', async () => {
    const parsed = await values('agent run', ['@a', '--model', 'x', '--prompt', 'p'])
    expect(parsed).toMatchObject({ dropped: ['model'], body: { prompt: 'p' }, params: { agentId: '@a' } })
  })

  test.each([
    ['run get', [], 'needs <run>'],
    ['run cancel', ['current', 'again'], 'does not take `again`'],
    ['run get', ['current', '--bogus'], 'There is no flag --bogus.'],
    ['run create', ['--prompt', 'x'], 'needs --agent'],
    ['run list', ['--limit', 'many'], 'takes a whole number from 1 to 100'],
    ['run list', ['--status', 'lost'], 'cannot be `lost`'],
    ['run create', ['--agent', '--prompt', 'x'], '--agent needs a value'],
    ['run create', ['--agent', '@a', '--no-prompt'], 'There is no flag --no-prompt.'],
    ['run create', ['--agent', '@a', '--no-wait'], 'There is no flag --no-wait.'],
    ['run list', ['--no-status'], 'There is no flag --no-status.'],
    ['run output', ['--data', '{'], 'is not JSON'],
  ])('%s %j is refused: %s', async (name, line, message) => {
    await expect(values(name, line)).rejects.toThrow(message)
    await expect(values(name, line)).rejects.toMatchObject({ exit: 'usage' })
  })
})

describe('a value that is given twice or to a flag that takes none', () => {
  const refused = (name: string, line: readonly string[]) => {
    const command = commandNamed(name)
    const bound = bindValues(command, line)
    const read = async () =>
      valuesOf(command, parseQuickly(command, bound) ?? parseWithYargs(command, bound), {
        resolvePath: pathResolver(),
        readInput: async () => Buffer.from('from input'),
      })
    return read().then(
      ({ query, body }) => ({ query, body }),
      (error: unknown) => (error instanceof CliError ? error.message : error),
    )
  }

  test.each(['comment add', 'task comment add', 'conversation message post', 'conversation send'])(
    '%s has one text',
    async (name) => {
      for (const flag of ['--body', '--body-file'])
        expect(await refused(name, ['T', 'text', flag, '-'])).toBe(`<text> and ${flag} cannot be given together.`)
    },
  )

  test.each(['--archived=maybe', '--archived=', '--archived=1', '--no-archived=maybe'])('%s', async (word) => {
    expect(await refused('task list', [word])).toContain(`${word.split('=')[0]} takes no value`)
  })

  test('true and false are values of a switch', async () => {
    expect(await refused('task list', ['--archived=true'])).toMatchObject({ query: { archived: true } })
    expect(await refused('task list', ['--archived=false'])).toMatchObject({ query: { archived: false } })
  })

  test.each(['none', 'null'])('folder set-repo takes %s for no repo', async (word) => {
    expect(await refused('folder set-repo', ['fs_0mN4bV8cQwE2rT6y', word])).toMatchObject({ body: { repoId: null } })
  })
})
