import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, test } from 'vitest'
import { isAlive } from '../../../device-manager/process/identity.ts'
import { readStat } from '../../../device-manager/process/proc.ts'
import { explainSpawnError, findProgram, SpawnError } from '../../../device-manager/process/program.ts'
import { spawnDetached } from '../../../device-manager/process/spawn-detached.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'svc-spawn-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const env = { PATH: process.env['PATH'] ?? '' }
const launch = (file: string, args: readonly string[] = []) => spawnDetached({ file, args, cwd: folder, env })

function program(name: string, content: string | Uint8Array, mode = 0o755): string {
  const file = path.join(folder, name)
  writeFileSync(file, content)
  chmodSync(file, mode)
  return file
}

describe('a session on pipes', () => {
  test('leads a session and a group of its own, in its folder, with the given environment and nothing else', async () => {
    const session = await launch('sh', ['-c', 'pwd; cat; echo "$PATH|$HOME|$0" >&2; exit 4'])
    expect(readStat(session.pid)).toMatchObject({ pid: session.pid, pgid: session.pid, session: session.pid })
    expect(isAlive(session.identity!)).toBe(true)
    session.stdin.end('hello')
    expect(await Promise.all([text(session.stdout), text(session.stderr)])).toEqual([
      `${folder}\nhello`,
      `${env.PATH}||sh\n`,
    ])
    expect(await session.exited).toEqual({ exitCode: 4, signal: null })
    expect(await session.closed).toEqual({ exitCode: 4, signal: null })
    expect(isAlive(session.identity!)).toBe(false)
  })

  test('a signal that ends it is told', async () => {
    const session = await launch('sleep', ['1000'])
    process.kill(-session.pid, 'SIGTERM')
    expect(await session.exited).toEqual({ exitCode: null, signal: 'SIGTERM' })
  })

  test('the exit is told while a child still holds the pipes', async () => {
    const session = await launch('bash', ['-c', 'sleep 1000 & exit 0'])
    let isClosed = false
    const closed = session.closed.then(() => (isClosed = true))
    session.stdout.resume()
    session.stderr.resume()
    expect(await session.exited).toEqual({ exitCode: 0, signal: null })
    expect(isClosed).toBe(false)
    process.kill(-session.pid, 'SIGKILL')
    await closed
  })

  test.each(['exec 0<&-; echo; sleep 1000', 'echo'])(
    'writing to a program that reads no more is no unhandled error (%s)',
    async (script) => {
      const session = await launch('bash', ['-c', script])
      await once(session.stdout, 'data')
      if (script === 'echo') await session.exited
      await new Promise<void>((resolve) => session.stdin.write('x'.repeat(1_000_000), () => resolve()))
      if (script !== 'echo') process.kill(-session.pid, 'SIGKILL')
      session.stderr.resume()
      await session.closed
    },
  )
})

describe('why a program cannot be started', () => {
  const refusal = async (file: string, cwd = folder) =>
    spawnDetached({ file, args: [], cwd, env }).then(
      () => 'started',
      (error: unknown) => (error instanceof SpawnError ? error.code : error),
    )

  test.each([
    ['missing, by name', () => 'no-such-program-here', 'program_not_found'],
    ['missing, by path', () => path.join(folder, 'missing'), 'program_not_found'],
    ['empty', () => '', 'program_not_found'],
    ['a file below a file', () => path.join(program('plain', 'x', 0o644), 'below'), 'program_not_found'],
    ['a folder', () => folder, 'program_not_executable'],
    ['not executable', () => program('data', '#!/bin/sh\n', 0o644), 'program_not_executable'],
    ['its interpreter is missing', () => program('script', '#!/no/such/shell -x\n'), 'interpreter_not_found'],
    ['for another processor', () => program('foreign', elf(process.arch === 'arm64' ? 62 : 183)), 'wrong_architecture'],
  ])('%s', async (_, file, code) => {
    expect(await refusal(file())).toBe(code)
  })

  test('missing, by name, beside a folder of the PATH that may not be looked into', async () => {
    // It holds for root, too, which may look into all others.
    const loop = path.join(folder, 'loop')
    symlinkSync('loop', loop)
    const query = { file: 'no-such-program-here', cwd: folder, env: { PATH: `${loop}:${env.PATH}` } }
    expect(() => findProgram(query)).toThrow('There is no program no-such-program-here on this machine.')
    expect(findProgram({ ...query, file: 'sh' })).toMatch(/\/sh$/)
    expect(() => findProgram({ ...query, file: path.join(loop, 'sh') })).toThrow('may not be executed by this user')
  })

  test('the folder is missing', async () => {
    expect(await refusal('true', path.join(folder, 'no-folder'))).toBe('folder_not_found')
  })

  test('arguments that are too long', async () => {
    const error = await launch('true', ['x'.repeat(3_000_000)]).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ name: 'SpawnError', code: 'arguments_too_long' })
  })

  test('what the system answers is put into the same words', () => {
    const codeOf = (code: string) => explainSpawnError(Object.assign(new Error('spawn'), { code }), 'x').code
    expect(['ENOENT', 'EACCES', 'ENOEXEC', 'E2BIG', 'EAGAIN', 'EIO'].map(codeOf)).toEqual([
      'program_not_found',
      'program_not_executable',
      'wrong_architecture',
      'arguments_too_long',
      'out_of_resources',
      'spawn_failed',
    ])
  })

  test('200 failed starts leave no descriptor and no process', async () => {
    const count = () => readdirSync('/proc/self/fd').length
    const garbage = program('garbage', elf(process.arch === 'arm64' ? 62 : 183))
    await refusal(garbage)
    const before = count()
    for (let i = 0; i < 100; i++)
      expect(await Promise.all([refusal(garbage), refusal('no-such-program-here')])).not.toContain('started')
    expect(count()).toBeLessThanOrEqual(before)
  })
})

test('a program is looked for in the given PATH, and one that may not be executed is ignored', async () => {
  const [first, second] = [path.join(folder, 'first'), path.join(folder, 'second')]
  mkdirSync(first)
  mkdirSync(second)
  program('first/tool', 'x', 0o644)
  const tool = program('second/tool', '#!/bin/sh\n')
  expect(findProgram({ file: 'tool', cwd: folder, env: { PATH: `${first}:${second}` } })).toBe(tool)
  expect(findProgram({ file: './second/tool', cwd: folder, env: {} })).toBe(tool)
})

function elf(machine: number): Buffer {
  const head = Buffer.alloc(64)
  head.write('\x7fELF\x02\x01\x01', 'latin1')
  head.writeUInt16LE(2, 16)
  head.writeUInt16LE(machine, 18)
  return head
}
