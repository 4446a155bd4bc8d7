import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { realWorld } from '../../shared/lib/world.ts'
import { harnesses, harnessNames } from '../../shared/runs/harnesses.ts'
import type { HarnessProbe, ProbeResult } from './adapter.ts'
import { harnessDetector } from './detect-all.ts'
import { lowestVersions } from './parts/lowest-versions.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-detect-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const said = (stdout: string): ProbeResult => ({ exitCode: 0, stdout, stderr: '', timedOut: false })

/** A machine with these programs; notes what was run on it. */
function machine(programs: Record<string, (args: readonly string[]) => ProbeResult>) {
  const runs: string[] = []
  const paths = new Map(Object.keys(programs).map((name) => [name, join(folder, name)]))
  for (const path of paths.values()) writeFileSync(path, '')
  const probe: HarnessProbe = {
    env: {},
    homeDir: folder,
    which: (name) => Promise.resolve(paths.get(name) ?? null),
    exists: () => Promise.resolve(false),
    readStart: () => Promise.resolve(null),
    run(file, args) {
      const name = [...paths].find(([, path]) => path === file)?.[0] ?? ''
      runs.push(`${name} ${args.join(' ')}`)
      return Promise.resolve(programs[name]?.(args) ?? said(''))
    },
  }
  return { probe, runs, paths }
}
const claude = (loggedIn: boolean) => (args: readonly string[]) =>
  said(args[0] === '--version' ? '2.1.329 (Claude Code)\n' : JSON.stringify({ loggedIn, authMethod: 'none' }))
const world = () => {
  let now = 0
  return { ...realWorld, monotonic: () => now, pass: (ms: number) => void (now += ms) }
}

describe('readiness', () => {
  it('names every harness, with what is installed and what to do where it is not', async () => {
    const readiness = await harnessDetector({ world: world() }).detect(machine({}).probe)
    expect(Object.keys(readiness).sort()).toEqual([...harnessNames].sort())
    expect(readiness['command']).toMatchObject({ installed: true })
    expect(readiness['claude']).toMatchObject({ installed: false, message: expect.stringContaining('npm install -g') })
  })

  it.each([true, false])('says whether claude is signed in: %s', async (loggedIn) => {
    const detector = harnessDetector({ world: world() })
    const readiness = await detector.detect(machine({ claude: claude(loggedIn) }).probe)
    expect(readiness['claude']).toMatchObject({ installed: true, version: '2.1.329', signedIn: loggedIn })
    expect(readiness['claude']?.message === null).toBe(loggedIn)
    expect(detector.versionOf('claude')).toBe('2.1.329')
  })

  it('tells the accounts of subscriptions apart, and says of none whose it is', async () => {
    const signedIn = (account: object) => (args: readonly string[]) =>
      said(args[0] === '--version' ? '2.1.329 (Claude Code)\n' : JSON.stringify({ loggedIn: true, ...account }))
    const accountOf = async (account: object) =>
      (await harnessDetector({ world: world() }).detect(machine({ claude: signedIn(account) }).probe))['claude']
        ?.account
    const ada = { email: 'ada@example.com', orgId: 'org-1' }
    const known = await accountOf(ada)
    expect(known).toMatch(/^[0-9a-f]{32}$/)
    expect(await accountOf(ada)).toBe(known)
    for (const other of [
      { ...ada, email: 'bob@example.com' },
      { ...ada, orgId: 'org-2' },
    ])
      expect(await accountOf(other)).not.toBe(known)
    // A key, of which claude tells no account, and an answer of another shape.
    expect(await accountOf({})).toBeUndefined()
    expect(await accountOf({ email: 7 })).toBeUndefined()
  })

  it('does not guess where claude does not answer', async () => {
    const slow: ProbeResult = { exitCode: null, stdout: '', stderr: '', timedOut: true }
    const readiness = await harnessDetector({ world: world() }).detect(machine({ claude: () => slow }).probe)
    expect(readiness['claude']).toMatchObject({ installed: true, version: null, signedIn: null })
    expect(readiness['claude']?.message).toContain('did not answer within 15 s')
  })

  it.each(['claude', 'codex', 'opencode'] as const)(
    'says of %s that it is too old, and how it is updated',
    async (name) => {
      const { version, update } = lowestVersions.get(name)!
      const readinessOf = async (text: string, exitCode = 0) => {
        const program = ([first]: readonly string[]) => ({
          ...said(first === '--version' ? text : '{"loggedIn":false}'),
          exitCode: first === '--version' ? exitCode : 0,
        })
        return (await harnessDetector({ world: world() }).detect(machine({ [name]: program }).probe))[name]!
      }
      expect(await readinessOf(`${name}-cli 0.0.1\n`)).toMatchObject({
        installed: true,
        version: '0.0.1',
        tooOld: true,
        message: `${name} 0.0.1 is too old: svc needs ${version} or newer; update it with: ${update}`,
      })
      for (const fine of [
        version,
        `v${version}`,
        `${name} ${version}-alpha.1`,
        '0.0.0',
        'unknown',
        `shim 0.0.2\n${version}`,
      ])
        expect((await readinessOf(fine)).tooOld, fine).toBeUndefined()
      expect((await readinessOf('error in 0.0.1\n', 1)).tooOld).toBeUndefined()
    },
  )

  it('takes a program again that was updated', async () => {
    let version = '0.0.1'
    const program = ([first]: readonly string[]) => said(first === '--version' ? version : '{"loggedIn":true}')
    const { probe, paths } = machine({ claude: program })
    const detector = harnessDetector({ world: world() })
    expect((await detector.detect(probe))['claude']).toMatchObject({ tooOld: true })
    version = lowestVersions.get('claude')!.version
    utimesSync(paths.get('claude')!, 1, 1)
    expect((await detector.detect(probe))['claude']).toEqual({
      installed: true,
      version,
      signedIn: true,
      message: null,
    })
  })

  it('knows the lowest version of every program that can be had for tests', () => {
    const programs = harnessNames.flatMap((name) => harnesses[name].programs)
    expect(programs.filter((program) => !lowestVersions.has(program))).toEqual(['cursor-agent'])
  })

  it.each([
    ['{"status":"authenticated","isAuthenticated":true}', true, null],
    ['{"isAuthenticated":false}', false, expect.stringContaining('cursor-agent login')],
    ['Not logged in', null, null],
  ])('says whether Cursor is signed in: %s', async (status, signedIn, message) => {
    const cursor = ([first]: readonly string[]) => said(first === '--version' ? '2026.07.20-ab12\n' : status)
    const readiness = await harnessDetector({ world: world() }).detect(machine({ 'cursor-agent': cursor }).probe)
    expect(readiness['cursor']).toEqual({ installed: true, version: '2026.07.20', signedIn, message })
  })
})

