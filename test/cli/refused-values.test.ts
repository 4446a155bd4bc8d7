import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { spellRefusal } from '../../cli/arguments/refused-values.ts'
import { acceptedForms } from '../../cli/arguments/accepted-forms.ts'
import type { Command, ParsedArguments } from '../../cli/arguments/command.ts'
import { contractCommands } from '../../cli/arguments/commands.ts'
import { parseWithYargs } from '../../cli/arguments/parse-with-yargs.ts'
import { bindValues, givenFlags, matchCommand, parseQuickly, spellingsOf } from '../../cli/arguments/parse.ts'
import { valuesOf, type Values } from '../../cli/arguments/values.ts'
import { ApiFailure, CliError } from '../../cli/errors/cli-error.ts'
import { exitNameOf, sentenceOf } from '../../cli/output/failure.ts'
import { createValidator } from '../../control-plane/http/validate.ts'
import type { CommandFlag, PositionalSpec } from '../../shared/api/command.ts'
import { ApiError } from '../../shared/api/errors.ts'
import { contract } from '../../shared/api/index.ts'
import type { AnyRoute } from '../../shared/api/route.ts'
import { schemaAt, shapeOf } from '../../shared/api/schema-shape.ts'
import { exampleWords } from './example-words.ts'
import { useRealServer } from './real-server.ts'

// A value that does not fit is told by the flag that it stands behind, with what that takes. All flags of all commands are given one that svc
// itself or the contract refuses; some are sent to a server.

let dir = ''
const long = 'x'.repeat(1_100_000)
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'svc-refused-'))
  writeFileSync(join(dir, 'long'), long)
})
afterAll(() => rmSync(dir, { recursive: true }))

const sources = {
  resolvePath: (given: string) => join(dir, given),
  readInput: () => Promise.resolve(Buffer.from('text')),
}

interface Tried {
  command: Command
  route: AnyRoute
  /** The target of the value. */
  tried: string
}

/** What a flow would find out. */
const exampleParams = ({ params }: AnyRoute) =>
  Object.fromEntries(
    Object.entries(params.shape as Record<string, z.ZodType>).map(([name, schema]) => [
      name,
      (schema.meta()?.['example'] as string | undefined) ?? '1',
    ]),
  )

/** What a flow reads from a file. */
const withContent = ({ streamed }: AnyRoute, body: Values['body']) =>
  streamed === null ? body : { ...body, [streamed.key]: 'eA==' }

/** A line that gives the value, and the refusal of svc or of the contract. */
async function refusalOf({ command, route, tried }: Tried, line: readonly string[]) {
  const bound = bindValues(command, line)
  let values: Values
  let parsed: ParsedArguments
  try {
    parsed = parseQuickly(command, bound) ?? parseWithYargs(command, bound)
    values = await valuesOf(command, parsed, sources)
  } catch (error) {
    if (error instanceof CliError) return error
    throw error
  }
  const context = { command, values, positionals: parsed.positionals, givenFlags: givenFlags(command, bound) }
  const query = new URLSearchParams(
    Object.entries(values.query).flatMap(([key, value]) =>
      [value].flat().map((item): [string, string] => [key, String(item)]),
    ),
  )
  const validator = createValidator(route)
  try {
    if (tried.startsWith('params.')) validator.params({ ...exampleParams(route), ...values.params })
    validator.query(query.toString())
    if (route.method !== 'GET') validator.body(withContent(route, values.body))
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return spellRefusal(new ApiFailure(error.status, error.toEnvelope('req_1')), context)
  }
  return null
}

/** Of these nearly every schema refuses one. */
const odd = ['', '\u0001 /\\', '-1', '999999999999', 'no such', 'a:b@c d', 'x'.repeat(300)]

