import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { brokerPort } from '../../../shared/device/sandbox.ts'
import { programFile } from '../../kit/program-file.ts'

/** As a server of svc on the machine does, unless one is there already. */
async function takePort(port: number): Promise<void> {
  const server = createServer()
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve() : reject(error)))
    server.listen(port, '127.0.0.1', resolve)
  })
}

test('what an image compiles while it is built needs no port of the machine, whose network it may have', async () => {
  await takePort(brokerPort)
  const folder = mkdtempSync(join(tmpdir(), 'svc-rehearsal-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const args = [programFile('device-manager'), 'sandbox', '--rehearse']
  const env = { PATH: process.env['PATH'], HOME: folder, TMPDIR: folder }
  const { code, told } = await new Promise<{ code: unknown; told: string }>((resolve) => {
    execFile(process.execPath, args, { env, cwd: folder, timeout: 60_000 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, told: stdout + stderr }),
    )
  })
  expect({ code, told }).toMatchObject({ code: 0 })
  expect(readdirSync(folder).filter((name) => name.startsWith('svc-rehearsal-'))).toEqual([])
}, 90_000)
