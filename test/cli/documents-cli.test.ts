import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { allCommands } from '../../cli/arguments/commands.ts'
import type { Command } from '../../cli/arguments/command.ts'
import type { CommandFlag } from '../../shared/api/command.ts'
import { isSharedError } from '../../shared/api/errors.ts'
import { commandFacts, routeFacts } from '../api/contract/document-facts.ts'
import { makeHome, type Finished, type Home } from './run-svc.ts'

/** The commands as the documents write them: each is asked of the real program with `--help`. */

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

describe.each(facts)('svc $command', (fact) => {
  let help: Finished
  beforeAll(async () => {
    help = await home.svc([...fact.command.split(' '), '--help'])
  })
  const found = () => {
    const command = commands.find(({ name }) => name === fact.command)
    if (command === undefined) throw new Error(`svc has no command ${fact.command}`)
    return command
  }

  test('is there, and its help names its example, route and codes', () => {
    expect(help).toMatchObject({ status: 0, stderr: '' })
    expect(help.stdout).toContain(`Usage: svc ${fact.command}`)
    expect(help.stdout).toContain(`svc ${found().example.replace(/^svc /, '')}`)
    const routes = routeFacts.filter(({ id }) => fact.routes.includes(id))
    if (fact.local || routes.length === 0) return
    const [own] = routes.filter(({ id }) => id === found().route?.id)
    expect([fact.command, own?.id]).toEqual([fact.command, expect.any(String)])
    expect(help.stdout).toMatch(new RegExp(`^Route: ${own!.method} /api/v1`, 'm'))
    for (const code of own!.codes.filter((each) => !isSharedError(each))) expect(help.stdout).toContain(code)
  })

  test('takes the flags and arguments that are written', () => {
    const command = found()
    const flags = new Map<string, CommandFlag>(
      command.flags.flatMap((flag) => [flag.name, ...(flag.aliases ?? [])].map((name) => [`--${name}`, flag] as const)),
    )
    for (const { name, required } of fact.flags) {
      const flag = flags.get(name) ?? (name === '--workspace' ? null : undefined)
      expect([fact.command, name, flag === undefined ? 'missing' : 'there']).toEqual([fact.command, name, 'there'])
      if (flag == null) continue
      if (required) expect([name, flag.required]).toEqual([name, true])
      if (flag.hidden !== true) expect(help.stdout).toContain(`--${flag.name}`)
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
