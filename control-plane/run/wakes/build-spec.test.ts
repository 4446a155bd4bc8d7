import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { taskStatuses } from '../../../shared/api/task-fields.ts'
import { aboutSvc, instructionsFor, joinedInstructions } from './build-spec.ts'

interface Command {
  name: string
  flags: { name: string }[]
}
const commands = Object.values(
  JSON.parse(readFileSync(join(import.meta.dirname, '../../../cli/arguments/command-table.json'), 'utf8')) as Record<
    string,
    Command[]
  >,
).flat()

test('every command that agents are told exists, with its flags and values', () => {
  const told = [...aboutSvc.matchAll(/`svc ([a-z][^`]*)`/g)].map(([, line]) => line!)
  expect(told.length).toBeGreaterThan(5)
  for (const line of told) {
    const command = commands.find(({ name }) => line === name || line.startsWith(`${name} `))
    expect(command, line).toBeDefined()
    const flags = [...line.matchAll(/--([a-z-]+)/g)].map(([, flag]) => flag)
    const known = command?.flags.map(({ name }) => name)
    expect(known, line).toEqual(expect.arrayContaining(flags))
  }
  for (const [, status] of aboutSvc.matchAll(/--status (\w+)/g)) expect(taskStatuses).toContain(status)
})

test('a run is given the text of svc, then the context of its workspace, then AGENT.md, and no empty one', () => {
  const all = instructionsFor({ agentMd: 'Be brief.' }, { contextMd: 'We build boats.' })
  expect(all.map(({ name }) => name)).toEqual(['svc', 'workspace context', 'AGENT.md'])
  expect(joinedInstructions(all)).toBe(`${aboutSvc}\n\nWe build boats.\n\nBe brief.`)
  expect(instructionsFor({ agentMd: ' \n' }, { contextMd: null }).map(({ name }) => name)).toEqual(['svc'])
})
