import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { allCommands } from '../../cli/arguments/commands.ts'
import type { Command } from '../../cli/arguments/command.ts'
import type { CommandFlag } from '../../shared/api/command.ts'
import { helpOf } from '../../cli/arguments/help.ts'
import { matchCommand } from '../../cli/arguments/parse.ts'
import { isSharedError } from '../../shared/api/errors.ts'
import { commandFacts, routeFacts } from '../api/contract/document-facts.ts'
import { isLong } from '../kit/forms.ts'
import { makeHome, type Home } from './run-svc.ts'

// The commands as the documents write them, by their help; some of them, or all in the long form, are asked of the real program.

let home: Home
let commands: readonly Command[]
beforeAll(async () => {
  home = makeHome()
  commands = await allCommands()
})
afterAll(() => home.remove())

/** Facts whose words are not a command line. */
const facts = commandFacts.map((fact) => ({ ...fact, command: fact.command.replace(' (name not shown)', '') }))

/** Positionals as the documents write them: `<run...>`, `[agent]`; what is not in brackets says only what they are. */
function written(args: readonly string[]) {
  return args.flatMap((text) =>
    [...text.matchAll(/([<[])([^>\]]+?)(\.\.\.)?[>\]]/g)].map((match) => ({
      isRequired: match[1] === '<',
      isVariadic: match[3] !== undefined,
    })),
  )
}

/** Flags that are needed unless another one is given, which is ours; the commands' own tests show that they refuse neither. */
const orAnother: ReadonlyMap<string, string> = new Map([
  ['skill create --file', '--dir'],
  ['skill replace-bundle --file', '--dir'],
])

/** Where standard output is no terminal. */
const lineChars = 100
/** Of the contract's commands, which are loaded first, and of those of this machine a few. */
const asked = [true, false].flatMap((isLocal) => facts.filter(({ local }) => local === isLocal).slice(0, 3))
const isAskedOfProgram = (fact: (typeof facts)[number]): boolean => isLong || asked.includes(fact)

describe.each(facts)('svc $command', (fact) => {
  const found = () => {
    const match = matchCommand(commands, fact.command.split(' '))
    if (match?.command.name !== fact.command) throw new Error(`svc has no command ${fact.command}`)
    return match.command
  }

  test('is there, and its help names its example, route and codes', async () => {
    const help = await helpOf(found(), lineChars)
    if (isAskedOfProgram(fact))
      expect(await home.svc([...fact.command.split(' '), '--help'])).toEqual({
        status: 0,
        stdout: `${help}\n`,
        stderr: '',
      })
    expect(help).toContain(`Usage: svc ${fact.command}`)
    expect(help).toContain(`svc ${found().example.replace(/^svc /, '')}`)
    const routes = routeFacts.filter(({ id }) => fact.routes.includes(id))
    if (fact.local || routes.length === 0) return
    const [own] = routes.filter(({ id }) => id === found().route?.id)
    expect([fact.command, own?.id]).toEqual([fact.command, expect.any(String)])
    expect(help).toMatch(new RegExp(`^Route: ${own!.method} /api/v1`, 'm'))
    for (const code of own!.codes.filter((each) => !isSharedError(each))) expect(help).toContain(code)
  })

  test('takes the flags and arguments that are written', async () => {
    const command = found()
    const help = await helpOf(command, lineChars)
    const flags = new Map<string, CommandFlag>(
      command.flags.flatMap((flag) => [flag.name, ...(flag.aliases ?? [])].map((name) => [`--${name}`, flag] as const)),
    )
    for (const { name, required } of fact.flags) {
      const flag = flags.get(name) ?? (name === '--workspace' ? null : undefined)
      expect([fact.command, name, flag === undefined ? 'missing' : 'there']).toEqual([fact.command, name, 'there'])
      if (flag == null) continue
      const other = orAnother.get(`${fact.command} ${name}`)
      if (other !== undefined) expect([fact.command, other, flags.has(other)]).toEqual([fact.command, other, true])
      else if (required) expect([name, flag.required]).toEqual([name, true])
      if (flag.hidden !== true) expect(help).toContain(`--${flag.name}`)
    }
    const given = command.positionals
    for (const [at, { isRequired, isVariadic }] of written(fact.args).entries()) {
      const positional = given[at]
      const mayLeaveOut = positional?.default !== undefined || positional?.isOptional === true
      expect([fact.command, at, positional !== undefined, !mayLeaveOut]).toEqual([fact.command, at, true, isRequired])
      if (isVariadic) expect(positional?.variadic).toBe(true)
    }
    // A document that shows no argument shows a line that works without one.
    const needed = given.slice(written(fact.args).length)
    expect(needed.filter((each) => each.default === undefined && each.isOptional !== true)).toEqual([])
  })
})

test('a command that is not there is refused, with status 2', async () => {
  const end = await home.svc(['agent', 'launch'])
  expect([end.status, end.stdout]).toEqual([2, ''])
})
