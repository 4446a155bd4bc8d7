import { createPublicKey } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { commandsOf } from '../../cli/page-blocks.ts'
import { here, releaseFor, signingKey } from '../../kit/releases.ts'
import { Installation } from './installation.ts'

// install.md, typed from its first line to its last on a machine that has the tarball and no more. Package managers are tried by hand.

const byOthers = ['npm ', 'sudo apt ', 'brew ', 'openssl ']

test('what install.md says is done as it says', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-releases-'))
  const machine = new Installation()
  try {
    const key = signingKey()
    const first = await releaseFor(folder, { version: '0.1.0', key })
    const second = await releaseFor(folder, { version: '0.2.0', key })
    cpSync(first.tarball, join(machine.folder, basename(first.tarball)))
    cpSync(second.folder, join(machine.folder, 'releases/0.2.0'), { recursive: true })
    const pem = createPublicKey(key).export({ type: 'spki', format: 'pem' })
    writeFileSync(join(machine.folder, 'release-key.pem'), pem)
    const printed = new Map<string, string>()
    for (const command of commandsOf('install.md')) {
      if (byOthers.some((begin) => command.startsWith(begin))) continue
      // As root it would go to the folders of the system.
      const places = command.endsWith('/install') ? ` --prefix ${machine.prefix} --bin ${machine.bin}` : ''
      const { status, stdout, stderr } = await machine.run('sh', ['-c', command.replaceAll('linux-x64', here) + places])
      // What asks does nothing where nobody can answer.
      expect([command, status, stderr], stdout).toEqual([
        command,
        command === 'svc uninstall' ? 1 : 0,
        expect.anything(),
      ])
      printed.set(command, stdout)
    }
    expect(printed.get('svc version')).toBe('0.1.0\n')
    expect(JSON.parse(printed.get('svc upgrade ./releases/0.2.0')!)).toMatchObject({ changed: true, before: '0.1.0' })
    expect(JSON.parse(printed.get('svc upgrade --rollback')!)).toMatchObject({ version: '0.1.0', before: '0.2.0' })
    expect(existsSync(machine.prefix)).toBe(false)
  } finally {
    await machine.remove()
    rmSync(folder, { recursive: true, force: true })
  }
}, 300_000)

test('the same sources give the same bytes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-releases-'))
  try {
    const sums = async (name: string) => {
      const own = join(folder, name)
      mkdirSync(own)
      const kinds = ['tarball', 'npm', 'deb'] as const
      const made = await releaseFor(own, { version: '0.1.0', key: null, kinds })
      return readFileSync(join(made.folder, 'SHA256SUMS'), 'utf8')
    }
    const [a, b] = [await sums('a'), await sums('b')]
    expect(a).toMatch(/\.deb\n/)
    expect(a).toBe(b)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}, 300_000)
