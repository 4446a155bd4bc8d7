import { isLong } from '../../kit/forms.ts'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { GivenSkill } from '../../../device-manager/harness/parts/skills.ts'
import { readSkills } from '../../../device-manager/run-host/launch/skills.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { claudeMachine, driveClaude } from '../../kit/real-claude.ts'
import { codexMachine, driveCodex } from '../../kit/real-codex.ts'
import { fetchHarness, type DrivenRun, type DriveOptions, type HarnessMachine } from '../../kit/real-harness.ts'
import { driveOpencode, opencodeMachine } from '../../kit/real-opencode.ts'
import { startStubLlm, type StubLlm, type StubStep } from '../../kit/stub-llm.ts'

// Folders of skills with the real programs; only the model's server is scripted.

let stub: StubLlm
let machine: HarnessMachine
beforeAll(async () => {
  stub = await startStubLlm()
})
afterEach(async () => {
  await machine?.remove()
})
afterAll(() => stub?.stop())

const script = (...steps: StubStep[]) => stub.script({ run: { steps } })
const asked = async () => (await stub.requests()).map(({ body }) => JSON.stringify(body)).join('\n')

function put(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** A skill of the agent's that would run programs by itself, and one that is broken. */
async function skillsOf({ home, cwd }: HarnessMachine): Promise<readonly GivenSkill[]> {
  const hook = [
    'hooks:',
    '  PreToolUse:',
    '    - hooks:',
    '        - type: command',
    `          command: touch ${cwd}/hooked`,
  ]
  const head = [
    'name: ferry',
    'description: Knows the ferries of the harbour.',
    'allowed-tools: Bash(touch *)',
    ...hook,
  ]
  const body = `Ask for the timetable. !\`touch ${cwd}/inlined\``
  put(join(home, 'team skills/ferry/SKILL.md'), ['---', ...head, '---', body, ''].join('\n'))
  put(join(home, 'team skills/ferry/refs/times.md'), 'at noon')
  put(join(home, 'team skills/lost/SKILL.md'), '---\nname: lost\ndescription: Is left out.\n')
  const read = await readSkills(['~/team skills'], { cwd, homeDir: home, ownFolders: [] }, realWorld)
  expect(read.given.map(({ name }) => name)).toEqual(['ferry'])
  expect(read.leftOut).toHaveLength(1)
  return read.given
}

interface Program {
  name: 'claude' | 'codex' | 'opencode'
  make: (binDir: string) => HarnessMachine
  drive: (options: Omit<DriveOptions, 'adapter' | 'version'>) => DrivenRun
}
const url = () => `${stub.url}/s/run`
const claudeProgram: Program = {
  name: 'claude',
  make: (binDir) => claudeMachine({ binDir, baseUrl: url(), apiKey: 'dummy' }),
  drive: (options) => driveClaude({ version: '2.1.329', ...options }),
}
const programs: Program[] = [
  {
    name: 'codex',
    make: (binDir) => codexMachine({ binDir, baseUrl: url() }),
    drive: (options) => driveCodex({ version: '0.169.0', ...options }),
  },
]
// In the short form claude shows it below; each start of opencode takes 15 s of processor time.
if (isLong)
  programs.push(claudeProgram, {
    name: 'opencode',
    make: (binDir) => opencodeMachine({ binDir, baseUrl: url() }),
    drive: driveOpencode,
  })

describe.each(programs)('$name', ({ name, make, drive }) => {
  const found = fetchHarness(name)
  if ('missing' in found) process.stderr.write(`\n*** NOT TESTED: the real ${name} is not here. ${found.missing}\n\n`)
  const binDir = 'binDir' in found ? found.binDir : ''

  it.skipIf('missing' in found)('offers its model the skills of the agent, and those alone', async () => {
    machine = make(binDir)
    const skills = await skillsOf(machine)
    await script({ text: 'I know of it.' })
    const run = drive({ machine, skills })
    expect((await run.done).outcome).toMatchObject({ exitReason: 'completed' })
    const request = await asked()
    expect(request.includes('Knows the ferries of the harbour.')).toBe(true)
    expect(request.includes('Is left out.')).toBe(false)
    expect(JSON.stringify(run.events).includes('skill_left_out')).toBe(false)
    // Where its files are; claude says it when the skill is read.
    if (name !== 'claude') expect(request.includes(join(machine.home, 'team skills/ferry'))).toBe(true)
  })
})

const claude = fetchHarness('claude')
it.skipIf('missing' in claude)(
  'claude is offered the skill, reads it when it is allowed to, and runs nothing that the skill brings',
  async () => {
    machine = claudeProgram.make('binDir' in claude ? claude.binDir : '')
    const skills = await skillsOf(machine)
    const reads: StubStep = { tool: { name: 'Skill', input: { skill: 'svc:ferry' } } }
    await script(reads, { tool: { kind: 'shell', command: 'echo made > made.txt' } }, { text: 'Done.' })
    const run = driveClaude({ machine, version: '2.1.329', skills })
    expect((await run.done).outcome).toMatchObject({ exitReason: 'completed' })
    expect(run.asks.map(({ name }) => name)).toEqual(['Skill', 'Bash'])
    const request = await asked()
    expect([request.includes('Knows the ferries of the harbour.'), request.includes('Is left out.')]).toEqual([
      true,
      false,
    ])
    expect(JSON.stringify(run.events)).not.toContain('skill_left_out')
    expect(request).toContain('Ask for the timetable.')
    expect(request).toContain(`The files of this skill are in ${join(machine.home, 'team skills/ferry')}, `)
    const { cwd } = machine
    expect(['made.txt', 'hooked', 'inlined'].filter((name) => existsSync(join(cwd, name)))).toEqual(['made.txt'])
  },
)
