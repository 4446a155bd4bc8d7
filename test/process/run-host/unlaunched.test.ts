import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { specOf, spooled, testDevice, type TestDevice } from './host-client.ts'

// What a run without a harness tells of a folder in which others work: another run of its agent has the same secrets.

const secrets = { API_KEY: 'hunter2-hunter2' }
const patToken = `svc_pat_${'Ab3'.repeat(10)}`

let device: TestDevice
let repos = 0
beforeAll(() => {
  device = testDevice()
})
afterAll(() => device.remove())

function repoFolder() {
  const rootPath = join(device.workDir, `repo${++repos}`)
  mkdirSync(rootPath)
  execFileSync('git', ['init', '--quiet'], { cwd: rootPath })
  return { shortId: `fs_${repos}`, rootPath }
}

test('neither its ending nor its change-set shows a secret that another run wrote into the folder', async () => {
  const folder = repoFolder()
  const spec = specOf(device, { command: [`/nowhere/${secrets.API_KEY}`], folder })
  const host = await device.host()
  await host.connect()
  host.assign(spec)
  await host.reply('prepared')
  writeFileSync(join(folder.rootPath, 'config.txt'), `key=${secrets.API_KEY} login=${patToken}\n`)
  host.start({ secrets })
  const { report } = await host.reply('ended')
  expect(report).toMatchObject({ exitReason: 'harness_start_failed' })
  expect(report.message).toContain('[redacted:API_KEY]')
  await host.left()
  const { ending, log } = spooled(device, spec.runId)
  expect(JSON.stringify(ending?.changeSet)).toContain('key=[redacted:API_KEY] login=[redacted:svc_pat]')
  for (const told of [JSON.stringify(ending), log.toString()]) {
    expect(told).not.toContain(secrets.API_KEY)
    expect(told).not.toContain(patToken)
  }
})

test('before the start, when its secrets are not known, nothing of the folder is told', async () => {
  const folder = repoFolder()
  const spec = specOf(device, { command: 'true', folder })
  const host = await device.host()
  await host.connect()
  host.assign(spec)
  await host.reply('prepared')
  writeFileSync(join(folder.rootPath, 'config.txt'), `key=${secrets.API_KEY}\n`)
  host.send({ type: 'change_set.get', requestId: 'q1' })
  const { result } = await host.reply('change_set')
  expect(result).toMatchObject({ ok: false, code: 'source_unknown' })
  host.send({ type: 'stop', exitReason: 'interrupted', message: null })
  await host.reply('ended')
  await host.left()
  const { ending } = spooled(device, spec.runId)
  expect(ending?.changeSet).toMatchObject({ ok: false, code: 'source_unknown' })
})
