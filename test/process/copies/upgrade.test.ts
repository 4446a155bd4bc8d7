import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import { createPublicKey, sign, type KeyObject } from 'node:crypto'
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { isLong } from '../../kit/forms.ts'
import { releaseFor, signingKey, type MadeRelease } from '../../kit/releases.ts'
import { waitFor } from '../../kit/programs.ts'
import { Installation } from './installation.ts'

// Releases that are installed beside each other, and what is refused.

let folder: string
let key: KeyObject
let first: MadeRelease
let second: MadeRelease
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-releases-'))
  key = signingKey()
  first = await releaseFor(folder, { version: '0.8.0', key })
  second = await releaseFor(folder, { version: '0.9.0-rc.1', key })
}, 300_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let machine: Installation
beforeEach(async () => {
  machine = new Installation()
  await machine.install(first)
})
afterEach(() => machine.remove())

const parsed = (text: string) => JSON.parse(text) as Record<string, unknown>
const codeOf = (stderr: string) => /\(?(cli\.[a-z_]+)/.exec(stderr)?.[1]

/** A copy of the second release, to be changed. */
function copyOfSecond(name: string): string {
  const copy = join(machine.folder, name)
  cpSync(second.folder, copy, { recursive: true })
  return copy
}

/** Nothing of a refused release is left, and the version before is what starts. */
async function expectUnchanged(): Promise<void> {
  expect(machine.at('current')).toBe('versions/0.8.0')
  expect(machine.versions).toEqual(['0.8.0'])
  expect(await machine.works(['--version'])).toBe('0.8.0\n')
}

test('a release is installed beside the one before, and the way back is a switch', async () => {
  expect(parsed(await machine.works(['upgrade', second.folder, '--check']))).toMatchObject({
    changed: false,
    isNewer: true,
    version: '0.9.0-rc.1',
    before: '0.8.0',
  })
  await expectUnchanged()
  // Another account that could read the lock could hold it.
  expect(statSync(join(machine.prefix, 'lock')).mode & 0o777).toBe(0o600)
  // A tarball in the folder of a release names it, too.
  expect(parsed(await machine.works(['upgrade', second.tarball, '--remember']))).toMatchObject({
    changed: true,
    before: '0.8.0',
    version: '0.9.0-rc.1',
  })
  expect([machine.at('current'), machine.at('previous')]).toEqual(['versions/0.9.0-rc.1', 'versions/0.8.0'])
  expect(await machine.works(['--version'])).toBe('0.9.0-rc.1\n')
  // Which source that is was remembered.
  expect(parsed(await machine.works(['upgrade']))).toMatchObject({ changed: false, isNewer: false })
  expect(parsed(await machine.works(['upgrade', '--rollback']))).toMatchObject({ changed: true, version: '0.8.0' })
  expect([machine.at('current'), machine.at('previous')]).toEqual(['versions/0.8.0', 'versions/0.9.0-rc.1'])
  expect(await machine.works(['--version'])).toBe('0.8.0\n')
  expect(parsed(await machine.works(['upgrade']))).toMatchObject({ changed: true, version: '0.9.0-rc.1' })
  // What is older is installed only when somebody says so.
  const older = await machine.svc(['upgrade', first.folder])
  expect([older.status, codeOf(older.stderr)]).toEqual([1, 'cli.older_release'])
  expect(parsed(await machine.works(['upgrade', first.folder, '--allow-older']))).toMatchObject({ version: '0.8.0' })
}, 300_000)

test('what root installs is for all accounts, whatever umask it and whoever unpacked it have', async () => {
  const unpacked = machine.makeFolder('unpacked')
  const copy = join(unpacked, basename(second.tarball, '.tar.gz'))
  const options = ['--prefix', join(machine.folder, 'second'), '--bin', join(machine.folder, 'second-bin')]
  const line = `umask 077 && tar --no-same-permissions -xzf ${second.tarball} -C ${unpacked} && exec ${copy}/install "$@"`
  expect(await machine.run('/bin/sh', ['-c', line, 'sh', ...options])).toMatchObject({ status: 0 })
  const modeOf = (path: string) => statSync(join(machine.folder, path)).mode & 0o777
  const [folders, files, programs] = process.getuid!() === 0 ? [0o755, 0o644, 0o755] : [0o700, 0o600, 0o700]
  const version = 'second/versions/0.9.0-rc.1'
  for (const name of ['second', 'second-bin', 'second/versions', version, `${version}/bin`, `${version}/lib/cli`])
    expect([name, modeOf(name)]).toEqual([name, folders])
  expect(modeOf(`${version}/lib/cli/main.js`)).toBe(files)
  expect(modeOf(`${version}/bin/svc`)).toBe(programs)
  expect(statSync(join(copy, 'bin/svc')).mode & 0o777).toBe(0o700)
  // An upgrade unpacks by itself.
  const upgrade = `umask 077 && exec ${machine.bin}/svc upgrade ${second.folder}`
  expect(await machine.run('/bin/sh', ['-c', upgrade])).toMatchObject({ status: 0 })
  const upgraded = join(machine.prefix, 'versions/0.9.0-rc.1')
  for (const name of ['', 'bin', 'lib', 'lib/cli'])
    expect([name, statSync(join(upgraded, name)).mode & 0o777]).toEqual([name, folders])
  expect(statSync(join(upgraded, 'bin/svc')).mode & 0o777).toBe(programs)
  // Nor is anything open to be changed by others: what decides what is installed next, and what is unpacked before it is tried.
  await machine.works(['upgrade', '--rollback'])
  rmSync(upgraded, { recursive: true })
  const pem = join(machine.folder, 'key.pem')
  writeFileSync(pem, createPublicKey(key).export({ type: 'spki', format: 'pem' }))
  const open = `umask 000 && exec ${machine.bin}/svc upgrade ${second.folder} --key ${pem} --remember`
  const { child, said } = machine.start('/bin/sh', ['-c', open])
  const unpackedAt = () => machine.versions.find((name) => name.endsWith('-unpacked'))
  await waitFor(() => unpackedAt() !== undefined || child.exitCode !== null, 'it unpacks', { everyMs: 1 })
  expect(statSync(join(machine.prefix, 'versions', unpackedAt()!)).mode & 0o777).toBe(0o700)
  expect((await said).status).toBe(0)
  for (const name of ['release-key.pem', 'releases'])
    expect([name, statSync(join(machine.prefix, name)).mode & 0o777]).toEqual([name, 0o644])
  // A lock that leads to another file would have that one closed to all others.
  const victim = join(machine.folder, 'victim')
  writeFileSync(victim, '', { mode: 0o644 })
  rmSync(join(machine.prefix, 'lock'))
  symlinkSync(victim, join(machine.prefix, 'lock'))
  const { status, stderr } = await machine.svc(['upgrade', '--rollback'])
  expect([status === 0, codeOf(stderr)]).toEqual([false, 'cli.folder_unwritable'])
  expect(statSync(victim).mode & 0o777).toBe(0o644)
}, 120_000)

test('nothing is installed without a valid signature of the key that is trusted, nor what it does not name', async () => {
  const refused = async (release: string, ...flags: string[]) => {
    const { status, stderr } = await machine.svc(['upgrade', release, ...flags])
    await expectUnchanged()
    return [status, codeOf(stderr)]
  }
  const changed = copyOfSecond('changed')
  const manifest = join(changed, 'release.json')
  const text = readFileSync(manifest, 'utf8')
  writeFileSync(manifest, text.replace('0.9.0-rc.1', '0.9.1'))
  expect(await refused(changed)).toEqual([1, 'cli.signature_invalid'])
  const unsigned = copyOfSecond('unsigned')
  rmSync(join(unsigned, 'release.json.sig'))
  expect(await refused(unsigned)).toEqual([1, 'cli.release_unreadable'])
  const signatures = [`${'A'.repeat(86)}==`, '', 'AAAA', 'x'.repeat(5_000)]
  for (const signature of isLong ? signatures : signatures.slice(0, 1)) {
    writeFileSync(join(unsigned, 'release.json.sig'), signature)
    expect((await refused(unsigned))[0]).toBe(1)
  }
  // Signed by somebody else, whose key then is named.
  const foreign = copyOfSecond('foreign')
  const other = signingKey()
  writeFileSync(
    join(foreign, 'release.json.sig'),
    sign(null, readFileSync(join(foreign, 'release.json')), other).toString('base64'),
  )
  expect(await refused(foreign)).toEqual([1, 'cli.signature_invalid'])
  // A tarball that is not the one of the manifest: other bytes, fewer, more.
  const swapped = copyOfSecond('swapped')
  const tarball = join(swapped, `${second.tarball.split('/').at(-1)}`)
  cpSync(first.tarball, tarball)
  expect((await refused(swapped))[0]).toBe(1)
  cpSync(second.tarball, tarball)
  truncateSync(tarball, statSync(tarball).size - 1)
  expect(await refused(swapped)).toEqual([1, 'cli.hash_differs'])
  // What is signed, and says that it is another version than it is.
  const lying = copyOfSecond('lying')
  const lie = Buffer.from(text.replace('"0.9.0-rc.1"', '"1.0.0"'))
  writeFileSync(join(lying, 'release.json'), lie)
  writeFileSync(join(lying, 'release.json.sig'), sign(null, lie, key).toString('base64'))
  expect(await refused(lying)).toEqual([1, 'cli.does_not_run'])
  const elsewhere = Buffer.from(text.replaceAll(/"platform": "[a-z0-9-]+"/g, '"platform": "darwin-arm64"'))
  writeFileSync(join(lying, 'release.json'), elsewhere)
  writeFileSync(join(lying, 'release.json.sig'), sign(null, elsewhere, key).toString('base64'))
  expect(await refused(lying)).toEqual([1, 'cli.no_file_for_platform'])
  const climbing = Buffer.from(text.replace(/"name": "svc-[^"]+tar.gz"/, '"name": "../../first.tar.gz"'))
  writeFileSync(join(lying, 'release.json'), climbing)
  writeFileSync(join(lying, 'release.json.sig'), sign(null, climbing, key).toString('base64'))
  expect(await refused(lying)).toEqual([1, 'cli.release_unreadable'])
  // From within a run nobody upgrades, whatever is signed.
  const { status, stderr } = await machine.svc(['upgrade', second.folder], {
    env: { SVC_RUN_ID: 'run_3nB7cW1yHsD5jK9q' },
  })
  expect([status, codeOf(stderr)]).toEqual([1, 'cli.not_in_a_run'])
  await expectUnchanged()
  // The operator takes another key: from then on releases of the first one are refused.
  const pem = join(machine.folder, 'other.pem')
  writeFileSync(pem, createPublicKey(other).export({ type: 'spki', format: 'pem' }))
  expect(parsed(await machine.works(['upgrade', foreign, '--key', pem]))).toMatchObject({ changed: true })
  const byFirst = await machine.svc(['upgrade', second.folder, '--check'])
  expect([byFirst.status, codeOf(byFirst.stderr)]).toEqual([1, 'cli.signature_invalid'])
}, 300_000)

test('of two at once one works, and one that is killed at any moment leaves a version that runs', async () => {
  const both = await Promise.all([1, 2].map(() => machine.svc(['upgrade', second.folder])))
  const codes = both.map(({ status, stderr }) => (status === 0 ? 'done' : String(codeOf(stderr)))).toSorted()
  // The second may come when the first has ended.
  expect([
    ['cli.upgrade_under_way', 'done'],
    ['done', 'done'],
  ]).toContainEqual(codes)
  expect(machine.at('current')).toBe('versions/0.9.0-rc.1')
  await machine.works(['upgrade', '--rollback'])
  rmSync(join(machine.prefix, 'versions/0.9.0-rc.1'), { recursive: true })
  const moments = [
    () => machine.versions.some((name) => name.endsWith('.tar.gz')),
    () => machine.versions.some((name) => existsSync(join(machine.prefix, 'versions', name, 'svc-0.9.0-rc.1'))),
    () =>
      machine.versions.some((name) => existsSync(join(machine.prefix, 'versions', name, `svc-0.9.0-rc.1`, 'bin/svc'))),
    () => machine.versions.includes('0.9.0-rc.1'),
  ]
  for (const isReached of isLong ? moments : moments.slice(2)) {
    const { child, said } = machine.start(join(machine.bin, 'svc'), ['upgrade', second.folder])
    await waitFor(() => isReached() || child.exitCode !== null, 'it comes so far', { everyMs: 1 })
    child.kill('SIGKILL')
    await said
    expect(['0.8.0\n', '0.9.0-rc.1\n']).toContain(await machine.works(['--version']))
    const again = await machine.svc(['upgrade', second.folder])
    expect([again.status, again.stderr]).toEqual([0, ''])
    expect(machine.at('current')).toBe('versions/0.9.0-rc.1')
    expect(machine.versions).toEqual(['0.8.0', '0.9.0-rc.1'])
    await machine.works(['upgrade', '--rollback'])
    rmSync(join(machine.prefix, 'versions/0.9.0-rc.1'), { recursive: true })
  }
}, 300_000)

test('an upgrade that was killed between its switch and the restart of the device manager is brought to its end by the next one', async () => {
  await machine.works(['upgrade', second.folder])
  await machine.works(['upgrade', '--rollback'])
  const { child } = await machine.startServer()
  await machine.works(['login'])
  await machine.works(['device', 'connect'])
  const status = async () => parsed(await machine.works(['device', 'status']))
  expect(await status()).toMatchObject({ version: '0.8.0' })
  // As the kill leaves it.
  rmSync(join(machine.prefix, 'current'))
  symlinkSync('versions/0.9.0-rc.1', join(machine.prefix, 'current'))
  const before = machine.daemonPid
  const again = { changed: false, version: '0.9.0-rc.1' }
  expect(parsed(await machine.works(['upgrade', second.folder]))).toMatchObject({ ...again, daemon: { runs: 0 } })
  expect(await status()).toMatchObject({ version: '0.9.0-rc.1' })
  const after = machine.daemonPid
  expect(after).not.toBe(before)
  expect(parsed(await machine.works(['upgrade', second.folder]))).toMatchObject({ ...again, daemon: null })
  expect(machine.daemonPid).toBe(after)
  child.kill('SIGTERM')
  await once(child, 'exit')
}, 300_000)

test('a release comes from an address, and one that cannot be read changes nothing', async () => {
  let answer = (_: IncomingMessage, reply: ServerResponse): void => void reply.writeHead(404).end()
  const server = createServer((request, reply) => answer(request, reply)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/svc`
  const files = (request: IncomingMessage) =>
    readFileSync(join(second.folder, (request.url ?? '').replace('/svc/', '')))
  const refused = async () => {
    const { status, stderr } = await machine.svc(['upgrade', url])
    await expectUnchanged()
    return [status, codeOf(stderr)]
  }
  try {
    expect(await refused()).toEqual([3, 'cli.release_unreachable'])
    answer = (_, reply) => {
      // Without an end.
      reply.writeHead(200)
      const more = () => {
        while (reply.write('x'.repeat(64 * 1024)));
        reply.once('drain', more)
      }
      more()
    }
    expect(await refused()).toEqual([3, 'cli.release_unreachable'])
    answer = (request, reply) => {
      const bytes = files(request)
      if (bytes.length < 1e6) return void reply.end(bytes)
      // Cut in the middle.
      reply.writeHead(200, { 'content-length': bytes.length })
      reply.write(bytes.subarray(0, 1e6), () => reply.destroy())
    }
    expect((await refused())[0]).toBeGreaterThan(0)
    answer = (request, reply) => void reply.end(files(request))
    const secret = await machine.svc(['upgrade', url.replace('//', '//ann:secret-word@')])
    expect([secret.status, codeOf(secret.stderr)]).toEqual([2, 'cli.usage'])
    expect(secret.stderr).not.toContain('secret-word')
    expect(parsed(await machine.works(['upgrade', url, '--remember']))).toMatchObject({ changed: true })
    expect(parsed(await machine.works(['upgrade', '--check']))).toMatchObject({ isNewer: false })
  } finally {
    server.close()
    server.closeAllConnections()
  }
}, 300_000)

test('what of svc is on the machine is shown, and removed with a backup of what people made', async () => {
  const { api, child } = await machine.startServer()
  await machine.works(['login'])
  const runs = await machine.svc(['uninstall', '--yes'])
  expect([runs.status, codeOf(runs.stderr)]).toEqual([1, 'cli.server_runs'])
  // What a device manager makes is known, too.
  await machine.works(['device', 'connect'])
  expect((await api.devices()).length).toBe(1)
  child.kill('SIGTERM')
  await once(child, 'exit')
  const shown = await machine.svc(['uninstall', '--purge'])
  expect([shown.status, codeOf(shown.stderr)]).toEqual([1, 'cli.not_confirmed'])
  for (const path of [machine.prefix, machine.dataDir, join(machine.bin, 'svc')])
    expect(shown.stderr).toContain(`would remove ${path}\n`)
  expect(existsSync(join(machine.dataDir, 'svc.db'))).toBe(true)
  mkdirSync(join(machine.bin, 'others'))
  writeFileSync(join(machine.prefix, 'of-others'), '')
  const printed = await machine.works(['uninstall', '--purge', '--yes', '--output', 'table'])
  expect(printed).toContain('svc is removed')
  const backup = /^backup\t(.*)$/m.exec(printed)![1]!
  expect([existsSync(machine.dataDir), existsSync(join(machine.bin, 'svc'))]).toEqual([false, false])
  expect(readdirSync(machine.prefix)).toEqual(['of-others'])
  // And such a folder is not taken for one of versions.
  await expect(machine.install(first)).rejects.toThrow('cli.folder_taken')
  expect(readdirSync(machine.prefix)).toEqual(['of-others'])
  expect(existsSync(join(machine.bin, 'others'))).toBe(true)
  expect(statSync(backup).mode & 0o777).toBe(0o600)
  const { stdout } = await machine.run('tar', ['-tzf', backup])
  expect(stdout).toContain('data/svc.db')
  expect(stdout).toContain('config/login.json')
}, 300_000)

test('a purge removes what is of svc alone, wherever it lies, and follows no link to what is not', async () => {
  // Nobody says yes: were it not refused, nothing would be removed all the same.
  const refused = async (env: Record<string, string>) => {
    const { status, stderr } = await machine.svc(['uninstall', '--purge'], { env })
    expect([status, existsSync(join(machine.bin, 'svc'))]).toEqual([1, true])
    return codeOf(stderr)
  }
  const settings = machine.makeFolder('settings')
  writeFileSync(join(settings, 'login.json'), '{}')
  writeFileSync(join(settings, 'of-another-program'), '')
  for (const shared of ['/', machine.folder, settings])
    expect([shared, await refused({ SVC_CONFIG_DIR: shared })]).toEqual([shared, 'cli.folder_shared'])
  expect(await refused({ SVC_STATE_DIR: join(settings, 'login.json') })).toBe('cli.not_a_folder')
  // A server of another copy works with the data here.
  const other = new Installation()
  try {
    await other.install(first)
    const { child } = await other.startServer(0, {}, machine.dataDir)
    expect(await refused({})).toBe('cli.server_runs')
    expect(existsSync(join(machine.dataDir, 'svc.db'))).toBe(true)
    child.kill('SIGTERM')
    await once(child, 'exit')
  } finally {
    await other.remove()
  }
  // The device lies on another disk; links in it lead out of it, and to itself.
  const disk = machine.makeFolder('disk/device')
  symlinkSync(disk, machine.stateDir)
  writeFileSync(join(disk, 'device-token'), 'token')
  const outside = machine.makeFolder('outside')
  const socket = createServer().listen(join(outside, 'open.sock'))
  await once(socket, 'listening')
  mkdirSync(join(disk, 'runs'))
  symlinkSync(outside, join(disk, 'runs/link'))
  for (const name of ['one', 'two']) symlinkSync('.', join(disk, 'runs', name))
  const { backup } = parsed(await machine.works(['uninstall', '--purge', '--yes']))
  expect(existsSync(join(outside, 'open.sock'))).toBe(true)
  socket.close()
  const paths = [disk, machine.stateDir, machine.dataDir, machine.prefix]
  expect(paths.filter((path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined)).toEqual([])
  expect(existsSync(join(settings, 'of-another-program'))).toBe(true)
  expect((await machine.run('tar', ['-tzf', String(backup)])).stdout).toContain('device/device-token')
}, 300_000)

test('names of programs are taken away, too, where the way to the home folder is a link', async () => {
  const home = join(machine.folder, 'home')
  symlinkSync(machine.makeFolder('real-home'), home)
  const unpacked = machine.makeFolder('unpacked')
  await machine.run('tar', ['-xzf', first.tarball, '-C', unpacked])
  const bin = join(home, 'bin')
  const installer = join(unpacked, basename(first.tarball, '.tar.gz'), 'install')
  // Found from its own folder, also where the shell would look for that elsewhere first.
  const decoy = machine.makeFolder(`decoy/unpacked/${basename(first.tarball, '.tar.gz')}/bin`)
  const env = { CDPATH: decoy.slice(0, decoy.indexOf('/unpacked/')) }
  expect(
    await machine.run('sh', [relative(machine.folder, join(installer, '../bin/svc')), '--version'], { env }),
  ).toMatchObject({ stdout: '0.8.0\n' })
  const installed = await machine.run(installer, ['--prefix', join(home, 'opt'), '--bin', bin])
  expect(installed.status).toBe(0)
  const removed = await machine.run(join(bin, 'svc'), ['uninstall', '--yes'], { env: { PATH: `${bin}:/usr/bin:/bin` } })
  expect([removed.status, readdirSync(bin)]).toEqual([0, []])
}, 120_000)
