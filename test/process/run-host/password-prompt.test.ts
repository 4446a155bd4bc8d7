import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { findProgram } from '../../../device-manager/process/program.ts'

/** `su` belongs to root, and a plain user cannot look into what root runs: only the terminal tells that it waits. */

const nobody = 65534
const readers = new URL('../../../device-manager/process/terminal-readers.ts', import.meta.url).href
const pty = createRequire(import.meta.url).resolve('node-pty')
const script = `
  const { terminalReaders } = await import(${JSON.stringify(readers)})
  const { spawn } = (await import(${JSON.stringify(pty)})).default
  const names = []
  for (const line of ['exec su root -c true', 'stty raw -echo; echo :; sleep 20']) {
    const child = spawn('/bin/sh', ['-c', line], { cwd: '/' })
    await new Promise((resolve) => child.onData((text) => text.includes(':') && resolve()))
    for (let looks = 0; looks < 20; looks++) {
      const found = terminalReaders(child._pty)
      if (found === null) throw new Error('this system does not tell')
      if (found.length > 0) { names.push(...found.map(({ name }) => name)); break }
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    child.kill('SIGKILL')
  }
  console.log(names.join())
  process.exit(0)`

test.skipIf(process.platform !== 'linux')(
  'su, which asks a plain user for a password, waits for the terminal',
  ({ skip }) => {
    const become =
      process.getuid?.() === 0 ? ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups'] : []
    const [program, ...args] = [...become, process.execPath, '--disable-warning=ExperimentalWarning', '-e', script]
    for (const file of ['su', 'stty', program])
      try {
        findProgram({ file, cwd: '/', env: { PATH: process.env['PATH'] ?? '' } })
      } catch {
        skip(`this machine has no ${file}`)
      }
    const { status, stdout, stderr } = spawnSync(program, [...args, '--input-type=module'], {
      cwd: '/',
      encoding: 'utf8',
      timeout: 30_000,
    })
    if (become.length > 0 && /EACCES|permission denied/i.test(stderr)) skip('the checkout lies where only root may go')
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'su\n', stderr: '' })
  },
)
