import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { HarnessLaunchError } from '../../../device-manager/harness/parts/adapter-errors.ts'
import { Connections } from '../../../device-manager/run-host/mcp-proxy/connections.ts'
import { launchHarness, layOut, type StartRequest } from '../../../device-manager/run-host/launch/launch.ts'
import { prepare, type Assignment, type Prepared } from '../../../device-manager/run-host/preparation.ts'
import { SkillsAhead } from '../../../device-manager/run-host/launch/skills-ahead.ts'
import { Timeline } from '../../../device-manager/run-host/timeline.ts'
import { StandingWall } from '../../../device-manager/run-host/standing-wall.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { runSpecFixture } from '../../kit/run-spec.ts'

// The program is looked up before the start comes; what the start says or what time has changed is looked at again.

const start = (secrets: Record<string, string> = {}): StartRequest => ({
  type: 'start',
  token: 'token',
  apiUrl: 'http://localhost',
  secrets,
})

function place(): { folder: string; tool: (folder: string) => string } {
  const folder = mkdtempSync(join(tmpdir(), 'svc-launch-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return {
    folder,
    tool(name) {
      mkdirSync(join(folder, name))
      const path = join(folder, name, 'tool')
      writeFileSync(path, `#!/bin/sh\necho "from ${name}: $PATH"\n`)
      chmodSync(path, 0o755)
      return path
    },
  }
}

async function prepared(folder: string, path: string): Promise<Prepared> {
  const assignment: Assignment = {
    type: 'assign',
    spec: runSpecFixture(realWorld.id('run_'), { command: ['tool'] }),
    fence: 1,
    env: { PATH: path },
    homeDir: folder,
    loginShell: '/bin/sh',
    svcBinDir: null,
    harnessVersion: null,
    wall: null,
  }
  return prepare(folder, assignment, {
    world: realWorld,
    log: () => {},
    wall: new StandingWall(join(folder, 'own'), realWorld, null),
    connections: new Connections({ world: realWorld, ask: () => {} }),
    timeline: new Timeline(realWorld),
    sharedWith: new Set(),
    ahead: new SkillsAhead(join(folder, 'own'), realWorld),
  })
}

async function outputOf(run: Prepared, request: StartRequest, world = realWorld): Promise<string> {
  if ('problem' in run.plan) throw run.plan.problem
  const chunks: Uint8Array[] = []
  const child = launchHarness(
    { prepared: run, plan: run.plan, start: request, world },
    { onOutput: (chunk) => chunks.push(chunk), onStderr: () => {} },
  )
  await child.closed
  return Buffer.concat(chunks).toString()
}

test('the program that was found ahead is launched', async () => {
  const { folder, tool } = place()
  tool('a')
  const run = await prepared(folder, `${join(folder, 'a')}:/usr/bin:/bin`)
  expect(await outputOf(run, start())).toContain('from a')
})

test('a secret that sets PATH decides where the program is looked for', async () => {
  const { folder, tool } = place()
  tool('a')
  tool('b')
  const run = await prepared(folder, `${join(folder, 'a')}:/usr/bin:/bin`)
  expect(await outputOf(run, start({ PATH: `${join(folder, 'b')}:/usr/bin:/bin` }))).toContain('from b')
  await expect(outputOf(run, start({ PATH: '/nowhere' }))).rejects.toThrow(HarnessLaunchError)
})

test('a program that was not there is found when it is there at the start, and one that went meanwhile is told', async () => {
  const { folder, tool } = place()
  const run = await prepared(folder, `${join(folder, 'a')}:/usr/bin:/bin`)
  const path = tool('a')
  expect(await outputOf(run, start())).toContain('from a')
  const found = await prepared(folder, `${join(folder, 'a')}:/usr/bin:/bin`)
  rmSync(path)
  const later = { ...realWorld, monotonic: () => realWorld.monotonic() + 2_000 }
  await expect(outputOf(found, start(), later)).rejects.toThrow(/was not found/)
})

test('files are copied into a home of the run, never onto its links, and what cannot be had is left out', () => {
  const { folder } = place()
  const [runDir, from, theirs] = ['run', 'from', 'theirs'].map((name) => join(folder, name)) as [string, string, string]
  const home = join(runDir, 'home')
  for (const made of [runDir, join(from, 'folder'), theirs]) mkdirSync(made, { recursive: true })
  for (const name of ['a.db', 'settings', 'z.db']) writeFileSync(join(from, name), 'new')
  writeFileSync(join(theirs, 'settings'), 'theirs')
  symlinkSync(join(theirs, 'settings'), join(from, 'link.db'))
  execFileSync('mkfifo', [join(from, 'pipe.db')])
  const links = [{ path: join(home, 'settings'), target: join(theirs, 'settings') }]
  layOut(runDir, { files: [], links, copies: [{ path: home, from }] })
  expect(readdirSync(home).toSorted()).toEqual(['a.db', 'settings', 'z.db'])
  expect(readFileSync(join(theirs, 'settings'), 'utf8')).toBe('theirs')
  layOut(runDir, { files: [], copies: [{ path: join(runDir, 'other'), from: join(folder, 'gone') }] })
  expect(readdirSync(join(runDir, 'other'))).toEqual([])
  expect(() => layOut(runDir, { files: [], copies: [{ path: theirs, from }] })).toThrow('outside')
})
