import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { ServiceDefinition } from '../../../device-manager/service/definition.ts'
import { packagedUnit, unitText } from '../../../device-manager/service/systemd-unit.ts'

/** It answers 0 for unknown keys and bad values too, and tells them on standard error only. */
function complaints(text: string, folder: string, scope: readonly string[] = ['--user']): string {
  const unit = join(folder, scope.length === 0 ? 'svc-device@root.service' : 'svc-device.service')
  writeFileSync(unit, text)
  const { stderr, status, error } = spawnSync('systemd-analyze', ['verify', '--man=no', ...scope, unit], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME: folder, XDG_RUNTIME_DIR: folder },
  })
  if (error) throw error
  return status === 0 ? stderr : `status ${status}\n${stderr}`
}

it('writes a unit in which systemd finds nothing to complain about', (context) => {
  if (spawnSync('systemd-analyze', ['--version']).error) {
    process.stderr.write('NOT RUN: systemd-analyze is not installed, so no systemd has read the unit\n')
    context.skip('systemd-analyze is not installed')
  }
  const folder = mkdtempSync(join(tmpdir(), 'svc-unit-'))
  try {
    const odd = join(folder, 'a "b" 100% $HOME \\ é')
    mkdirSync(odd)
    // The program's own path takes neither quotes nor backslashes.
    const node = join(folder, '100% $HOME é node')
    symlinkSync(process.execPath, node)
    const definition: ServiceDefinition = {
      node,
      main: join(odd, 'main.ts'),
      homeDir: folder,
      stateDir: odd,
      logsDir: join(odd, 'logs'),
      outFile: join(odd, 'logs', 'out'),
      env: { PATH: `${odd}:/usr/bin`, SVC_STATE_DIR: odd },
      umask: 0o022,
      account: null,
    }
    expect(complaints(unitText(definition), folder)).toBe('')
    expect(complaints(packagedUnit(process.execPath), folder)).toBe('')
    const ofMachine = complaints(unitText({ ...definition, account: 'root' }), folder, [])
    expect(ofMachine.split('\n').filter((line) => line.includes('svc-device'))).toEqual([])
    // It does look: at the program, and at the keys.
    expect(complaints(unitText({ ...definition, node: join(folder, 'gone') }), folder)).toContain('gone')
    expect(complaints(unitText(definition).replace('OOMPolicy', 'OOMPolitics'), folder)).toContain('OOMPolitics')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