/** Values that svc or the contract refuses; null: any text fits. */
function misfits(route: AnyRoute, target: string, { kind, choices }: Pick<CommandFlag, 'kind' | 'choices'>) {
  if (kind === 'file') return ['no-such-file']
  if (kind === 'boolean') return ['maybe']
  const [part, ...path] = target.split('.') as ['params' | 'query' | 'body', ...string[]]
  const schema = schemaAt(route[part], path) as z.ZodType
  const isList = shapeOf(schema).kind === 'array'
  const fits = (text: string) => {
    if (kind === 'number' && text === '') return false
    const value: unknown =
      kind === 'json' ? JSON.parse(text) : kind === 'number' && !Number.isNaN(Number(text)) ? Number(text) : text
    return schema.safeParse(isList && kind !== 'json' ? [value] : value).success
  }
  if (choices !== undefined) return ['no such', '']
  if (kind === 'json') return ['{', ...['1', '[1]', '"x"', '{"a":[]}'].filter((text) => !fits(text))]
  const refused = odd.filter((text) => !fits(text))
  const longest = fits(long) ? [] : [long]
  return refused.length > 0 ? refused : longest.length > 0 ? longest : null
}

const wordsOf = (command: Command) => matchCommand([command], exampleWords(command.example))!.rest

/** The words of the example without the flag and those that give the same. */
function exampleWithout(command: Command, target: string | null): string[] {
  const others = command.flags.filter((flag) => flag.target === target).flatMap(spellingsOf)
  const words = bindValues(command, wordsOf(command)).filter((word) => !others.includes(word.split('=', 1)[0]!))
  const at = command.positionals.findIndex((positional) => positional.target === target)
  const positionals = words.filter((word) => !/^--?[a-z]/.test(word))
  return at === -1 ? words : words.filter((word) => word !== positionals[at])
}

/** The words of the example with another value for a positional. */
function exampleWith(command: Command, positional: PositionalSpec, value: string): string[] {
  const words = bindValues(command, wordsOf(command))
  const flags = words.filter((word) => /^--?[a-z]/.test(word))
  const given = words.filter((word) => !/^--?[a-z]/.test(word))
  const at = command.positionals.indexOf(positional)
  return [
    ...flags,
    '--',
    ...command.positionals
      .slice(0, Math.max(at + 1, given.length))
      .map(({ name }, place) => (place === at ? value : (given[place] ?? name))),
  ]
}

const leaks = /Invalid|\bexpected|\breceived|Too (?:small|big)|Unrecognized|\/\^|body\.|query\.|params\.|must match/

