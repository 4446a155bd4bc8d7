import { execFile as execute, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { byteSource } from '../../cli/machine/byte-source.ts'
import { pathResolver } from '../../cli/machine/input.ts'
import { writeWhole } from '../../cli/machine/write-whole.ts'
import { openBytes } from '../../cli/http/open-bytes.ts'
import { makeTask } from '../api/facts/kit/tasks.ts'
import { isLong } from '../kit/forms.ts'
import { onTerminal } from './on-terminal.ts'
import { useRealServer, type RealServer } from './real-server.ts'
import { waitFor } from '../kit/programs.ts'

// The commands of files, by the real `svc` against a real server.

const execFile = async (program: string, line: string[]) => (await promisify(execute)(program, line)).stdout

const real = useRealServer()
const call: RealServer['svc'] = (line, options) => real.svc(line, options)

// oxlint-disable-next-line typescript/no-explicit-any
async function svc(line: readonly string[], options?: Parameters<typeof call>[1]): Promise<any> {
  const end = await call(line, options)
  if (end.status !== 0) throw new Error(`svc ${line.join(' ')}: ${end.status} ${end.stderr}`)
  return JSON.parse(end.stdout)
}

test('all commands of docs/files.md work in their order', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/files.md'), 'utf8')
  const lines = page.split('\n').filter((line) => line.startsWith('svc '))
  expect(lines.length).toBeGreaterThan(15)
  writeFileSync(join(real.folder, 'report.md'), '# Report\n')
  const values: Record<string, string> = { TASK: (await makeTask({ server: real.server })).key }
  for (const line of lines) {
    const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? values[word!] ?? word!)
    const end = await call(words.slice(1), { input: 'Notes of today.' })
    expect([line, end.status, end.stderr]).toEqual([line, 0, ''])
    const reply = end.stdout.startsWith('{') ? JSON.parse(end.stdout) : null
    if (line.startsWith('svc file upload'))
      values['OTHER' in values || !('FILE' in values) ? 'FILE' : 'OTHER'] = reply.id
    if (line.startsWith('svc file history')) values['REVISION'] = reply.data.at(-1).id
  }
  expect(readFileSync(join(real.folder, 'copy.md'), 'utf8')).toBe('# Report\n')
  expect(readFileSync(join(real.folder, 'first.md'), 'utf8')).toBe('# Report\n')
})

test('bytes of any kind go up and come down as they are', async () => {
  const bytes = Buffer.from(Array.from({ length: 1_000_003 }, (_, at) => (at * 7919) % 256))
  writeFileSync(join(real.folder, 'bytes.bin'), bytes)
  const { id, sizeBytes } = await svc(['file', 'upload', 'bytes.bin'])
  expect(sizeBytes).toBe(bytes.length)
  writeFileSync(join(real.folder, 'empty.bin'), '')
  expect((await svc(['file', 'upload', 'empty.bin'])).sizeBytes).toBe(0)
  expect((await call(['file', 'download', id])).stderr).toContain('bytes.bin is there already')
  await svc(['file', 'download', id, '--output', 'again.bin'])
  expect(readFileSync(join(real.folder, 'again.bin')).equals(bytes)).toBe(true)
  expect((await call(['file', 'read', id])).stderr).toContain('This file is no text')
})

const asOwner = () => ({ SVC_TOKEN: real.server.owner.token, SVC_API_URL: real.server.url })

test('a file whose name another person chose is no hidden file and no flag', async () => {
  for (const [name, written] of [
    ['.bashrc', '_bashrc'],
    ['.envrc', '_envrc'],
    ['-rf', '_rf'],
    ['--help', '_-help'],
    ['..x', '_.x'],
    ['plain.md', 'plain.md'],
  ]) {
    const { id } = await svc(['file', 'upload', '-', `--name=${name}`], { input: `It is ${name}.` })
    const cwd = join(real.folder, `named-${id}`)
    mkdirSync(cwd)
    const end = await real.home.svc(['file', 'download', id], { env: asOwner(), cwd })
    expect([end.status, readdirSync(cwd)]).toEqual([0, [written]])
    expect(end.stderr).toBe(
      name === written
        ? ''
        : `svc: the file is named ${name}; it is written as ${written}. --output chooses another name.\n`,
    )
    expect(JSON.parse(end.stdout).path).toBe(join(cwd, written!))
  }
})