describe('looking again', () => {
  it('asks a program for its version only when the program has changed, and for the sign-in each time', async () => {
    const { probe, runs, paths } = machine({ claude: claude(true) })
    const detector = harnessDetector({ world: world() })
    await detector.detect(probe)
    await detector.detect(probe)
    expect(runs.toSorted()).toEqual(['claude --version', 'claude auth status', 'claude auth status'].toSorted())
    utimesSync(paths.get('claude') ?? '', 1, 1)
    await detector.detect(probe)
    expect(runs.filter((run) => run === 'claude --version')).toHaveLength(2)
  })

  it('is not done for callers who come together, or soon after', async () => {
    const { probe, runs } = machine({ claude: claude(true) })
    const clock = world()
    const detector = harnessDetector({ world: clock })
    expect(detector.known()).toBeNull()
    await Promise.all([detector.detect(probe), detector.detect(probe)])
    await detector.detect(probe, 60_000)
    expect(runs).toHaveLength(2)
    clock.pass(60_000)
    await detector.detect(probe, 60_000)
    expect(runs).toHaveLength(3)
  })

  it('begins after it was asked for, where what changed before must be seen', async () => {
    const { probe, runs } = machine({ claude: claude(true) })
    const detector = harnessDetector({ world: world() })
    await Promise.all([detector.detect(probe), detector.detectAnew(probe), detector.detectAnew(probe)])
    expect(runs.filter((run) => run === 'claude auth status')).toHaveLength(3)
    await Promise.all([detector.detect(probe), detector.detect(probe)])
    expect(runs.filter((run) => run === 'claude auth status')).toHaveLength(4)
  })

  it('goes on when one harness cannot be looked at', async () => {
    const broken = { name: 'codex' as const, detect: () => Promise.reject(new Error('disk on fire')) }
    const readiness = await harnessDetector({ world: world(), harnesses: [broken] }).detect(machine({}).probe)
    expect(readiness['codex']).toMatchObject({ installed: false, message: expect.stringContaining('disk on fire') })
  })
})