function judge(error: unknown, spelling: string, isUsage = true): string[] {
  const said = sentenceOf(error, false)
  const status = exitNameOf(error)
  return [
    status === 'usage' || !isUsage ? '' : `${status} is no usage error`,
    said.includes(spelling) ? '' : `it does not name ${spelling}`,
    /[Ii]t takes |which takes |takes no value|takes a number|cannot be read|needs a value|does not fit: |names nothing/.test(
      said,
    )
      ? ''
      : 'it does not say what is taken',
    leaks.test(said.replaceAll(/`[^`]*`/g, '')) ? 'it has words of a schema' : '',
  ]
    .filter((problem) => problem !== '')
    .map((problem) => `${problem}: ${said.slice(0, 300)}`)
}

describe('a value that does not fit', () => {
  const routeOf = new Map(contract.flatMap((route) => route.commands.map((spec) => [spec.command, route] as const)))

  test('is told by its flag, with what that takes, for every flag of every command', async () => {
    const problems: string[] = []
    const free: string[] = []
    let refused = 0
    for (const command of contractCommands()) {
      const route = routeOf.get(command.name)!
      for (const flag of command.flags) {
        if (flag.target === null || flag.dropped === true) continue
        const values = misfits(route, flag.target, flag)
        if (values === null) free.push(`${command.name} --${flag.name}`)
        const rest = exampleWithout(command, flag.target)
        const isUsage = !(flag.target.startsWith('params.') && route.malformedParam === 'resource_not_found')
        const found: string[] = []
        for (const value of values ?? []) {
          const error = await refusalOf({ command, route, tried: flag.target }, [`--${flag.name}=${value}`, ...rest])
          refused += 1
          found.push(...(error === null ? [`${value} is taken`] : judge(error, `--${flag.name}`, isUsage)))
        }
        problems.push(...found.slice(0, 1).map((problem) => `svc ${command.name} --${flag.name}: ${problem}`))
      }
    }
    expect(problems).toEqual([])
    expect(refused).toBeGreaterThan(1_000)
    // Of these any text fits.
    expect(free).toEqual([])
  })

  test('is told by its positional', async () => {
    const problems: string[] = []
    let refused = 0
    for (const command of contractCommands()) {
      const route = routeOf.get(command.name)!
      for (const positional of command.positionals.filter(({ target }) => target !== null)) {
        const found: string[] = []
        // Of some routes a malformed id is nothing that is there.
        const isUsage = route.malformedParam !== 'resource_not_found'
        for (const value of misfits(route, positional.target!, { kind: 'string' }) ?? []) {
          const error = await refusalOf(
            { command, route, tried: positional.target! },
            exampleWith(command, positional, value),
          )
          refused += 1
          found.push(...(error === null ? [`${value} is taken`] : judge(error, `<${positional.name}>`, isUsage)))
        }
        problems.push(...found.slice(0, 1).map((problem) => `svc ${command.name}: ${problem}`))
      }
    }
    expect(problems).toEqual([])
    expect(refused).toBeGreaterThan(200)
  })

  test('every flag that is sent has its form, and no pattern is without words', () => {
    for (const { name, flags } of contractCommands())
      for (const { name: flag, target } of flags)
        if (target !== null)
          expect([name, flag, acceptedForms(name)[`--${flag}`]]).toEqual([
            name,
            flag,
            expect.stringMatching(/^[^/^]{4,}/),
          ])
  })
})

describe('a server refuses', () => {
  const real = useRealServer()

  test.each([
    [
      ['run', 'list', '--limit', '0'],
      2,
      '--limit cannot be `0`: must be at least 1. It takes a whole number from 1 to 100.',
    ],
    [['run', 'list', '--limit', 'ten'], 2, '--limit cannot be `ten`. It takes a whole number from 1 to 100.'],
    [['run', 'list', '--since', 'monday'], 2, '--since cannot be `monday`. It takes a date or a time with its zone,'],
    [['run', 'get', 'run_1'], 2, '<run> cannot be `run_1`. It takes an id such as run_3nB7cW1yHsD5jK9q, or `current`'],
    [
      ['task', 'create', '--title', ''],
      2,
      '--title cannot be ``: must not be empty. It takes text of 1 to 500 characters.',
    ],
    [['agent', 'create', '--name', 'x', '--harness', 'emacs'], 2, '--harness cannot be `emacs`. It takes '],
    [['task', 'create'], 2, '`svc task create` needs --title.'],
    [['run', 'list', '--limit'], 2, '--limit needs a value. It takes a whole number from 1 to 100.'],
    [
      ['costs', '--timezone', 'Mars'],
      2,
      '--timezone cannot be `Mars`: Must be an IANA time zone, such as Europe/Berlin',
    ],
    [
      ['task', 'create', '--title', 'x', '--description-file', 'gone.md'],
      2,
      '--description-file: the file gone.md cannot be read',
    ],
    [['agent', 'get', '@nobody'], 1, 'at: <agent> `@nobody`, which takes an `agt_` id, a @handle,'],
    [['agent', 'get', ''], 2, '<agent> is empty: it names nothing.'],
  ])('%j', async (line, status, said) => {
    const end = await real.svc([...line, '-o', 'table'])
    expect([end.status, end.stdout]).toEqual([status, ''])
    expect(end.stderr).toContain(said)
  })

  test('and a program reads beside its answer which flags are meant', async () => {
    const end = await real.svc(['run', 'list', '--limit', '0'])
    expect(JSON.parse(end.stderr)).toMatchObject({
      error: {
        code: 'validation_error',
        param: 'limit',
        arguments: [{ spelling: '--limit', message: expect.stringContaining('from 1 to 100') }],
      },
    })
  })

  test('and what it was given cannot steer the terminal', async () => {
    const end = await real.svc(['run', 'get', 'run_\u001b[2J\u202e', '-o', 'table'])
    expect(end.stderr).toContain('<run> cannot be')
    for (const steering of ['\u001b', '\u202e']) expect(end.stderr).not.toContain(steering)
  })
})