test('to a terminal a download shows text that steers nothing, and no other bytes', async () => {
  const said = '\u001b]0;owned\u0007\u001b[2Jplain \u001b[31mred\u001b[0m \u00e9nd\n'
  const text = await svc(['file', 'upload', '-', '--name', 'said.txt'], { input: said })
  const shown = onTerminal({ dir: real.folder, env: { ...real.home.env, ...asOwner() } }, [
    'file',
    'download',
    text.id,
    '--output',
    '-',
  ])
  expect(await shown.ended).toBe(0)
  expect(shown.shown.text).toContain('red')
  expect(shown.shown.text).toContain('\u00e9nd')
  for (const steering of ['owned', '\u001b[2J']) expect(shown.shown.text).not.toContain(steering)
  writeFileSync(join(real.folder, 'odd.bin'), Buffer.from([0x1b, 0x5b, 0x32, 0x4a, 0xff, 0xfe, 0x00]))
  const odd = await svc(['file', 'upload', 'odd.bin'])
  const refused = onTerminal({ dir: real.folder, env: { ...real.home.env, ...asOwner() } }, [
    'file',
    'download',
    odd.id,
    '--output',
    '-',
  ])
  expect(await refused.ended).toBe(1)
  expect(refused.shown.text).toContain('no text')
  expect(refused.shown.text).not.toContain('\u001b[2J')
  // Into a pipe they go as they are.
  expect((await call(['file', 'download', text.id, '--output', '-'])).stdout).toBe(said)
})

test('within a run a file belongs to its task, unless told otherwise', async () => {
  const { runId, token } = await real.server.agentCaller()
  const env = { SVC_TOKEN: token, SVC_RUN_ID: runId }
  const relationsOf = async (line: string[]) => {
    const { id } = await svc(['file', 'upload', '--name', 'out.txt', ...line], { env, input: 'out' })
    return (await real.server.ok(`/files/${id}/relations`)).data.map(
      ({ entityId, role }: { entityId: string; role: string }) => `${entityId} ${role}`,
    )
  }
  expect(await relationsOf([])).toEqual([])
  const [task, other] = [await makeTask({ server: real.server }), await makeTask({ server: real.server })]
  await real.server.database.root('runs').where({ id: runId }).update({ task_id: task.id })
  expect(await relationsOf([])).toEqual([`${task.id} attachment`])
  expect(await relationsOf(['--role', 'log'])).toEqual([`${task.id} log`])
  const roleOfNothing = await call(['file', 'upload', '--name', 'out.txt', '--task', 'none', '--role', 'log'], { env })
  expect([roleOfNothing.status, roleOfNothing.stderr]).toEqual([2, expect.stringContaining('--role')])
  expect(await relationsOf(['--task', other.key])).toEqual([`${other.id} attachment`])
  expect(await relationsOf(['--task', 'none'])).toEqual([])
})

test('what cannot be sent is told', async () => {
  expect((await call(['file', 'upload', 'missing.txt'])).stderr).toContain('missing.txt cannot be read')
  expect((await call(['file', 'upload', '.'])).stderr).toContain('. is no file')
  expect((await call(['file', 'upload', '-'], { input: 'x' })).stderr).toContain('give one with --name')
  // A refusal is told as any other is; documents-errors.test.ts has a server refuse so much.
  if (isLong) {
    const large = join(real.folder, 'large.bin')
    writeFileSync(large, Buffer.alloc(52_428_801))
    const refused = await call(['file', 'upload', large])
    expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('larger than the 52428800 bytes')])
  }
  const partly = await call(['file', 'bulk-delete', 'file_0000000000000000'])
  expect([partly.status, JSON.parse(partly.stdout).results[0].code]).toEqual([1, 'file_not_found'])
})

test('a download is written where it can be, leaves what is no file as it is, and says what stands in its way', async () => {
  const folder = join(real.folder, 'targets')
  mkdirSync(folder)
  const at = (name: string) => join(folder, name)
  const write = (name: string, mayReplace = true) =>
    writeWhole(at(name), Readable.from([Buffer.from('bytes')]), mayReplace)
  await expect(write('.')).rejects.toMatchObject({ exit: 'usage', message: expect.stringContaining('is a directory') })
  await expect(write('nowhere/x')).rejects.toMatchObject({ code: 'cli.file_unwritable' })
  symlinkSync('nowhere', at('dangling'))
  await expect(write('dangling', false)).rejects.toMatchObject({ exit: 'usage' })
  execFileSync('mkfifo', [at('pipe')])
  const reader = execFile('cat', [at('pipe')])
  await write('pipe')
  expect([await reader, statSync(at('pipe')).isFIFO()]).toEqual(['bytes', true])
  await write('n'.repeat(255), false)
  expect(readdirSync(folder).toSorted()).toEqual(['dangling', 'n'.repeat(255), 'pipe'])
})

