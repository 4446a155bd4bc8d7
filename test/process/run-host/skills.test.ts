import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isLong } from '../../kit/forms.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import { placeClaude, recording } from './claude-stand-in.ts'
import { specOf, spooled, testDevice, type TestDevice } from './host-client.ts'

// A real run host with a stand-in for claude: the skills of a run are read before it starts, and told with its start.

let device: TestDevice
let bin: string
beforeAll(() => {
  device = testDevice()
  bin = placeClaude(device)
  const folder = join(device.workDir, 'skills', 'knots')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'SKILL.md'), '---\nname: knots\ndescription: Ties a bowline.\n---\nMake a loop.\n')
})
afterAll(() => device.remove())

const permissions = { allow: ['Bash'], ask: [], deny: [], defaultMode: 'ask' as const }

async function play(change: Partial<RunSpec>) {
  const host = await device.host()
  const folder = { shortId: 'fs_1', rootPath: device.workDir }
  const spec = specOf(device, { harness: 'claude', command: null, folder, permissions, prompt: 'Go on.', ...change })
  const heard = join(device.workDir, `${spec.runId}.heard`)
  await host.connect()
  const env = {
    PATH: `${bin}:${dirname(process.execPath)}:/usr/bin:/bin`,
    PLAYER_RECORDING: recording,
    PLAYER_ANSWERS: join(device.workDir, `${spec.runId}.answers`),
    PLAYER_HEARD: heard,
  }
  host.assign(spec, { env, homeDir: join(device.workDir, 'home') })
  await host.reply('prepared')
  host.start()
  await host.reply('ended')
  await host.left()
  return {
    ...spooled(device, spec.runId),
    heard: JSON.parse(readFileSync(heard, 'utf8')) as { args: string[]; prompt: string },
  }
}

test('they are told with what is left out, and a session goes on only with the skills that it has', async () => {
  const skillFolders = ['skills', '~/none']
  const { events, heard } = await play({ skillFolders })
  expect(events.slice(0, 3).map(({ kind, data }) => [kind, data])).toMatchObject([
    ['started', {}],
    ['skills', { folders: [{ folder: 'skills', skills: [{ name: 'knots' }] }] }],
    ['error', { class: 'skill_left_out', message: expect.stringContaining('~/none: there is no such folder') }],
  ])
  expect(heard.args.some((arg) => arg.startsWith('--plugin-dir='))).toBe(true)
  const digest = String(events[1]!.data['digest'])

  const resumed = (args: string[]) => args.filter((arg) => arg.startsWith('--resume'))
  const goesOn = { skillFolders, resumeSessionId: 's1' }
  const cases = [
    [digest, ['--resume=s1'], 'Go on.'],
    ['another', [], 'Begin.'],
    ...(isLong ? [[null, [], 'Begin.'] as const] : []),
  ] as const
  for (const [before, args, prompt] of cases) {
    const next = await play({ ...goesOn, sessionSkills: { digest: before, promptAnew: 'Begin.' } })
    expect([before, resumed(next.heard.args)]).toEqual([before, args])
    expect(next.heard.prompt).toContain(prompt)
  }
})

test('the skill that is built in is given and told, and is no part of what a session has', async () => {
  const hasSvcSkill = true
  const alone = await play({ hasSvcSkill, resumeSessionId: 's1' })
  expect(alone.heard.args).toContain('--resume=s1')
  expect(alone.heard.args.some((arg) => arg.startsWith('--plugin-dir='))).toBe(true)
  // Skills of the person may go on running commands while they are read.
  expect(alone.heard.args.join(' ')).not.toContain('disableSkillShellExecution')
  const version = expect.stringMatching(/^[0-9a-f]{12}$/)
  const workspace = { skills: [{ name: 'svc', version }], leftOut: [] }
  expect(alone.events[1]).toMatchObject({ kind: 'skills', data: { folders: [], workspace } })

  const skillFolders = ['skills']
  const digestOf = async (change: Partial<RunSpec>) => {
    const { events, heard } = await play({ skillFolders, ...change })
    expect(heard.args.join(' ')).toContain('disableSkillShellExecution')
    return events[1]!.data['digest']
  }
  expect(await digestOf({ hasSvcSkill })).toBe(await digestOf({}))

  mkdirSync(join(device.workDir, 'skills', 'svc'))
  writeFileSync(join(device.workDir, 'skills', 'svc', 'SKILL.md'), '---\nname: svc\ndescription: Ours.\n---\nOurs.\n')
  const { events } = await play({ skillFolders, hasSvcSkill })
  rmSync(join(device.workDir, 'skills', 'svc'), { recursive: true })
  expect(events[1]!.data).not.toHaveProperty('workspace')
  expect(events[1]!.data).toMatchObject({ folders: [{ skills: [{ name: 'knots' }, { name: 'svc' }] }] })
  expect(events.map(({ kind }) => kind)).not.toContain('error')
})

test('nothing is looked for where the agent names none', async () => {
  const plain = await play({})
  expect(plain.events.map(({ kind }) => kind)).not.toContain('skills')
  expect(plain.heard.args.some((arg) => arg.startsWith('--plugin-dir='))).toBe(false)
})
