import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { svcSkill } from '../../shared/runs/svc-skill.ts'
import { exampleWords } from '../../test/cli/example-words.ts'
import { allCommands } from './commands.ts'
import { bindValues, matchCommand, parseQuickly } from './parse.ts'
import { parseWithYargs } from './parse-with-yargs.ts'
import { valuesOf } from './values.ts'

// The skill that tells agents how to use `svc`.

const folder = mkdtempSync(join(tmpdir(), 'svc-skill-'))
// Stands for each file that a line names.
const file = join(folder, 'file')
writeFileSync(file, '{}')
afterAll(() => rmSync(folder, { recursive: true }))

const lines = svcSkill.body.split('\n').flatMap((line) => /^ {4}(svc .*)/.exec(line)?.[1] ?? [])

test('the skill is short, and names every part of svc that it promises', () => {
  expect(svcSkill.file.split('\n').length).toBeLessThan(150)
  const parts = new Set(lines.map((line) => line.split(' ')[1]))
  for (const part of ['task', 'comment', 'wiki', 'file', 'learning', 'question', 'approval', 'run'])
    expect([part, parts.has(part)]).toEqual([part, true])
})

test.each(lines)('`%s` is a command line of svc that an agent may use', async (line) => {
  const commands = await allCommands()
  const match = matchCommand(commands, exampleWords(line))
  expect(match).not.toBeNull()
  const { command } = match!
  const rest = bindValues(command, match!.rest)
  const parsed = parseQuickly(command, rest) ?? parseWithYargs(command, rest)
  const readInput = () => Promise.resolve(Buffer.from('{}'))
  await expect(valuesOf(command, parsed, { resolvePath: () => file, readInput })).resolves.toBeDefined()
  expect(command.route?.callers ?? 'agents').toContain('agents')
})
