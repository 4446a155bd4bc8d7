import { readdirSync, readFileSync, rmSync, writeFileSync, type Dirent } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, inflateSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { realWorld } from '../../shared/lib/world.ts'
import { isLong } from '../kit/forms.ts'
import { processesNaming, waitFor } from '../kit/programs.ts'
import { runSpecFixture } from '../kit/run-spec.ts'
import { startScripted, type ScriptedSystem } from '../kit/scripted-system.ts'
import type { TestDevice } from '../kit/system-device.ts'
import { makeRepo } from '../kit/system-scenario.ts'
import type { ScriptedServer } from '../kit/system-scripted-server.ts'

// Invariant I6 for the secrets that come with `run.start`: they are in the environment of the harness and nowhere else, at
// no moment of the run and whatever dies meanwhile.

const secrets = {
  DEPLOY_KEY: 'dk-4kX!s9"q\\0/Zé&%+Tz',
  MANY_LINES: '-----BEGIN KEY-----\nMIIEvgIBADANBgkqhkiG9w0B\nAQEFAASCBKgwggSkAgEAAoIB\n-----END KEY-----',
}

let root: string
let server: ScriptedServer
let device: TestDevice
let system: ScriptedSystem
beforeAll(async () => {
  system = await startScripted('given', { isWalled: true })
  ;({ root, server, device } = system)
})
afterAll(() => system?.stop())

/** A value as it may stand somewhere: as it is, as encoders write it, and the lines of it. */
function formsOf(value: string): string[] {
  const base64 = [0, 1, 2].map((shift) =>
    Buffer.from('x'.repeat(shift) + value)
      .toString('base64')
      .slice(shift === 0 ? 0 : 4, -8),
  )
  return [
    value,
    JSON.stringify(value).slice(1, -1),
    encodeURIComponent(value),
    Buffer.from(value).toString('hex'),
    value.replaceAll('\n', '\r\n'),
    ...base64,
  ]
}
const forms = (token: string) => [...Object.values(secrets), token].flatMap(formsOf).map((form) => Buffer.from(form))

/** Every file below the folder, also as what it may be packed as. Hosts that stand by make and remove folders meanwhile. */
function contents(folder: string): { path: string; content: Buffer }[] {
  return entriesOf(folder).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return contents(path)
    if (!entry.isFile()) return []
    const content = read(path)
    return [content, unpacked(content, inflateSync), unpacked(content, gunzipSync)].map((each) => ({
      path,
      content: each,
    }))
  })
}
function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
function read(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch {
    // Gone in between.
    return Buffer.alloc(0)
  }
}
function unpacked(content: Buffer, how: (packed: Buffer) => Buffer): Buffer {
  try {
    return how(content)
  } catch {
    return Buffer.alloc(0)
  }
}

function expectNothing(token: string, when: string): void {
  const kept = contents(device.stateDir)
  expect(kept).not.toEqual([])
  const places = [
    ...kept,
    { path: device.logPath, content: read(device.logPath) },
    ...server.bodies.map((content) => ({ path: 'a frame', content })),
    { path: 'a message', content: Buffer.from(JSON.stringify(server.said)) },
  ]
  for (const form of forms(token))
    for (const { path, content } of places)
      if (content.includes(form)) expect.fail(`${when}: ${path} holds ${form.toString().slice(0, 8)}...`)
}

