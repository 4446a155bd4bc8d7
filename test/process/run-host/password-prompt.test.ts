import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, constants, copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node-pty'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { findProgram } from '../../../device-manager/process/program.ts'

// `su` belongs to root, and a plain user cannot look into what root runs: only the terminal tells that it waits. Whoever looks is a plain
// user, who may not go where the checkout of root lies.

const nobody = 65534
const isRoot = process.getuid?.() === 0
const become = isRoot ? ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups'] : []
const env = { PATH: process.env['PATH'] ?? '' }
const sources = join(import.meta.dirname, '../../../device-manager/process')

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-look-'))
  copyFileSync(process.execPath, join(folder, 'node'), constants.COPYFILE_FICLONE)
  for (const file of ['terminal-readers.ts', 'proc.ts']) copyFileSync(join(sources, file), join(folder, file))
  execFileSync('chmod', ['-R', 'a+rX', folder])
  chmodSync(folder, 0o755)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.skipIf(process.platform !== 'linux')('a terminal in which a plain user’s program asks for a password', () => {
  beforeEach(({ skip }) => {
    for (const file of ['su', 'stty', ...(isRoot ? ['setpriv'] : [])])
      try {
        findProgram({ file, cwd: '/', env })
      } catch {
        skip(`this machine has no ${file}`)
      }
  })

  test.each([
    ['is waited at by su', 'exec su root -c true', ['su']],
    ['is waited at by nobody while a program draws in it', 'stty raw -echo; echo :; exec sleep 30', []],
  ])('%s', async (_, line, expected) => {
    const [file, ...args] = [...become, '/bin/sh', '-c', line]
    const child = spawn(file, args, { name: 'xterm', cols: 80, rows: 24, cwd: '/', env, encoding: null })
    const terminal = child.ptsName
    // As that of a run belongs to whoever runs it.
    if (isRoot) chownSync(terminal, nobody, nobody)
    try {
      await new Promise<void>((resolve) => child.onData((chunk) => Buffer.from(chunk).includes(':') && resolve()))
      await expect.poll(() => readersOf(terminal)).toEqual(expected)
    } finally {
      process.kill(child.pid, 'SIGKILL')
    }
  })
})

/** What the plain user sees: the names of the programs that wait; null: this system does not tell. */
function readersOf(terminal: string): string[] | null {
  const script = `const { terminalReaders } = await import(${JSON.stringify(`${folder}/terminal-readers.ts`)})
    console.log(JSON.stringify(terminalReaders(${JSON.stringify(terminal)})?.map(({ name }) => name) ?? null))`
  const [file, ...args] = [...become, join(folder, 'node'), '--input-type=module', '-e', script]
  return JSON.parse(execFileSync(file, args, { cwd: '/', encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })) as
    | string[]
    | null
}
