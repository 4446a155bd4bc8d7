import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { harnessProbe } from '../../../device-manager/harness/probe.ts'

const root = mkdtempSync(join(tmpdir(), 'svc-probe-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

function program(folder: string, name: string, script: string, mode = 0o755): string {
  mkdirSync(join(root, folder), { recursive: true })
  const path = join(root, folder, name)
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, mode)
  return path
}
const probeOf = (...folders: string[]) => {
  const path = [...folders.map((folder) => join(root, folder)), '/usr/bin', '/bin'].join(':')
  return harnessProbe({ env: { PATH: path, MARK: 'of the run' }, homeDir: root })
}

/** Resolves when the process is gone or only its entry is left; a test that waits in vain fails by its time limit. */
async function gone(pid: number): Promise<void> {
  while (lives(pid)) await new Promise((resolve) => setTimeout(resolve, 20))
}
function lives(pid: number): boolean {
  try {
    process.kill(pid, 0)
    const stat = `/proc/${pid}/stat`
    return !existsSync(stat) || !readFileSync(stat, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}

describe('which', () => {
  it('finds the first program on the PATH that can be executed, and nothing else', async () => {
    program('a', 'tool', 'exit 0', 0o644)
    mkdirSync(join(root, 'b', 'tool'), { recursive: true })
    const second = program('c', 'tool', 'exit 0')
    expect(await probeOf('a', 'b', 'c').which('tool')).toBe(second)
    expect(await probeOf('a', 'b').which('tool')).toBeNull()
  })

  it('does not look where the PATH is not absolute', async () => {
    const probe = harnessProbe({ env: { PATH: '.:node_modules/.bin' }, homeDir: root })
    expect(await probe.which('vitest')).toBeNull()
  })
})

describe('run', () => {
  it('returns what the program wrote and its status, with the environment of a run', async () => {
    const file = program('d', 'says', 'echo "out $MARK"; echo err >&2; exit 3')
    expect(await probeOf().run(file, [], 5_000)).toEqual({
      exitCode: 3,
      stdout: 'out of the run\n',
      stderr: 'err\n',
      timedOut: false,
    })
  })

  it('does not throw for a program that is not there', async () => {
    expect(await probeOf().run(join(root, 'nowhere'), [], 1_000)).toMatchObject({ exitCode: null, timedOut: false })
  })

  it('ends one that takes too long, with what it started', async () => {
    const file = program('e', 'slow', `sleep 600 & echo $!; wait`)
    const result = await probeOf().run(file, [], 300)
    expect(result).toMatchObject({ timedOut: true, exitCode: null })
    await gone(Number(result.stdout))
  })

  it('does not wait for a child that holds the output after the program has left, and ends it', async () => {
    const file = program('f', 'leaves', 'sleep 600 & echo "1.2.3 $!"')
    const result = await probeOf().run(file, [], 60_000)
    expect(result).toMatchObject({ exitCode: 0, timedOut: false, stdout: expect.stringMatching(/^1\.2\.3 /) })
    await gone(Number(result.stdout.split(' ')[1]))
  })

  it('is not held by a program that reads its input, and keeps a bounded part of what it writes', async () => {
    const file = program('g', 'reads', 'cat; head -c 3000000 /dev/zero | tr "\\0" x')
    const result = await probeOf().run(file, [], 30_000)
    expect(result.exitCode).toBe(0)
    expect(result.stdout.length).toBe(256 * 1024)
  })

  it('knows whether a file exists', async () => {
    expect(await probeOf().exists(root)).toBe(true)
    expect(existsSync(join(root, 'nothing'))).toBe(await probeOf().exists(join(root, 'nothing')))
  })
})
