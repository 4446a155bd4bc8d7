import { execFile } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { FakeDevice } from '../kit/fake-device.ts'
import { useRealServer } from './real-server.ts'

// The commands of docs/api.md, typed as they stand there.

const real = useRealServer()

/** The commands of a page, in their order. */
function commandsOf(page: string): string[] {
  const text = readFileSync(join(import.meta.dirname, '../../docs', page), 'utf8')
  return [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, commands]) => commands!)
}

test('the commands of the page about the API do what it says', async () => {
  const { server, home } = real
  const programs = join(home.dir, 'programs')
  mkdirSync(programs)
  const curl = join(programs, 'curl')
  copyFileSync(join(import.meta.dirname, 'curl.mjs'), curl)
  chmodSync(curl, 0o755)
  const env = {
    PATH: [programs, dirname(process.execPath), '/usr/bin', '/bin'].join(':'),
    SVC_URL: server.url,
    SVC_TOKEN: server.owner.token,
  }
  const blocks = commandsOf('api.md')
  expect(blocks).toHaveLength(4)
  const device = await FakeDevice.connect(server)
  const working = device.take().then((run) => run.end())
  const script = ['set -euo pipefail', ...blocks].join('\n')
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', script], { cwd: real.folder, env })
  await working
  expect(JSON.parse(readFileSync(join(real.folder, 'openapi.json'), 'utf8'))).toMatchObject({ openapi: '3.1.0' })
  expect(JSON.parse(readFileSync(join(real.folder, 'page.json'), 'utf8'))).toMatchObject({ object: 'list', data: [] })
  expect(JSON.parse(readFileSync(join(real.folder, 'run.json'), 'utf8'))).toMatchObject({ kind: 'queued' })
  expect(stdout).toContain('event: end')
  expect(stdout).toContain('"object":"why"')
  await device.disconnect()
})