test('stand in no file, frame, message, argument or environment but the harness’s own', async () => {
  // Nothing is acknowledged, so that all there is stays in the spool.
  server.onEvents = () => null
  const { onEnded } = server
  server.onEnded = () => null
  const lease = { runId: realWorld.id('run_'), fence: 1 }
  const token = `token-of-${lease.runId}`
  const folder = join(root, 'repo')
  makeRepo(folder)
  const script = [
    'test "$DEPLOY_KEY" = "$EXPECTED" || echo WRONG',
    'printf "%s\\n" "$DEPLOY_KEY" "$MANY_LINES" "$SVC_TOKEN"',
    'printf %s "$DEPLOY_KEY" | base64; printf "x%s" "$MANY_LINES" | base64 -w0; printf %s "$SVC_TOKEN" | od -An -tx1 | tr -d " \\n"',
    'env',
    'printf "%s\\n" "$DEPLOY_KEY" "$MANY_LINES" > secret.txt; printf %s "$DEPLOY_KEY" | base64 >> secret.txt',
    'echo up > up; while [ ! -e end ]; do sleep 0.05; done',
  ]
  const spec = runSpecFixture(lease.runId, {
    command: ['sh', '-c', script.join('\n')],
    folder: { shortId: 'f', rootPath: folder },
  })
  server.offer(lease, spec)
  await server.heard('run.accepted', lease)
  server.start(lease, { ...secrets, EXPECTED: secrets.DEPLOY_KEY })
  await waitFor(() => read(join(folder, 'up')).length > 0, 'the harness has printed', { about: () => device.log })
  await waitFor(() => server.events.length > 0, 'events came')
  expectNothing(token, 'while it runs')

  const host = await device.hostOf(lease.runId)
  for (const { pid, command } of processesNaming(root)) {
    const isHarness = read(`/proc/${pid}/environ`).includes(`SVC_RUN_ID=${lease.runId}`)
    const known = [command, ...(isHarness ? [] : [read(`/proc/${pid}/environ`).toString()])].join('\n')
    for (const form of forms(token)) expect(known.includes(form.toString()), command).toBe(false)
  }

  // A daemon that is started again does not know them, and its host goes on.
  await device.kill9()
  expectNothing(token, 'after a kill of the daemon')
  server.verdicts = [{ ...lease, verdict: 'go_on', ackSeq: 0 }]
  await device.start()
  process.kill(host.harness!.pid, 0)
  rmSync(join(folder, 'up'))
  writeFileSync(join(folder, 'end'), '')
  const { report } = await server.heard('run.ended', lease)
  expect(report.exitReason).toBe('completed')
  expectNothing(token, 'after the end')

  const told = Buffer.concat(server.bodies).toString()
  expect(told).not.toContain('WRONG')
  for (const name of ['DEPLOY_KEY', 'MANY_LINES', 'SVC_TOKEN']) expect(told).toContain(`[redacted:${name}]`)
  const changeSet = server.bodies.map(String).find((body) => body.includes('"secret.txt"'))
  expect(changeSet).toContain('[redacted:DEPLOY_KEY]')
  server.send({ type: 'run.closed', ...lease })
  await waitFor(async () => (await device.spoolRuns()).length === 0, 'the run is forgotten')
  server.onEnded = onEnded
  expectNothing(token, 'after it is forgotten')
})

const lives: [string, boolean] = ['its daemon lives', false]
// In the short form the test before shows the change-set of a daemon that knows them.
const deaths: [string, boolean][] = [['its daemon dies as well', true], ...(isLong ? [lives] : [])]
test.each(deaths)('stand nowhere either when the run host dies with them and %s', async (_, killsDaemon) => {
  server.onEvents = ({ runId, fence, lastSeq }) => ({ type: 'ack', runId, fence, seq: lastSeq })
  const lease = { runId: realWorld.id('run_'), fence: 1 }
  const folder = join(root, lease.runId)
  makeRepo(folder)
  const script =
    'printf "%s\\n" "$DEPLOY_KEY" > secret.txt; echo "$DEPLOY_KEY"; echo up > up; while :; do sleep 1; done'
  const spec = runSpecFixture(lease.runId, {
    command: ['sh', '-c', script],
    folder: { shortId: 'g', rootPath: folder },
  })
  server.offer(lease, spec)
  await server.heard('run.accepted', lease)
  server.start(lease, secrets)
  await waitFor(() => read(join(folder, 'up')).length > 0, 'the harness has printed', { about: () => device.log })
  const host = await device.hostOf(lease.runId)
  server.verdicts = [{ ...lease, verdict: 'go_on', ackSeq: 0 }]
  if (killsDaemon) await device.kill9()
  process.kill(host.pid, 'SIGKILL')
  if (killsDaemon) await device.start()
  const { report } = await server.heard('run.ended', lease)
  expect(report.exitReason).toBe('crashed')
  expectNothing(`token-of-${lease.runId}`, 'after a kill of the host')
  const changeSet = server.bodies.map(String).findLast((body) => body.startsWith('{"ok":'))
  // A daemon that does not know the values tells nothing of the files.
  if (killsDaemon) expect(changeSet).toContain('"diff_unavailable"')
  else expect(changeSet).toContain('[redacted:DEPLOY_KEY]')
})