test('a download keeps the mode of the file that it replaces, and the link to it, and takes no name that was given meanwhile', async () => {
  const folder = join(real.folder, 'replaced')
  mkdirSync(folder)
  const at = (name: string) => join(folder, name)
  writeFileSync(at('secret'), 'old', { mode: 0o600 })
  symlinkSync('secret', at('link'))
  await writeWhole(at('link'), Readable.from([Buffer.from('new')]), true)
  expect([readFileSync(at('secret'), 'utf8'), statSync(at('secret')).mode & 0o777]).toEqual(['new', 0o600])
  expect(lstatSync(at('link')).isSymbolicLink()).toBe(true)
  async function* slow() {
    yield Buffer.from('late')
    writeFileSync(at('taken'), 'first')
  }
  await expect(writeWhole(at('taken'), Readable.from(slow()), false)).rejects.toMatchObject({
    code: 'cli.file_unwritable',
  })
  expect(readFileSync(at('taken'), 'utf8')).toBe('first')
  expect(readdirSync(folder).toSorted()).toEqual(['link', 'secret', 'taken'])
})

test('a download that a signal ends leaves nothing, and one to what the program has open goes there', async () => {
  const folder = join(real.folder, 'ended')
  mkdirSync(folder)
  const at = (name: string) => join(folder, name)
  symlinkSync('/proc/self/fd/1', at('out'))
  const script = (target: string, then: string) => `
    import { writeWhole } from ${JSON.stringify(new URL('../../cli/machine/write-whole.ts', import.meta.url).href)}
    import { Readable } from 'node:stream'
    async function* bytes() { yield Buffer.from('some'); ${then} }
    await writeWhole(${JSON.stringify(target)}, Readable.from(bytes()), true)`
  const program = (of: string) => ['--input-type=module', '-e', of]
  const open = openSync(at('stdout'), 'w')
  execFileSync(process.execPath, program(script(at('out'), '')), { stdio: ['ignore', open, 'inherit'] })
  closeSync(open)
  expect([readFileSync(at('stdout'), 'utf8'), lstatSync(at('out')).isSymbolicLink()]).toEqual(['some', true])
  const waits = 'await new Promise((resolve) => setTimeout(resolve, 60_000))'
  const ended = spawn(process.execPath, program(script(at('half'), `process.stdout.write('.'); ${waits}`)))
  await once(ended.stdout, 'data')
  // The bytes are asked for a moment before the file is open.
  await waitFor(() => readdirSync(folder).length === 3, 'a part of the download lies beside its place')
  ended.kill('SIGTERM')
  expect(await once(ended, 'exit')).toEqual([null, 'SIGTERM'])
  expect(readdirSync(folder).toSorted()).toEqual(['out', 'stdout'])
})

test('a file that becomes shorter while it is sent ends the upload', async () => {
  const path = join(real.folder, 'shrinking')
  writeFileSync(path, 'some bytes')
  const source = byteSource(path, pathResolver())
  truncateSync(path, 3)
  await expect(Readable.from(source.read()).toArray()).rejects.toMatchObject({ code: 'cli.file_changed' })
})

test('bytes that stay away end the wait for them, before the answer and within it', async () => {
  const server = createServer((request, response) => {
    if (request.url === '/within') response.writeHead(200, { 'content-length': 10 }).write('abc')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await expect(openBytes(`${url}/never`, 100)).rejects.toMatchObject({ exit: 'unreachable' })
  const answer = await openBytes(`${url}/within`, 60_000)
  expect(answer.socket.timeout).toBe(60_000)
  // A minute without bytes goes by.
  answer.socket.setTimeout(1)
  await expect(answer.toArray()).rejects.toThrow('nothing came')
  server.close()
  server.closeAllConnections()
})

test('a list of deleted files says what can be restored, and until when', async () => {
  const [gone, kept] = [await upload('gone.txt'), await upload('kept.txt')]
  expect((await call(['file', 'delete', gone])).status).toBe(0)
  expect((await call(['file', 'bulk-delete', kept])).status).toBe(0)
  const { stdout } = await call(['file', 'list', '--status', 'deleted', '--output', 'table'])
  expect(stdout).toMatch(new RegExp(`^${gone}\tgone.txt\t4\t[^\t]+\ttext/plain\t\t$`, 'm'))
  expect(stdout).toMatch(new RegExp(`^${kept}\tkept.txt\t4\t[^\t]+\ttext/plain\t\\d{4}-[^\t]+Z\t$`, 'm'))
})

const upload = async (name: string): Promise<string> =>
  (await svc(['file', 'upload', '-', '--name', name], { input: 'text' })).id
