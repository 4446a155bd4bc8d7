import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { accountStateFolder } from './account-folder.ts'

test.runIf(process.platform === 'linux')(
  'a process of the account has its groups, and no terminal of root',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-account-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const main = join(folder, 'main.mjs')
    // In /proc/PID/stat the process's session and terminal are the fourth and fifth behind its name.
    writeFileSync(
      main,
      `import { readFileSync } from 'node:fs'
    const groups = /^Groups:[ \\t]*(.*?)[ \\t]*$/m.exec(readFileSync('/proc/self/status', 'utf8'))[1]
    const [, , , session, terminal] = readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ')
    const told = JSON.stringify({ leads: Number(session) === process.pid, terminal: Number(terminal), groups })
    console.log(JSON.stringify({ ok: true, value: { identityTrouble: told, daemon: null, starts: 0 } }))`,
    )
    const account = { name: 'own', uid: process.getuid!(), gid: process.getgid!(), homeDir: folder, shell: '/bin/sh' }
    const state = accountStateFolder({ account, stateDir: folder, program: { node: process.execPath, main } })
    const { identityTrouble: told } = await state.look()
    // Who is not root has the groups of this process.
    const ofRoot = () => execFileSync('id', ['-G', userInfo().username], { encoding: 'utf8' }).trim()
    const groups = process.getuid!() === 0 ? ofRoot() : expect.any(String)
    expect(JSON.parse(told!)).toEqual({ leads: true, terminal: 0, groups })
  },
)
